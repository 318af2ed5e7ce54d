"""List the GPUs that are known by name, with the shared memory of one multiprocessor in bytes.

For AMD, the numbers are those of one die and of one compute unit. On a real GPU the library takes all of them from the
driver. --json adds threads, blocks and registers.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from pyshim.policy.gpus import KnownGpu

COLUMNS = {
    "key": "key",
    "name": "name",
    "architecture": "arch",
    "multiprocessors": "SMs",
    "shared_memory": "shared",
    "shared_memory_per_block": "of a block",
    "memory_gib": "GiB",
}


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "gpus", help="list the known GPUs and their limits", description=__doc__, epilog="example: overlap gpus --json"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.policy.gpus import known

    gpus = known()
    if options.json:
        import json

        ui.answer(json.dumps({"gpus": [{**gpu._asdict(), "simulated": gpu.simulated} for gpu in gpus]}, indent=2))
    else:
        rows = [[getattr(gpu, name) for name in COLUMNS] for gpu in gpus]
        ui.table(list(COLUMNS.values()), rows, left=(0, 1, 2))
        ui.show(f"overlap-run --simulate takes {_some(gpus)}")
    return 0


def _some(gpus: Sequence[KnownGpu]) -> str:
    names = [gpu.key for gpu in gpus if gpu.simulated]
    return "each of them" if len(names) == len(gpus) else ", ".join(names)
