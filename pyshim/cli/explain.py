"""Says what would be done with a computation kernel beside communication, with which number, and why, without a GPU."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Callable, Iterable, Iterator

    from pyshim.explain.answer import Explainer
    from pyshim.explain.request import Request
    from pyshim.explain.screen import Part

DESCRIPTION = """\
Predict what a policy does with a computation kernel that runs beside
communication, and why. No GPU is needed: the kernel comes from numbers on the
command line, a run's report, or a profiler's trace."""
EPILOG = """\
rarely needed (--help-all explains them): --static-smem, --barriers, --sgprs, --blocks, --library, --comm-threads,
--comm-registers, --comm-static-smem, --comm-dynamic-smem, --comm-barriers, --comm-sgprs

examples:
  overlap explain --gpu h100 --threads 128 --registers 224
  overlap explain --from trace.json.gz --policy h100
  overlap explain --from demo-stencil    (a shipped trace)

exit status: 0 success, also if nothing can be done; 2 wrong usage or policy"""
ALL = """\
Bytes are numbers or sizes (96KiB), registers those of a thread; on AMD VGPRs and
AGPRs together. Where nothing is said of communication it is the newest NCCL or
RCCL whose sizes are known.

  --static-smem BYTES   shared memory that the kernel has by itself
  --barriers NUMBER     of a block; where it is not said they limit nothing
  --sgprs NUMBER        scalar registers of a wave on AMD; likewise
  --comm-threads NUMBER, --comm-registers NUMBER, --comm-static-smem BYTES,
  --comm-dynamic-smem BYTES, --comm-barriers NUMBER, --comm-sgprs NUMBER
                        the same of one block of communication
  --blocks NUMBER       of the grid; where it is not said the launch has many
                        waves
  --library NAME        file name of the library that launches; rules match it
  --shape SHAPE         instead of a policy: leave, make_room, blocks_per_sm=1,
                        blocks_per_sm=50%, dynamic_shared_memory=96KiB; the last
                        three need no room
  --keep-at-least SHARE 50%: of the kernel's own blocks (the default for room)

--from TRACE takes what PyTorch's profiler and Chrome write (.json, .json.gz) and
what `nsys export --type sqlite` does; no pipes. demo-stencil is a trace
of two H200 that ships. --kernel is a glob then, or a set of kernels: gemm,
attention, elementwise, norm, optimizer. Communication is that of its own
kernels, and what of it computation hid is told as well. So are priority
inversions: what stood ready behind blocks of another stream while the host, a
stream or communication waited for it, and the most that raising can save.
--kernel with --from and --report that leaves one kernel gives the whole answer to
that one.

A policy that is not for the GPU is refused with status 2: it would do nothing.

A launch is taken to be in an overlap window; outside, a rule with
`when: overlapping` leaves it alone.

