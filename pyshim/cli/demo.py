"""Run two bundled programs without and with the default policy: a stencil, whose boundary is waited for in every
iteration, and a training step, whose all-reduces are waited for at its end only.

Each runs three ways: sequential (one stream), plain (communication on a second stream) and default (the same under
overlap-run without options). They run on the GPU of this machine, or on a simulated one under every dispatch rule.
"""  # noqa: D205 (the description of the command)

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyshim.enums import DISPATCH_RULES
from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from pyshim.demo.arms import Run
    from pyshim.demo.drawing import Style

DEFAULT_GPU = "h100"
PAUSE = 2.0  # seconds between two lines about how far the work is
EPILOG = """\
examples:
  overlap demo
  overlap demo --gpu a100 --rule backfill"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo", help="show on bundled programs what the controls do", description=__doc__, epilog=EPILOG
    )
    parser.add_argument("--gpu", metavar="GPU", help=f"simulate this GPU (default: the real one, else {DEFAULT_GPU})")
    parser.add_argument(
        "--rule",
        choices=DISPATCH_RULES,
        help=f"show this dispatch rule of the simulation (default: {DISPATCH_RULES[0]})",
    )
    parser.add_argument("--real", action="store_true", help="use the GPU of this machine only; fail if there is none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.demo.text import report

    if args.real and (args.gpu or args.rule):
        raise OverlapError("--real cannot be combined with --gpu or --rule", "these choose a simulated GPU", USAGE)
    scenes = _scenes(args)
    rule = None if scenes[0][0].rule is None else args.rule or DISPATCH_RULES[0]
    if args.json:
        ui.answer(json.dumps(_as_json(scenes, rule), indent=2))
    else:
        ui.show("\n".join(report(scenes, rule, ui.width(), _style())))
    return 0


def _scenes(args: argparse.Namespace) -> Sequence[Sequence[Run]]:
    """Return, for each scene, one run on a real GPU or one for each dispatch rule."""
    from pyshim.cli import ui
    from pyshim.demo import arms
    from pyshim.demo.scenes import SCENES
    from pyshim.launch.driver import parse
    from pyshim.policy.gpus import NVIDIA

    if not (args.gpu or args.rule):
        try:
            name = arms.real_gpu(os.environ)
        except OverlapError as error:
            if args.real:
                raise OverlapError(error.sentence, f"overlap demo --gpu {DEFAULT_GPU} simulates one") from error
            if not error.sentence.startswith(("no driver", "no GPU")):
                ui.say(f"the GPU of this machine is not used: {error.sentence}")
        else:
            with progress(arms.count(SCENES, False), name) as ran:
                return [[arms.measure(scene, name, os.environ, ran)] for scene in SCENES]
    gpu = parse(args.gpu or DEFAULT_GPU)
    if gpu.number > 1:
        raise OverlapError("the demo runs on one GPU", f"--gpu {gpu.key}", USAGE)
    if ":" in (args.gpu or ""):
        if args.rule not in (None, gpu.rule):
            raise OverlapError(f"--gpu {args.gpu} and --rule {args.rule} name different rules", "omit one", USAGE)
        args.rule = gpu.rule
    if gpu.vendor != NVIDIA:
        hint = f"try --gpu h100, or: overlap-run --simulate {gpu.key} demo"
        raise OverlapError(f"the demo's kernels are for GPUs of NVIDIA, not for {gpu.name}", hint, USAGE)
    with progress(arms.count(SCENES, True), gpu.name) as ran:
        return [arms.simulate(scene, gpu.key, gpu.name, os.environ, ran) for scene in SCENES]


@contextmanager
def progress(runs: int, where: str) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each run of a program, which says how many of the runs are done.

    On a terminal it redraws one line; elsewhere it prints a line every few seconds."""
    from pyshim.cli import ui

    done, said = 0, time.monotonic()

    def ran(say: Callable[[str], None], pause: float) -> None:
        nonlocal done, said
        done += 1
        if done < runs and time.monotonic() - said >= pause:
            said = time.monotonic()
            say(f"{done} of {runs} runs on {where}")

    if not ui.redraws():
        yield lambda: ran(ui.say, PAUSE)
        return
    with ui.redrawn() as draw:
        yield lambda: ran(lambda text: draw(lambda: ui.show(text)), 0)


def _as_json(scenes: Sequence[Sequence[Run]], rule: str | None) -> dict[str, object]:
    """Return the fields of the training step, and those of every scene by name."""
    told = {runs[0].scene.name: _scene(runs, next(run for run in runs if run.rule == rule)) for runs in scenes}
    first = scenes[0][0]
    return {"gpu": first.gpu, "simulated": first.rule is not None, "rule": rule, **told["step"], "scenes": told}


def _scene(runs: Sequence[Run], chosen: Run) -> dict[str, object]:
    from pyshim.demo.reasons import verdict, why

    return {
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
        "with_ms": run.default.milliseconds,
        "change_percent": run.change_percent,
    }


def _style() -> Style:
    from pyshim.cli import ui
    from pyshim.demo.drawing import style_for

    return style_for(getattr(sys.stdout, "encoding", None) or "ascii", ui.colours())
