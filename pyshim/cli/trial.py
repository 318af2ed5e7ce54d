"""List what trials of policies found out about programs, as `overlap report` kept it. overlap-run begins the next trial
of the same program, arguments, GPUs, driver, number of ranks and policy with it.
"""  # noqa: D205 (the description of the command)

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from pyshim.errors import OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from pyshim.launch.trials import Memory

EPILOG = """\
examples:
  overlap trial
  overlap trial train.py --json
  overlap trial --forget train.py

exit status: 0 success; 1 nothing is known of PROGRAM; 2 wrong usage"""
HEADS = ("program", "GPUs", "ranks", "policy", "kept", "runs", "latest")


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "trial", help="list or forget what trials of policies found out", description=__doc__, epilog=EPILOG
    )
    parser.add_argument(
        "program", metavar="PROGRAM", nargs="*", help="only of this executable or script: its path, or its last part"
    )
    parser.add_argument("--forget", action="store_true", help="remove it, of every program if none is named")
    parser.add_argument("--json", action="store_true", help="print one JSON object (format version 1)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.launch import trials

    known, broken = trials.remembered(os.environ)
    chosen = [one for one in known if not options.program or _is_called(one, options.program)]
    if options.program and not chosen:
        raise OverlapError(f"nothing is known of {', '.join(options.program)}", "overlap trial lists all programs")
    if options.forget:
        return _forget(chosen if options.program else None)
    for file in broken:
        ui.tell(f"warning: {file} is damaged, and counts for nothing (overlap trial --forget removes it)")
    if options.json:
        import json

        ui.answer(json.dumps({"version": 1, "programs": [_object(one) for one in chosen]}, indent=2))
    elif chosen:
        ui.table(HEADS, [_row(one) for one in chosen], left=(0, 1, 3, 4, 6))
    else:
        where = trials.folder(os.environ) or "the cache folder, which neither XDG_CACHE_HOME nor HOME names"
        ui.show(f"no trial is remembered in {where}")
    return 0


def _forget(chosen: Sequence[Memory] | None) -> int:
    from pyshim.cli import ui
    from pyshim.launch import trials

    try:
        gone = trials.forget(None if chosen is None else [one.program for one in chosen], os.environ)
    except OSError as error:
        raise OverlapError(f"{error.filename} cannot be removed: {error.strerror}") from error
    ui.say(f"forgot {gone} program{'' if gone == 1 else 's'}")
    return 0


def _is_called(one: Memory, names: Sequence[str]) -> bool:
    words = (one.program.program, *one.program.arguments)
    return any(name in (word, os.path.basename(word)) for name in names for word in words)


def _row(one: Memory) -> list[str]:
    import shlex

    program = one.program
    words = [os.path.basename(program.program), *map(os.path.basename, program.arguments)]
    return [
        shlex.join(words),
        ", ".join(dict.fromkeys(program.gpus)),
        str(program.world_size),
        program.policy,
        _verdict(one),
        f"{one.number:,}",
        one.date,
    ]


def _verdict(one: Memory) -> str:
    if one.kept is None:
        return "no verdict yet"
    if one.kept == one.program.policy:
        return "none is faster"
    samples = one.at(one.level).get(one.kept)
    change = samples and samples.change()
    return one.kept + (f" ({change.percent:+.1f} %)" if change else "")


def _object(one: Memory) -> dict[str, Any]:
    known = one.at(one.level)
    found = [(name, samples, samples.change()) for name, samples in known.items()]
    return {
        **one.program._asdict(),
        "id": one.program.id,
        "kept": one.kept,
        "level": one.level,
        "arms": [
            {
                "name": name,
                "samples": samples.count,
                "percent": change and change.percent,
                "low_percent": change and change.low,
                "high_percent": change and change.high,
            }
            for name, samples, change in found
        ],
        "runs": one.number,
        "latest": one.date,
    }
