"""List the GPUs that are known by name, and which of them --simulate takes.

Of AMD's GPUs the numbers are those of one die and one of its compute units. On a real GPU all of them come from its
driver.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

HEADS = (
    "key", "name", "arch", "vendor", "SMs", "threads", "blocks", "registers", "shared/SM", "shared/block", "GiB",
    "--simulate",
)  # fmt: skip


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("gpus", help="the GPUs that are known by name", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.policy.gpus import known

    gpus = known()
    if options.json:
        import json

        ui.answer(json.dumps({"gpus": [{**gpu._asdict(), "simulated": gpu.simulated} for gpu in gpus]}, indent=2))
    else:
        ui.table(HEADS, [(*gpu, "yes" if gpu.simulated else "no") for gpu in gpus], left=(0, 1, 2, 3, 11))
    return 0
