"""Say what would be done with a computation kernel beside a communication kernel,
with which number, and why. No GPU is needed: what one block of each takes is
what the driver, or a profiler, says of a kernel, or what is read in a library.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from pyshim.explain.answer import Explainer
    from pyshim.explain.request import Mistake
    from pyshim.explain.survey import Survey

GPUS = "a40, l40s, a100, h100, h200, b200, mi250x, mi300x"
EPILOG = """\
shapes: leave, make_room, quick_entry, blocks_per_sm=1, blocks_per_sm=50%,
  dynamic_shared_memory=96KiB, as in a policy; the last three need no room

Bytes are numbers or sizes (96KiB). On AMD, registers are VGPRs and AGPRs
together. Without --policy the rule is make_room for every launch; without
--blocks the grid has many waves. The launch is taken to be in an overlap
window; outside, a rule with `when: overlapping` leaves it alone.

--from reads registers, static shared memory and launch bounds of every kernel;
--threads is for kernels without a bound, --dynamic-smem what each is launched
with. Communication is that of --comm-from, of --comm-threads and the like, or
of the newest NCCL or RCCL whose sizes are known.

example: what NCCL 2.27 leaves of an H100 to a GEMM of 128x128 tiles
  overlap explain --gpu h100 --threads 128 --registers 224 \\
    --dynamic-smem 48KiB --comm-threads 288 --comm-registers 96 \\
    --comm-static-smem 21568 --comm-dynamic-smem 82240
example: which kernels of rocBLAS gain beside RCCL
  overlap explain --from rocblas/library --comm-from librccl.so.1

