"""Say what would be done with a computation kernel beside a communication kernel,
with which number, and why. No GPU is needed: what one block of each takes is
what the driver, or a profiler, says of a kernel.
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

GPUS = "a40, l40s, a100, h100, h200, b200, mi250x, mi300x"
EPILOG = """\
shapes: leave, make_room, quick_entry, blocks_per_sm=1, blocks_per_sm=50%,
  dynamic_shared_memory=96KiB, as in a policy; the last three need no room

Bytes are numbers or sizes (96KiB). On AMD, registers are VGPRs and AGPRs
together. Without --policy the rule is make_room for every launch; without
--blocks the grid has many waves. The launch is taken to be in an overlap
window; outside, a rule with `when: overlapping` leaves it alone.

example: what NCCL 2.27 leaves of an H100 to a GEMM of 128x128 tiles
  overlap explain --gpu h100 --threads 128 --registers 224 \\
    --dynamic-smem 48KiB --comm-threads 288 --comm-registers 96 \\
    --comm-static-smem 21568 --comm-dynamic-smem 82240

exit status: 0, also where nothing can be done; 2 usage, or a policy is wrong"""


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="what would be done with a kernel, and why",
        usage="overlap explain --gpu G --threads T --registers R\n"
        "         --comm-threads T --comm-registers R [options]\n"
        "       overlap explain --stdin --json",
        description=__doc__,
        epilog=EPILOG,
    )
    parser.add_argument("--gpu", metavar="G", help=GPUS)
    _footprint(parser.add_argument_group("computation, one block"), "")
    _footprint(parser.add_argument_group("communication, one block"), "comm-")
    rule = parser.add_argument_group("rule and launch")
    rule.add_argument("--policy", metavar="P", help="a file or name: its rule for this launch, not --shape")
    rule.add_argument("--kernel", metavar="NAME", help="what rules match")
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
    try:
        values = read(asked)
        found = explainer.look(values)
    except Mistake as mistake:
        sentence = mistake.spoken(lambda name: "--" + name.replace("_", "-"))
        raise OverlapError(sentence, mistake.hint or "overlap explain --help", USAGE) from None
    if options.json:
        from pyshim.cli import ui

        ui.answer(json.dumps(found, indent=2))
    else:
        _show(explainer, values, found)
    return 0


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
