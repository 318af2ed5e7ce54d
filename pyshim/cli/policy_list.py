"""`overlap policy list`: the policies that can be named here, and the GPUs that are known by name."""

from __future__ import annotations

import argparse
import json
import os

from pyshim.cli import ui

GPUS = {
    "key": "key",
    "name": "name",
    "architecture": "arch",
    "multiprocessors": "SMs",
    "shared_memory": "shared",
    "shared_memory_per_block": "of a block",
    "memory_gib": "GiB",
}


def run(options: argparse.Namespace) -> int:
    """Print the policies and the GPUs."""
    from pyshim.policy import library
    from pyshim.policy.gpus import known
    from pyshim.policy.reader import read_file

    found = [read_file(library.find(name, os.environ), environment=os.environ) for name in library.names(os.environ)]
    policies = [reading.policy for reading in found if reading.policy]
    for reading in found:
        if not reading.policy:
            ui.say(f"warning: {reading.file} has mistakes: overlap policy check {reading.file}")
    if options.json:
        answer = {
            "policies": [{"name": policy.name, "gpu": list(policy.gpus)} for policy in policies],
            "gpus": [gpu._asdict() for gpu in known()],
        }
        ui.answer(json.dumps(answer, indent=2))
        return 0
    ui.table(("policy", "for"), [(policy.name, ", ".join(policy.gpus) or "every GPU") for policy in policies], (0, 1))
    ui.show()
    ui.table(list(GPUS.values()), [[getattr(gpu, name) for name in GPUS] for gpu in known()], (0, 1, 2))
    return 0
