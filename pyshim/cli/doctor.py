"""Look for what stands in the way on this machine and in this environment:
drivers, runtimes, the library, variables. Nothing is changed or started, and
no driver is opened.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from pyshim.errors import FINDINGS

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EPILOG = """\
ok: fine; warn: may be meant so, or costs something; FAIL: cannot work like this

exit status: 0 nothing fails, 1 something does, 2 usage
"""
_MARGIN = 6


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor", help="what stands in the way on this machine", description=__doc__, epilog=EPILOG
    )
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.doctor.checks import run
    from pyshim.doctor.machine import Machine

    found = run(Machine(os.environ))
    failed = any(checked.line.state == "fail" for checked in found)
    if options.json:
        import json

        checks = [{"check": checked.name, **checked.line._asdict()} for checked in found]
        ui.answer(json.dumps({"ok": not failed, "checks": checks}, indent=2))
    else:
        for checked in found:
            _show(checked.line.state, checked.line.sentence, checked.line.hint)
    return FINDINGS if failed else 0


def _show(state: str, sentence: str, hint: str) -> None:
    from textwrap import wrap

    from pyshim.cli import ui

    margin = " " * _MARGIN
    lines = [*wrap(ui.printable(sentence), 80 - _MARGIN, break_long_words=False, break_on_hyphens=False)]
    if hint:
        lines += wrap(ui.printable(hint), 80 - _MARGIN, initial_indent="-> ", subsequent_indent="   ",
                      break_long_words=False, break_on_hyphens=False)  # fmt: skip
    shown = "FAIL" if state == "fail" else state
    for index, line in enumerate(lines):
        ui.show((shown.ljust(_MARGIN) if index == 0 else margin) + line)
