"""Variables that serialise launches, or bring another tool into the process: a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyshim.doctor.line import Line, ok, warn
from pyshim.doctor.machine import Machine

ANY = ""
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
        "CUDA_DEVICE_MAX_CONNECTIONS",
        ("1",),
        "streams share one hardware queue, and kernels start in the order of their launches; what overlaps in "
        "data-parallel training no longer does",
        "unset it unless the program asks for it (tensor parallelism in Megatron did, before Blackwell)",
    ),
    Variable(
        "CUDA_GRAPHS_USE_NODE_PRIORITY",
        ("0",),
        "graphs ignore the priority of their kernels, and raising communication in them does nothing",
        "unset it",
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


def variables(machine: Machine) -> Iterator[Line]:
    found = [variable for variable in TABLE if _matters(variable, machine)]
    for variable in found:
        yield warn(f"{variable.name}={machine.set(variable.name)}: {variable.sentence}", variable.hint)
    if not found:
        yield ok("no variable that keeps launches from overlapping is set")


def _matters(variable: Variable, machine: Machine) -> bool:
    value = machine.set(variable.name)
    if value is None:
        return False
    return value.lower() in variable.values if variable.values else value != "0"