exit status: 0, also where nothing can be done; 2 usage, or a policy is wrong"""


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="what would be done with a kernel, and why",
        usage="overlap explain --gpu G --threads T --registers R\n"
        "         --comm-threads T --comm-registers R [options]\n"
        "       overlap explain --from FILE... [--kernel PATTERN] [--gpu G] [options]\n"
        "       overlap explain --stdin --json",
        description=__doc__,
        epilog=EPILOG,
    )
    parser.add_argument("--gpu", metavar="G", help=GPUS)
    parser.add_argument(
        "--from",
        dest="files",
        nargs="+",
        metavar="FILE",
        help="every kernel of .so, .cubin, .fatbin, .co files and of folders of them: how many gain, by GPU",
    )
    _footprint(parser.add_argument_group("computation, one block"), "")
    communication = parser.add_argument_group("communication, one block")
    communication.add_argument("--comm-from", metavar="FILE", help="with --from: the collectives of librccl.so, ...")
    communication.add_argument("--comm-kernel", metavar="PATTERN", help="these kernels of it, the most that they take")
    _footprint(communication, "comm-")
    rule = parser.add_argument_group("rule and launch")
    rule.add_argument("--policy", metavar="P", help="a file or name: its rule for this launch, not --shape")
    rule.add_argument("--kernel", metavar="NAME", help="what rules match; with --from: only such kernels (a glob)")
    rule.add_argument("--library", metavar="NAME", help="file name of the calling library, likewise")
    rule.add_argument("--blocks", metavar="N", help="of the grid (default: many waves)")
    rule.add_argument("--shape", metavar="S", help="what the rule does (default: make_room)")
    rule.add_argument("--keep-at-least", metavar="P", help="50%%: of its own blocks (the default for room)")
    answers = parser.add_argument_group("answer")
    answers.add_argument("--json", action="store_true", help="one object on stdout")
    answers.add_argument("--stdin", action="store_true", help="with --json: a request per line, answered by one")
    parser.set_defaults(run=_run)


def _footprint(group: Any, prefix: str) -> None:
    group.add_argument(f"--{prefix}threads", metavar="T")
    group.add_argument(f"--{prefix}registers", metavar="R", help="per thread")
    group.add_argument(f"--{prefix}static-smem", metavar="B", help="bytes of shared memory (default: 0)")
    group.add_argument(f"--{prefix}dynamic-smem", metavar="B", help="asked for at the launch")
    group.add_argument(f"--{prefix}barriers", metavar="N", help="(default: they limit nothing)")
    group.add_argument(f"--{prefix}sgprs", metavar="N", help="on AMD (default: they limit nothing)")


def _run(options: argparse.Namespace) -> int:
    from pyshim.explain.answer import Explainer
    from pyshim.explain.request import NAMES, Mistake, read

    asked = {name: value for name in NAMES if (value := getattr(options, name)) is not None}
    if options.stdin:
        if asked or not options.json:
            hint = "write the options into the lines, with `_` for `-`"
            raise OverlapError("--stdin goes with --json and nothing else", hint, USAGE)
        return _answer_lines(Explainer(os.environ))
    explainer = Explainer(os.environ)
    if options.files:
        return _survey(options, asked, explainer)
    if options.comm_from or options.comm_kernel:
        raise OverlapError("--comm-from and --comm-kernel go with --from", "overlap explain --help", USAGE)
    try:
        values = read(asked)
        found = explainer.look(values)
    except Mistake as mistake:
        raise _usage(mistake) from None
    if options.json:
        from pyshim.cli import ui

        ui.answer(json.dumps(found, indent=2))
    else:
        _show(explainer, values, found)
    return 0


def _usage(mistake: Mistake) -> OverlapError:
    sentence = mistake.spoken(lambda name: "--" + name.replace("_", "-"))
    return OverlapError(sentence, mistake.hint or "overlap explain --help", USAGE)


def _survey(options: argparse.Namespace, asked: dict[str, object], explainer: Explainer) -> int:
    """--from: many kernels at once."""
    from pyshim.cli import ui
    from pyshim.explain.request import Mistake
    from pyshim.explain.survey import Question, survey
    from pyshim.explain.survey_text import as_json
    from pyshim.policy.gpus import known

    _check_survey(options, asked)
    name, pattern = asked.pop("gpu", None), asked.pop("kernel", None)
    try:
        gpus = [gpu for gpu in known() if name is None or gpu.key == explainer.key_of(str(name))]
        pattern = None if pattern is None else str(pattern)
        found = survey(Question(options.files, gpus, asked, pattern, options.comm_from, options.comm_kernel), explainer)
    except Mistake as mistake:
        raise _usage(mistake) from None
    if options.json:
        ui.answer(json.dumps(as_json(found), indent=2))
    else:
        _show_survey(found)
    return 0


def _check_survey(options: argparse.Namespace, asked: dict[str, object]) -> None:
    """Options that do not go together."""
    from pyshim.explain.request import COMMUNICATION

    wrong = next((name for name in ("registers", "static_smem", "barriers", "sgprs") if name in asked), None)
    if wrong:
        raise OverlapError(f"--{wrong.replace('_', '-')} goes without --from", "the binary says it", USAGE)
    if options.comm_kernel and not options.comm_from:
        raise OverlapError("--comm-kernel goes with --comm-from FILE", None, USAGE)
    told = [name for name in asked if name.startswith("comm_")]
    binary_silent = ("comm_threads", "comm_dynamic_smem") if options.comm_kernel else ()
    wrong = next((name for name in told if name not in binary_silent), None)
    if options.comm_from and wrong:
        hint = "with --comm-kernel go --comm-threads and --comm-dynamic-smem, which a binary may not say"
        raise OverlapError(f"--{wrong.replace('_', '-')} goes without --comm-from", hint, USAGE)
    missing = [name for name in COMMUNICATION if name not in asked]
    if told and missing and not options.comm_from:
        raise OverlapError(f"needed, and not said: --{missing[0].replace('_', '-')}", None, USAGE)


def _show_survey(found: Survey) -> None:
    from pyshim.cli import ui
    from pyshim.explain import survey_text as text

    for line in text.headline(found):
        ui.show(ui.printable(line))
    kernels = text.kernels(found)
    for heads, rows, left in (
        (text.COMMUNICATION_HEADS, text.communication(found), (0, 1)),
        (*text.counts(found), (0, 1)),
        (text.SET_HEADS, text.sets(found), (0, 1, 2)),
        (text.KERNEL_HEADS, kernels if len(kernels) <= text.MOST_LINES else [], (0, 1, 2, 6)),
    ):
        if rows:
            ui.show()
            ui.table(heads, rows, left=left)
    ui.show()
    for line in (*text.legend(found), *text.notes(found)):
        ui.show(ui.printable(line))


def _answer_lines(explainer: Explainer) -> int:
    from pyshim.cli import ui
    from pyshim.explain.lines import Lines

    lines = Lines(explainer)
    stdin: Any = sys.stdin.buffer if sys.stdin else None
    while True:
        try:
            # What is there, however little: whoever asks and waits gets the answer at once.
            data = stdin.read1(1 << 16)
        except (OSError, AttributeError) as error:
            why = getattr(error, "strerror", None) or "it is closed"
            raise OverlapError(f"stdin cannot be read: {why}", None, USAGE) from None
        answers = lines.feed(data) if data else lines.end()
        if answers:
            ui.answer("\n".join(answers))
        if not data:
            return 0


def _show(explainer: Explainer, values: dict[str, Any], found: dict[str, Any]) -> None:
    from pyshim.cli import ui
    from pyshim.explain.text import FOOTPRINT_HEADS, MOST_SIZES, SIZE_HEADS, footprints, headline, sizes, verdict

    for line in headline(explainer):
        ui.show(line)
    ui.show()
    ui.table(FOOTPRINT_HEADS, footprints(explainer), left=(0, 6))
    rows = sizes(found)
    if rows:
        ui.show()
        ui.table(SIZE_HEADS, rows[:MOST_SIZES], left=())
    if len(rows) > MOST_SIZES:
        ui.show(f"... and {len(rows) - MOST_SIZES} more for fewer blocks (--json lists all)")
    ui.show()
    for line in verdict(explainer, values, found):
        ui.show(ui.printable(line))
