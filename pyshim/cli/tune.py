"""Run the whole PROGRAM under each choice, in turns, and write the best as a policy.

Always compared: bare, which is PROGRAM without changes, and default. Where PROGRAM is srun, mpirun or torchrun, every
rank gets the choice.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.tune.sets import SETS

if TYPE_CHECKING:
    from pyshim.cli.parser import Parser
    from pyshim.tune.answer import TuneResult
    from pyshim.tune.search import SearchResult, Setup

EPILOG = """\
examples:
  overlap tune --limit 10m -- python train.py
  overlap tune --set nccl -- torchrun train.py --steps 60
  overlap tune --metric 'step ([0-9.]+) ms' -- ./stencil
  overlap tune --same 'energy .*' -- srun -N2 ./app in.nml"""

_LIMIT = "30m"
_PAPER = "the published method is a policy, GPU-paper: --arm paper=h100-paper"
_GRID = "each --try goes on top of the best arm so far; to try X under one value of Y: Y=2 overlap tune --try X=1,2"


def add_to(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "tune",
        help="run a program under each choice, in turns, and keep the best as a policy",
        usage="overlap tune [options] -- PROGRAM [ARG ...]",
        description=__doc__,
        epilog=EPILOG,
    )
    add = parser.add_argument
    add(
        "--arm",
        metavar="NAME=POLICY",
        action="append",
        default=[],
        help="a policy file or name, by a name for the table",
    )
    add(
        "--try",
        metavar="VAR=V1,V2",
        action="append",
        default=[],
        dest="tries",
        help="values of a variable; of several, one after the other",
    )
    add("--set", metavar="NAME", action="append", default=[], dest="sets", help=f"variables by set: {', '.join(SETS)}")
    add("--metric", metavar="REGEX", help="numbers that PROGRAM prints (default: its time)")
    add("--higher", action="store_true", help="a higher number is better")
    add("--skip", metavar="N", type=int, help="leave out the first N numbers (default: a tenth)")
    add("--same", metavar="REGEX", help="output that must not change")
    add("--worth", metavar="PERCENT", help="smallest gain that matters (default: 0.5%%)")
    add("--limit", metavar="TIME", help="90s, 30m, 2h (default: 30m; of --resume: as before)")
    add("-o", "--output", metavar="DIR", help="folder for tuned.yaml and outputs (default: tune-N)")
    add("--resume", metavar="DIR", help="go on with a search that ended early")
    add("--simulate", metavar="GPU", help="run on a simulated GPU: h100, or another of `overlap policy list`")
    add("--json", action="store_true", help="print one JSON object")
    add("command", metavar="PROGRAM", nargs=argparse.REMAINDER, help="the program, with its launcher")
    parser.removed = {"--paper": _PAPER, "--grid": _GRID}
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.tune import answer, search, setup

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    setup.refuse_tasks(command, os.environ)
    lines: list[dict[str, Any]] = []
    if options.resume is not None:
        if command or any(vars(options)[name] for name in (*setup.WORDS, "sets", "output")):
            raise OverlapError("--resume takes all but --limit and --json from DIR", "leave the rest out", USAGE)
        kept, lines = setup.read(options.resume)
    elif command:
        kept = setup.words(vars(options), command)
    else:
        raise OverlapError("no program to run", "overlap tune [options] -- PROGRAM [ARG ...]", USAGE)
    limit = setup.seconds(options.limit or kept.get("limit") or _LIMIT)
    made, here, said = setup.make(kept, os.environ, options.resume or "", ui.note)
    if options.resume is None:
        folder, is_new = setup.folder_for(options.output)
        made = made._replace(folder=folder)
        setup.begin({**kept, "gpu": here.name, "limit": options.limit}, folder, is_new)
    for line in said:
        ui.note(line)
    with _signals() as caught:
        result = search.Search(made, lines, ui.progress, ui.note).go(limit)
    found = answer.answer(made, result, here)
    if options.json:
        ui.answer(json.dumps(answer.as_json(made, result, here, found), indent=2))
    else:
        _show(made, result, found)
    if caught:
        return 128 + caught[0]
    return FINDINGS if result.broken or not result.is_compared else 0


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Take the signals that end a search, so that the program is ended and what is known is said."""
    from pyshim.tune.measure import ENDING

    caught: list[int] = []

    def take(number: int, _: Any) -> None:
        caught.append(number)
        raise KeyboardInterrupt

    numbers = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = [signal.signal(number, take) for number in numbers]
    try:
        yield caught
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def _show(made: Setup, result: SearchResult, found: TuneResult) -> None:
    from pyshim.cli import ui
    from pyshim.tune import answer

    higher = made.metric.higher
    rows = []
    for row in result.rows:
        figure = "-" if row.value is None else f"{row.value:.5g}"
        rows.append((row.arm.name, figure, answer.shown(row, higher), row.runs, row.verdict or "-"))
    what = "seconds" if made.metric.pattern is None else "metric"
    ui.table(("arm", what, "change from bare", "runs", "verdict"), rows, left=(0, 4))
    ui.show()
    noise = answer.noise(result)
    if noise is not None:
        ui.sentence(f"noise   successive runs of an arm differ by {noise:.2g} % (median)")
    ui.sentence(f"answer  {found.sentence}")
    if found.use:
        ui.show(f"use     {found.use}")
