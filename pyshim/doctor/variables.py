"""Variables that serialise launches, or bring another tool into the process: a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pyshim.doctor.line import Line, ok, warn
from pyshim.doctor.machine import Machine
from pyshim.policy.finding import closest

# What we read ourselves, or set for another part of ours; a test compares with the reference in docs/.
OURS = (
    *("OVERLAP_RUN", "OVERLAP_TABLE", "OVERLAP_REPORT", "OVERLAP_RUN_ID", "OVERLAP_QUIET"),
    *("OVERLAP_LAUNCHER_PID", "OVERLAP_POLICY", "OVERLAP_POLICY_PATH", "OVERLAP_HOME", "OVERLAP_BUILD"),
    "OVERLAP_PROGRESS",
)
CONNECTIONS, _MOST_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS", 32  # the CUDA Programming Guide, likewise
_ON = ("1", "true", "on", "yes")


class Variable(NamedTuple):
    """values: those that matter, in small letters; none: every one but 0."""

    name: str
    values: tuple[str, ...]
    sentence: str
    hint: str


# CUDA's: the CUDA Programming Guide, "CUDA environment variables". HIP's: clr's flags.hpp.
TABLE = (
    Variable("CUDA_LAUNCH_BLOCKING", (), "every launch waits for its kernel, so nothing overlaps", "unset it"),
    Variable("HIP_LAUNCH_BLOCKING", (), "every launch waits for its kernel, so nothing overlaps", "unset it"),
    Variable("AMD_SERIALIZE_KERNEL", (), "kernels run one after the other, so nothing overlaps", "unset it"),
    Variable(
        CONNECTIONS,
        ("1",),
        "streams share one hardware queue, and kernels start in the order of their launches; what overlaps in "
        "data-parallel training no longer does",
        "unset it unless the program asks for it (tensor parallelism in Megatron did, before Blackwell)",
    ),
    Variable(
        "CUDA_MODULE_LOADING",
        ("eager",),
        "all kernels are loaded at the start, which takes memory and time, and then no launch waits for loading",
        "nothing to do if this is meant",
    ),
    Variable(
        "TORCH_NCCL_BLOCKING_WAIT",
        _ON,
        "PyTorch's wait() for a collective blocks the host until it has ended, and launches behind it come late",
        "unset it",
    ),
    Variable(
        "LD_AUDIT",
        (),
        "its libraries see and may change what every symbol is bound to, ours among them",
        "try without it first",
    ),
    Variable("LD_BIND_NOT", (), "every call looks its symbol up again, which costs time at every launch", "unset it"),
)


def own(machine: Machine) -> Iterator[Line]:
    """Warn of variables whose names begin like ours, and that do not exist."""
    for name in sorted(machine.environment):
        if name.startswith("OVERLAP_") and name not in OURS:
            near = closest(name, OURS)
            hint = f"did you mean {near}?" if near else f"unset it; those that there are: {', '.join(OURS)}"
            yield warn(f"{name} is no variable of ours, so it does nothing", hint)


def variables(machine: Machine) -> Iterator[Line]:
    found = [
        warn(f"{variable.name}={machine.set(variable.name)}: {variable.sentence}", variable.hint)
        for variable in TABLE
        if _matters(variable, machine)
    ]
    found += _connections(machine)
    yield from found
    if not found:
        yield ok("no variable that keeps launches from overlapping is set")


def _connections(machine: Machine) -> Iterator[Line]:
    value = machine.set(CONNECTIONS)
    if value and not (re.fullmatch("[0-9]{1,9}", value) and 1 <= int(value) <= _MOST_CONNECTIONS):
        sentence = f"{CONNECTIONS}={value} is not a number from 1 to {_MOST_CONNECTIONS}, which is what CUDA takes"
        yield warn(sentence, "unset it: the default is 8")


def _matters(variable: Variable, machine: Machine) -> bool:
    value = machine.set(variable.name)
    if value is None:
        return False
    return value.lower() in variable.values if variable.values else value != "0"
