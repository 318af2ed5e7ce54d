"""The checks: one function each, from the machine to lines. To add one: a function, and its row in CHECKS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyshim import _native
from pyshim.doctor import amd, visible
from pyshim.doctor.line import Line, fail, ok, warn
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError
from pyshim.launch import driver, preload

AGAIN = "install the package again: pip install ."


def library(machine: Machine) -> Iterator[Line]:
    path = str(_native.SHIM)
    try:
        version = _native.library().overlap_abi_version()
    except OverlapError as error:
        yield fail(error.sentence, error.hint or AGAIN)
        return
    if not preload.can_hold(path):
        yield fail(f"LD_PRELOAD cannot hold the path {path}", "install into a folder without spaces, colons and quotes")
        return
    yield ok(f"the library loads (layout {version})")


def switched_off(machine: Machine) -> Iterator[Line]:
    if machine.environment.get("OVERLAP_RUN") == "off":
        yield warn("OVERLAP_RUN=off: overlap-run does nothing here", "unset it")


def drivers(machine: Machine) -> Iterator[Line]:
    found = machine.vendors()
    if not found:
        hint = "on a machine without a GPU: overlap-run --simulate h100 PROGRAM"
        yield warn(f"no driver of a GPU: neither {driver.NAME} nor {driver.AMD_DEVICE} is there", hint)
    if "nvidia" in found:
        yield ok("NVIDIA's driver is there")
    if "amd" in found:
        yield from amd.kernel_driver(machine)


def connections(machine: Machine) -> Iterator[Line]:
    if machine.set("CUDA_DEVICE_MAX_CONNECTIONS") == "1":
        yield warn(
            "CUDA_DEVICE_MAX_CONNECTIONS=1: streams share one hardware queue, and kernels start in the order of their "
            "launches; what overlaps in data-parallel training no longer does",
            "unset it unless the program asks for it (tensor parallelism in Megatron did, before Blackwell)",
        )


# In the order in which they are told; the name is that of --json.
CHECKS: tuple[tuple[str, Callable[[Machine], Iterator[Line]]], ...] = (
    ("library", library),
    ("switched-off", switched_off),
    ("driver", drivers),
    ("hip-runtime", amd.runtimes),
    ("hardware-queues", amd.hardware_queues),
    ("stream-priority", amd.stream_priority),
    ("cu-mask", amd.masks),
    ("dispatch-table", amd.dispatch_table),
    ("visible-devices", visible.devices),
    ("connections", connections),
)


class Checked(NamedTuple):
    name: str
    line: Line


def run(machine: Machine) -> list[Checked]:
    return [Checked(name, line) for name, check in CHECKS for line in check(machine)]
