"""Run a bundled program with the shape of a training step, and show what the controls do to it.

Four arms: sequential (one stream), plain (communication on a stream of its own), priority (communication raised) and
policy (raised, and half of the computation's blocks). It runs on the GPU of this machine, or on a simulated one, there
under every dispatch rule. A control that does nothing or loses is shown to do so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from pyshim.demo.arms import Run
    from pyshim.demo.drawing import Style

RULES = ("hold", "drain", "backfill")
DEFAULT_GPU = "h100"
EPILOG = """\
examples:
  overlap demo
  overlap demo --gpu a100 --rule backfill"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo", help="show on a bundled program what the controls do", description=__doc__, epilog=EPILOG
    )
    parser.add_argument("--gpu", metavar="GPU", help=f"simulate this one (default: the real one, else {DEFAULT_GPU})")
    parser.add_argument("--rule", choices=RULES, help=f"dispatch rule of the simulation to show (default: {RULES[0]})")
    parser.add_argument("--real", action="store_true", help="only the GPU of this machine; fails where there is none")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.demo.text import report

    if args.real and (args.gpu or args.rule):
        raise OverlapError("--real goes with neither --gpu nor --rule", "both choose a simulation", USAGE)
    runs = _runs(args)
    rule = None if runs[0].rule is None else args.rule or RULES[0]
    chosen = next(run for run in runs if run.rule == rule)
    if args.json:
        ui.answer(json.dumps(_as_json(runs, chosen), indent=2))
    else:
        ui.show("\n".join(report(runs, chosen, ui.width(), _style())))
    return 0


def _runs(args: argparse.Namespace) -> Sequence[Run]:
    """One run on a real GPU, or one for each dispatch rule."""
    from pyshim.cli import ui
    from pyshim.demo import arms
    from pyshim.launch.simulate import parse
    from pyshim.policy.gpus import NVIDIA

    if not (args.gpu or args.rule):
        missing = arms.real_gpu(os.environ)
        if missing is None:
            return [arms.measure(os.environ)]
        if args.real:
            raise OverlapError(missing, f"overlap demo --gpu {DEFAULT_GPU} simulates one")
        if not missing.startswith(("no driver", "no GPU")):
            ui.say(f"the GPU of this machine is not used: {missing}")
    if args.gpu and (":" in args.gpu or "," in args.gpu):
        raise OverlapError(f"{args.gpu} is more than a GPU", "the rule is said by --rule; the demo uses one GPU", USAGE)
    try:
        gpu = parse((args.gpu or DEFAULT_GPU).lower())
    except OverlapError as error:
        raise OverlapError(error.sentence, error.hint, USAGE) from error
    if gpu.vendor != NVIDIA:
        raise OverlapError(f"the demo's kernels are for GPUs of NVIDIA, not for {gpu.name}", "try --gpu h100", USAGE)
    return arms.simulate(gpu.key, os.environ)


def _as_json(runs: Sequence[Run], chosen: Run) -> dict[str, object]:
    from pyshim.demo.reasons import verdict, why

    return {
        "gpu": chosen.plain.gpu,
        "simulated": chosen.rule is not None,
        "rule": chosen.rule,
        **_times(chosen),
        "rules": {run.rule: _times(run) for run in runs if run.rule},
        "counters": {
            arm.name: {
                "launches": arm.counters.launches,
                "communication": arm.counters.communication,
                "shaped": arm.counters.shaped,
                "raised": arm.counters.raised,
                "refused": arm.counters.refused,
                "reasons": dict(arm.counters.reasons),
            }
            for arm in chosen.arms
            if arm.counters
        },
        "why": why(chosen),
        "verdicts": {run.rule or "measured": verdict(run) for run in runs},
    }


def _times(run: Run) -> dict[str, float]:
    return {
        "sequential_ms": run.sequential.milliseconds,
        "without_ms": run.plain.milliseconds,
        "priority_ms": run.priority.milliseconds,
        "with_ms": run.policy.milliseconds,
        "change_percent": run.change_percent,
    }


def _style() -> Style:
    from pyshim.cli import ui
    from pyshim.demo.drawing import style_for

    return style_for(getattr(sys.stdout, "encoding", None) or "ascii", ui.colours())
