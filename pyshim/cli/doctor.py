"""Diagnose problems on this machine: the library, the driver and its GPUs (queried
in a separate process), policies, PROGRAM and the libraries that it is linked to, environment variables,
Slurm, containers and profilers. Nothing is changed, and PROGRAM is not started.
"""  # noqa: D205 (the description of the command)

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyshim.errors import FINDINGS

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from pyshim.doctor.machine import Machine

EPILOG = """\
ok: no problem; warn: possibly intended, or costs time; FAIL: stands in the way

examples:
  overlap doctor
  overlap doctor --policy h100-paper python train.py
  overlap doctor --simulate mi250x ./program

exit status: 0 nothing is in the way, 1 something is, 2 wrong usage
"""
_MARGIN = 6


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="diagnose problems on this machine",
        usage="overlap doctor [options] [--] [PROGRAM [ARG ...]]",
        description=__doc__,
        epilog=EPILOG,
    )
    parser.add_argument(
        "-p", "--policy", metavar="POLICY", help="policy file or name (default: $OVERLAP_POLICY, else auto)"
    )
    parser.add_argument(
        "--simulate", metavar="GPU", help="diagnose a simulated GPU instead: h100, or another of `overlap policy list`"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object (format version 1)")
    parser.add_argument(
        "command", metavar="PROGRAM", nargs=argparse.REMAINDER, help="the program that overlap-run is to start"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.doctor.checks import run, verdict

    machine = _machine(options, os.environ)
    with ui.progress("checking this machine"):
        found = run(machine)
    failed = any(checked.line.state == "fail" for checked in found)
    if options.json:
        import json

        checks = [{"check": checked.check.name, **checked.line._asdict()} for checked in found]
        answer = {"version": 1, "ok": not failed, "verdict": verdict(found), "checks": checks}
        ui.answer(json.dumps(answer, indent=2))
    else:
        ui.sentence(verdict(found))
        for checked in found:
            _show(checked.line.state, checked.line.sentence, checked.line.hint)
    return FINDINGS if failed else 0


def _machine(options: argparse.Namespace, base: Mapping[str, str]) -> Machine:
    from pyshim.doctor.machine import Machine
    from pyshim.start import plan

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if options.simulate is None:
        return Machine(base, command=command, policy=options.policy)
    gpu, environment = plan.simulated(options.simulate, base)
    return Machine(environment, command=command, policy=options.policy, simulated=gpu)


def _show(state: str, sentence: str, hint: str) -> None:
    from pyshim.cli import ui

    word = "FAIL" if state == "fail" else state
    margin = " " * _MARGIN
    first, *others = ui.wrapped(sentence, ui.width(), margin)
    ui.show(ui.state(word) + first[len(word) :])
    for line in others:
        ui.show(line)
    if hint:
        ui.paragraph(hint, f"{margin}   ", f"{margin}-> ")
