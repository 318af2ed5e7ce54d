"""Says what waits behind what in a trace; or, by numbers alone, whether communication fits beside one kernel."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from pyshim.cli import html
from pyshim.cli.parser import Help
from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Iterable

    from pyshim.explain.screen import Part

DESCRIPTION = """\
Say what waits behind what in a profiler's trace, which streams to raise, and
about how much that saves; or whether communication fits beside one kernel."""
EPILOG = """\
examples:
  overlap explain trace.json.gz --html timeline.html
  overlap explain demo-stencil    (a trace that ships)
  overlap explain --gpu h100 --threads 128 --registers 224

exit status: 0 success, 2 wrong usage or policy"""

_OF_TRACES = ("html", "full", "force")
_NUMBERS = (
    ("threads", "NUMBER", "threads of a block"),
    ("registers", "NUMBER", "registers of a thread; on AMD VGPRs and AGPRs"),
    ("static-smem", "BYTES", "static shared memory of a block"),
    ("dynamic-smem", "BYTES", "dynamic shared memory, as 48KiB"),
    ("barriers", "NUMBER", "barriers of a block"),
    ("sgprs", "NUMBER", "on AMD: scalar registers of a wave"),
)


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="say what waits behind what in a trace, and which streams to raise",
        usage="overlap explain TRACE... [--full] [--json]\n"
        "                       [--html FILE [--force]]\n"
        "       overlap explain --gpu G --threads N ... [--json]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=lambda prog: Help(prog, 30),
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    traces = parser.add_argument_group("a trace")
    traces.add_argument("traces", nargs="*", metavar="TRACE", help="of torch.profiler or nsys, or a folder of ranks'")
    traces.add_argument("--full", action="store_true", help="say everything: waits, ranks, kernels")
    html.add_to(traces)
    what = parser.add_argument_group("one kernel, and communication beside it")
    what.add_argument("--gpu", metavar="GPU", help="of `overlap policy list`")
    for name, value, meaning in _NUMBERS:
        what.add_argument(f"--{name}", metavar=value, help=meaning)
    what.add_argument("--blocks", metavar="NUMBER", help="of the grid (default: many waves)")
    what.add_argument("-p", "--policy", metavar="POLICY", help="a file or name: its rules (default: make_room)")
    what.add_argument("--kernel", metavar="NAME", help="which rules match")
    what.add_argument("--library", metavar="NAME", help="that launches it, which rules match")
    what.add_argument("--shape", metavar="SHAPE", help="instead of a policy: blocks_per_sm=50%%, ...")
    what.add_argument("--keep-at-least", metavar="SHARE", help="of its own blocks (default for room: 50%%)")
    for name, value, _ in _NUMBERS:
        what.add_argument(
            f"--comm-{name}",
            metavar=value,
            help="of communication (default: the newest NCCL or RCCL)" if name == "threads" else "likewise",
        )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    others = set(vars(options)) - {"traces", *_OF_TRACES, "json", "run", "command", "quiet"}
    asked = {name: value for name in others if (value := getattr(options, name)) is not None}
    if options.traces and asked:
        name = min(asked).replace("_", "-")
        raise OverlapError(
            f"--{name} cannot be combined with a trace", "it is about one kernel: leave TRACE out", USAGE
        )
    if options.traces:
        return _traces(options)
    for name in _OF_TRACES:
        if getattr(options, name):
            raise OverlapError(f"--{name} needs a TRACE", "overlap explain --help", USAGE)
    if not asked:
        raise OverlapError("neither a TRACE nor a kernel is named", "overlap explain --help", USAGE)
    return _one(options, asked)


def _traces(options: argparse.Namespace) -> int:
    """Answer about traces."""
    from pyshim.cli import ui
    from pyshim.explain.trace import as_json, look, screen, whole

    html.check(options)
    with ui.progress(f"reading {', '.join(options.traces)}"):
        answer = look(options.traces)
    if not options.full:
        for note in answer.notes:
            ui.note(note)
    if options.html:
        from pyshim.explain.timeline import picture

        page = ui.page("overlap explain", lambda: _show(whole(answer)))
        html.put(page.replace("<body>", f"<body>\n{picture(answer)}", 1), options)
    if options.json:
        ui.answer(json.dumps(as_json(answer), indent=2))
    elif options.html != html.STDOUT:
        _show(whole(answer) if options.full else screen(answer))
    return 0


def _one(options: argparse.Namespace, asked: dict[str, str]) -> int:
    """Answer about one kernel."""
    from pyshim.cli import ui
    from pyshim.explain.answer import Explainer, gpu_called, with_usual
    from pyshim.explain.request import Mistake, read
    from pyshim.explain.screen import screen

    explainer = Explainer(os.environ)
    try:
        request, beside = with_usual(read(asked), explainer)
        if request.policy is not None and request.gpu is not None:
            explainer.check_for(request.policy, gpu_called(request.gpu))
        answer = explainer.look(request)
    except Mistake as mistake:
        sentence = mistake.spoken(lambda name: "--" + name.replace("_", "-"))
        raise OverlapError(sentence, mistake.hint or "overlap explain --help", USAGE) from None
    if options.json:
        told = {"beside": beside} if beside else {}
        ui.answer(json.dumps({**answer.as_json(), **told}, indent=2))
    else:
        _show(screen(answer, beside))
    return 0


def _show(parts: Iterable[Part]) -> None:
    """Print the parts of a screen, fitted to its width."""
    from pyshim.cli import ui
    from pyshim.explain.screen import Line, Table

    for part in parts:
        if isinstance(part, Table):
            ui.table(part.heads, part.rows, part.left, part.above)
        elif isinstance(part, Line):
            ui.show(ui.printable(part.text))
        elif part.label:
            ui.paragraph(part.text, " " * part.width, f"{part.label:<{part.width}}")
        else:
            ui.paragraph(part.text)