example: the whole answer to one kernel beside NCCL 2.27
  overlap explain --gpu h100 --threads 128 --registers 224 \\
    --dynamic-smem 48KiB --comm-threads 288 --comm-registers 96 \\
    --comm-static-smem 21568 --comm-dynamic-smem 82240"""


_LABEL = 12  # columns
# What runs and traces say by themselves.
_OF_LAUNCHES = ("threads", "registers", "static_smem", "dynamic_smem", "barriers", "sgprs", "blocks", "library")


class _Everything(argparse.Action):
    """Print the help with the rare options: --help-all."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.epilog = str(self.const)
        parser.print_help()
        parser.exit()


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="predict what a policy does with a kernel, and why",
        usage="overlap explain --gpu GPU --threads N --registers N\n"
        "       overlap explain --from TRACE... [--kernel NAME] ...\n"
        "       overlap explain --report DIR ...",
        description=DESCRIPTION,
        epilog=EPILOG,
        add_help=False,
    )
    hidden = argparse.SUPPRESS
    what = parser.add_argument_group("which kernel")
    what.add_argument("--gpu", metavar="GPU", help="of `overlap policy list` (default: that of the policy or trace)")
    what.add_argument("--threads", metavar="NUMBER", help="threads of a block")
    what.add_argument("--registers", metavar="NUMBER", help="registers of a thread")
    what.add_argument("--dynamic-smem", metavar="BYTES", help="dynamic shared memory of the launch, as 48KiB")
    what.add_argument("--from", dest="files", nargs="+", metavar="TRACE", help="every kernel of a trace")
    what.add_argument("--report", metavar="DIR", help="every kernel of a run, from its report folder")
    what.add_argument("--kernel", metavar="NAME", help="name; with --from and --report a pattern or a set")
    rule = parser.add_argument_group("which rule (default: make_room for every launch)")
    rule.add_argument(
        "-p", "--policy", metavar="POLICY", help="a file or name: its rules (with --report: those of the run)"
    )
    rule.add_argument("--shape", metavar="SHAPE", help="make_room, blocks_per_sm=50%%, ...")
    rule.add_argument("--keep-at-least", metavar="SHARE", help="of its own blocks (default for room: 50%%)")
    answers = parser.add_argument_group("which answer")
    answers.add_argument("--json", action="store_true", help="print one JSON object")
    answers.add_argument("-h", "--help", action="help", help="show this help message and exit")
    parser.add_argument("--help-all", action=_Everything, nargs=0, const=ALL, help=hidden)
    for name in ("static-smem", "barriers", "sgprs", "library", "blocks"):
        parser.add_argument(f"--{name}", metavar="X", help=hidden)
    for name in ("threads", "registers", "static-smem", "dynamic-smem", "barriers", "sgprs"):
        parser.add_argument(f"--comm-{name}", metavar="X", help=hidden)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.explain.answer import Explainer
    from pyshim.explain.kernels import shipped
    from pyshim.explain.request import NAMES, Mistake, read

    asked = {name: value for name in NAMES if (value := getattr(options, name)) is not None}
    explainer = Explainer(os.environ)
    if options.report and options.files:
        raise OverlapError("--report and --from exclude each other", "ask about one at a time", USAGE)
    options.files = [shipped(file) for file in options.files or ()]
    try:
        if options.report or options.files:
            return _launched(options, asked, explainer)
        return _one(options, read(asked), explainer)
    except Mistake as mistake:
        sentence = mistake.spoken(lambda name: "--" + name.replace("_", "-"))
        raise OverlapError(sentence, mistake.hint or "overlap explain --help", USAGE) from None


def _launched(options: argparse.Namespace, asked: dict[str, object], explainer: Explainer) -> int:
    """Answer about every kernel of a run, or of traces."""
    from dataclasses import replace

    from pyshim.cli import ui
    from pyshim.explain.launches import judge, of_run, of_traces, waits_of
    from pyshim.explain.launches_screen import about_one, as_json, screen

    option = "--report" if options.report else "a trace"
    for name in _OF_LAUNCHES:
        if name in asked:
            sentence = f"--{name.replace('_', '-')} cannot be combined with {option}"
            raise OverlapError(sentence, "it says that of every launch", USAGE)
    pattern = asked.pop("kernel", None)
    try:
        with ui.progress(f"reading {options.report or ', '.join(options.files)}"):
            launched = of_run(options.report) if options.report else of_traces(options.files)
    except OverlapError as error:
        error.status = USAGE  # what was named is no run or no trace
        raise
    use = judge(launched, asked, None if pattern is None else str(pattern), explainer)
    if options.files:
        with ui.progress("looking for what waits for what"):
            use = replace(use, waiting=waits_of(options.files, use.gpu))
    only = use.only() if pattern is not None else None
    if only and not options.json:
        beside = "" if use.communication.told else use.communication.name
        return _one(options, only, explainer, beside, around=lambda one: about_one(use, one))
    if options.json:
        ui.answer(json.dumps(as_json(use), indent=2))
    else:
        _show(screen(use))
    return 0


def _one(
    options: argparse.Namespace,
    request: Request,
    explainer: Explainer,
    beside: str = "",
    around: Callable[[Iterator[Part]], Iterator[Part]] = lambda parts: parts,
) -> int:
    """Answer about one kernel, in full.

    beside: its communication, if that is known already; around: adds the parts before and after its screen."""
    from pyshim.cli import ui
    from pyshim.explain.answer import gpu_called
    from pyshim.explain.communication import with_usual
    from pyshim.explain.screen import screen

    if not beside:
        request, beside = with_usual(request, explainer)
    if request.policy is not None and request.gpu is not None:
        explainer.check_for(request.policy, gpu_called(request.gpu))
    answer = explainer.look(request)
    if options.json:
        told = {"beside": beside} if beside else {}
        ui.answer(json.dumps({**answer.as_json(), **told}, indent=2))
    else:
        _show(around(screen(explainer.explain(answer), beside)))
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
            ui.paragraph(part.text, " " * _LABEL, f"{part.label:<{_LABEL}}")
        else:
            ui.paragraph(part.text)
