"""Run a bundled program, a stencil, without and with overlap-run, and draw the streams of one step.

It runs on the GPU of this machine, or on a simulated one where there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyshim.demo.arms import DemoResult

    pass

DEFAULT_GPU = "h100"
EPILOG = """\
examples:
  overlap demo
  overlap demo --gpu a100"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo", help="run a bundled program without and with overlap-run", description=__doc__, epilog=EPILOG
    )
    parser.add_argument(
        "--gpu",
        metavar="GPU",
        help=f"simulate this GPU, as overlap-run --simulate does (default: the real one, else {DEFAULT_GPU})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.demo import arms
    from pyshim.demo.picture import report, style_for

    why = None
    with ui.progress("running the demo"):
        if args.gpu:
            run = arms.simulate(args.gpu, os.environ)
        else:
            try:
                run = arms.measure(os.environ)
            except arms.NoGpu:
                why = "there is no GPU of NVIDIA here"
                run = arms.simulate(DEFAULT_GPU, os.environ)
    if args.json:
        ui.answer(json.dumps(_as_json(run), indent=2))
    else:
        style = style_for(getattr(sys.stdout, "encoding", None) or "ascii", ui.colours())
        ui.show("\n".join(report(run, why, ui.width(), style)))
    return 0


def _as_json(run: DemoResult) -> dict[str, object]:
    from pyshim.demo.picture import following, gained

    counters = run.default.counters
    return {
        "gpu": run.gpu,
        "simulated": run.simulated is not None,
        "simulate": run.simulated,
        "bare_ms": run.bare.milliseconds,
        "default_ms": run.default.milliseconds,
        "change_percent": run.change_percent,
        "noise_percent": run.noise_percent,
        "launches": counters.launches if counters else 0,
        "raised": counters.raised if counters else 0,
        "gained": gained(run),
        "next": following(run),
    }
