"""List the GPUs that are known by name: what --simulate takes.

On a real GPU all of these numbers come from its driver.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

HEADS = ("key", "name", "arch", "SMs", "threads", "blocks", "registers", "shared/SM", "shared/block", "GiB")


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("gpus", help="the GPUs that are known by name", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.launch.gpus import known

    gpus = known()
    if options.json:
        import json

        ui.answer(json.dumps({"gpus": [gpu._asdict() for gpu in gpus]}, indent=2))
    else:
        ui.table(HEADS, gpus, left=(0, 1, 2))
    return 0
