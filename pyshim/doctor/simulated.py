"""What the simulated GPU refuses of a program: its own code says so, in a process beside us (ask_code.py)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator

from pyshim.doctor import child
from pyshim.doctor.machine import Line, Machine, fail
from pyshim.start import program

_ASK = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ask_code.py")
_SAID = "simgpu: "  # what the simulated driver's lines begin with
_LARGEST = 256 << 20  # bytes of a file that is looked at
BUILD = "for a try without a GPU, build with nvcc -cudart shared -no-compress, and without DT_RPATH"


def refusals(machine: Machine, files: Collection[str]) -> Iterator[Line]:
    """Yield what the simulated driver of NVIDIA refuses of these files, and why."""
    assert machine.simulated
    for path in files:
        if not 0 < _size(path) <= _LARGEST:
            continue
        command = [sys.executable, "-I", "-S", _ASK, program.CUDA, path, "{answer}"]
        try:
            outcome = child.run(command, {**machine.environment, "OVERLAP_RUN": "off"}, machine.patience)
            answer = json.loads(outcome.answer) if outcome.status == 0 else {}
        except (OSError, ValueError):
            answer = {}
        lines = (line[len(_SAID) :] for line in outcome.stderr.splitlines() if line.startswith(_SAID)) if answer else ()
        name = os.path.basename(path)
        for said in dict.fromkeys(lines):
            yield fail(f"{name} does not run on the simulated GPU: {said.partition('; ')[0]}", BUILD)
            break  # the first one ends the program
        else:
            # A build has a fat binary without kernels, which may be for other GPUs.
            if answer and answer["images"] and answer["images"] == answer["refused"]:
                architecture = machine.simulated.architecture
                sentence = f"{name} has no code for {architecture}, which the simulated {machine.simulated.name} runs"
                yield fail(sentence, f"build it for this GPU: nvcc -arch={architecture}, or choose another --simulate")


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
