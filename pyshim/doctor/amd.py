"""GPUs of AMD: the kernel's driver, HIP, and variables that decide what can overlap.

What HIP does with streams is read in its sources (clr: flags.hpp, rocdevice.cpp); what more queues gained or cost, in
torchtitan's pull request 4032.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyshim.doctor.line import Line, fail, ok, warn
from pyshim.doctor.machine import HIP, Machine
from pyshim.launch.driver import AMD_DEVICE

QUEUES, TORCH, IGNORE = "GPU_MAX_HW_QUEUES", "TORCH_NCCL_HIGH_PRIORITY", "DEBUG_HIP_IGNORE_STREAM_PRIORITY"
REGISTER = "ROCPROFILER_REGISTER_ENABLED"
_QUEUES = 4  # of each priority, where nothing is set
_MANY = 16
_NO, _YES = ("0", "false", "off", "no"), ("1", "true", "on", "yes")


def kernel_driver(machine: Machine) -> Iterator[Line]:
    if machine.access(machine.path(AMD_DEVICE), os.R_OK | os.W_OK):
        yield ok(f"AMD's driver is there, and {AMD_DEVICE} is open to this user")
    else:
        sentence = f"this user may not read and write {AMD_DEVICE}, so HIP finds no GPU"
        yield fail(sentence, f"add the user to the group of {AMD_DEVICE} (render, on older systems video)")


def runtimes(machine: Machine) -> Iterator[Line]:
    if machine.simulated:
        return  # those are ours, one of each version
    found = machine.hip_runtimes()
    if not found:
        if "amd" in machine.vendors():
            sentence = f"no {HIP} in LD_LIBRARY_PATH, /opt/rocm/lib, the loader's cache or an installed PyTorch"
            yield warn(sentence, "nothing to do where the program brings its own")
        return
    named = ", ".join(f"{name} ({places[0]})" for name, places in found.items())
    numbered = [name for name in found if name != HIP]
    if len(numbered) > 1:
        sentence = f"HIP runtimes of several versions: {named}"
        yield warn(sentence, "a process must load one of them only: put its folder first in LD_LIBRARY_PATH")
    else:
        yield ok(f"HIP runtime: {named}")


def hardware_queues(machine: Machine) -> Iterator[Line]:
    """Streams of one priority that share a hardware queue run one after the other."""
    text = machine.set(QUEUES)
    if text is None and not machine.is_amd():
        return
    if text is not None and (not text.isascii() or not text.isdigit() or int(text) == 0):
        yield warn(f"{QUEUES}={text} is not a number of queues", f"unset it: the default is {_QUEUES}")
        return
    queues = _QUEUES if text is None else int(text)
    said = f"{QUEUES}={queues}" if text else f"{QUEUES} is not set, which means {queues}"
    if queues == 1:
        yield warn(f"{said}: all streams of one priority run one after the other", "unset it")
    elif queues >= _MANY:
        yield warn(
            f"{said}: 16 made a training 13.6 % slower (torchtitan, pull request 4032)",
            f"unset it, or measure {_QUEUES} and 8",
        )
    elif _is(machine, TORCH, _YES):
        yield ok(f"{said}, and {TORCH}=1 gives PyTorch's communication queues of its own")
    else:
        yield warn(
            f"{said}: streams of one priority share so many hardware queues, and two on one never overlap; without "
            f"{TORCH}=1 communication may be on one with computation",
            "nothing to do for PyTorch under a default policy for AMD, which sets it where you have not",
        )


def stream_priority(machine: Machine) -> Iterator[Line]:
    if _is(machine, IGNORE, _YES):
        yield warn(
            f"{IGNORE}={machine.set(IGNORE)}: HIP ignores the priority of streams, and {TORCH} does nothing",
            "0 turns it off; HIP's sources since 2026-07-13 have it on where nothing is set",
        )


def masks(machine: Machine) -> Iterator[Line]:
    for name in ("ROC_GLOBAL_CU_MASK", "HSA_CU_MASK"):
        value = machine.set(name)
        if value:
            yield warn(
                f"{name}={value} holds for every queue of the process, communication's too: it reserves nothing for it",
                "unset it",
            )


def dispatch_table(machine: Machine) -> Iterator[Line]:
    if _is(machine, REGISTER, _NO):
        yield warn(
            f"{REGISTER}={machine.set(REGISTER)}: HIP does not hand out its dispatch table, so launches are seen by "
            "symbol, dlsym and hipGetProcAddress only",
            "unset it",
        )
    tool = machine.set("ROCP_TOOL_LIBRARIES")
    if tool:
        yield warn(
            f"ROCP_TOOL_LIBRARIES={tool}: a profiler asks for HIP's dispatch table, too",
            "measure without it; times under a profiler are not those of the program",
        )


def _is(machine: Machine, name: str, values: tuple[str, ...]) -> bool:
    return (machine.set(name) or "").lower() in values
