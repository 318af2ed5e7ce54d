"""The checks: one function each, from the machine to lines. To add one: a function, and its row in CHECKS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyshim.doctor import (
    amd,
    devices,
    library,
    nccl,
    policy,
    preloads,
    program,
    surroundings,
    variables,
    visible,
)
from pyshim.doctor.line import Line, fail, warn
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError


class Check(NamedTuple):
    name: str  # that of --json
    heading: str  # under which it is told
    look: Callable[[Machine], Iterator[Line]]


LIBRARY, GPUS, PROGRAM, AROUND = "the library", "driver and GPUs", "the program", "around it"
COMMUNICATION, STREAMS = "communication", "launches and streams"

# In the order in which they are told.
CHECKS: tuple[Check, ...] = (
    Check("library", LIBRARY, library.library),
    Check("switched-off", LIBRARY, library.switched_off),
    Check("own-variables", LIBRARY, variables.own),
    Check("preloads", LIBRARY, preloads.preloads),
    Check("visible-devices", GPUS, visible.devices),
    Check("driver", GPUS, devices.drivers),
    Check("hip-runtime", GPUS, amd.runtimes),
    Check("policy", GPUS, policy.policy),
    Check("sharing", GPUS, devices.sharing),
    Check("users", GPUS, devices.users),
    Check("program", PROGRAM, program.program),
    Check("nccl", COMMUNICATION, nccl.libraries),
    Check("nccl-settings", COMMUNICATION, nccl.settings),
    Check("variables", STREAMS, variables.variables),
    Check("hardware-queues", STREAMS, amd.hardware_queues),
    Check("stream-priority", STREAMS, amd.stream_priority),
    Check("cu-mask", STREAMS, amd.masks),
    Check("dispatch-table", STREAMS, amd.dispatch_table),
    Check("profilers", AROUND, surroundings.profilers),
    Check("slurm", AROUND, surroundings.slurm),
    Check("container", AROUND, surroundings.container),
)


class Checked(NamedTuple):
    check: Check
    line: Line


def run(machine: Machine) -> list[Checked]:
    return [Checked(check, line) for check in CHECKS for line in _look(check, machine)]


def _look(check: Check, machine: Machine) -> Iterator[Line]:
    """Yield the lines of a check; an error inside it is one line, and other checks go on."""
    try:
        yield from check.look(machine)
    except OverlapError as error:
        yield fail(error.sentence, error.hint or "overlap doctor --json says which check this is")
    except Exception as error:
        said = f"{type(error).__name__}: {error}".replace("\n", " ")
        yield warn(f"the check {check.name} made a mistake ({said})", "please report it; the other checks are whole")
