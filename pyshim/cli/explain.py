"""Says what holds a program up in traces."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from pyshim.cli import html
from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Iterable, Iterator

    from pyshim.cli.parser import Parser
    from pyshim.diagnosis.look import TraceAnswer
    from pyshim.diagnosis.parts import Part

DESCRIPTION = """\
Say what holds a program up in a profiler's trace, whether raising streams
helps, and what to do next."""
EPILOG = """\
examples:
  overlap explain trace.json.gz --html timeline.html
  overlap explain large.json.gz --steps 3-5
  overlap explain demo-stencil    (a trace that ships)

exit status: 0 success, 2 wrong usage"""
_ROOM = "for one kernel write overlap policy room --gpu GPU --kernel THREADS:REGISTERS[:STATIC[:DYNAMIC]]"
# Options of 0.2.0 about one kernel.
_KERNEL = ("threads", "registers", "static-smem", "dynamic-smem", "barriers", "sgprs")
_REMOVED = ("gpu", *_KERNEL, "blocks", "policy", "kernel", "library", "shape", "keep-at-least")


def add_to(commands: _SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="say what holds a program up in a trace, and whether raising streams helps",
        usage="overlap explain TRACE... [--steps N[-M]] [--full]\n"
        "                       [--json] [--html FILE [--force]]",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument(
        "traces", nargs="*", metavar="TRACE", help="of torch.profiler, nsys, rocprofv3 or JAX, or a folder of ranks'"
    )
    parser.add_argument("--steps", metavar="N[-M]", help="look at these steps alone: 3-5, or 4")
    parser.add_argument("--full", action="store_true", help="say everything: waits, ranks, kernels")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    html.add_to(parser)
    parser.removed = dict.fromkeys([f"--{name}" for name in _REMOVED] + [f"--comm-{name}" for name in _KERNEL], _ROOM)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.diagnosis.look import look

    if not options.traces:
        raise OverlapError("no TRACE is named", "overlap explain --help", USAGE)
    html.check(options)
    with ui.progress(f"reading {', '.join(options.traces)}"):
        answer = look(options.traces, options.steps)
    if not options.full:
        from pyshim.diagnosis.notes import shortened

        for note in shortened(answer.notes):
            ui.note(note)
    if options.html:
        from pyshim.diagnosis.page import page

        html.put(page(answer), options)
    if options.json:
        from pyshim.diagnosis.as_json import as_json

        ui.answer(json.dumps(as_json(answer), indent=2))
    elif options.html != html.STDOUT:
        from pyshim.diagnosis.answer import screen

        show(_whole(answer) if options.full else screen(answer))
    return 0


def _whole(answer: TraceAnswer) -> Iterator[Part]:
    from pyshim.diagnosis.whole import whole

    return whole(answer)


def show(parts: Iterable[Part]) -> None:
    """Print the parts of a screen, fitted to its width."""
    from pyshim.cli import ui
    from pyshim.diagnosis.parts import Table, UnbrokenLine

    for part in parts:
        if isinstance(part, Table):
            ui.table(part.heads, part.rows, part.left, part.above)
        elif isinstance(part, UnbrokenLine):
            ui.show(ui.printable(part.text))
        elif part.code:
            ui.show(ui.printable(f"{part.label:<{part.width}}{part.text}"))
        elif part.label:
            ui.paragraph(part.text, " " * part.width, f"{part.label:<{part.width}}")
        else:
            ui.paragraph(part.text)
