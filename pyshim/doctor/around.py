"""What is around the program: variables that end all overlap, profilers, Slurm, a container."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil

from pyshim.doctor.machine import Line, Machine, fail, ok, warn
from pyshim.policy.finding import closest
from pyshim.start import plan

# What we read ourselves, or set for another part of ours; a test compares with the reference in docs/.
OURS = (
    *("OVERLAP_RUN", "OVERLAP_TABLE", "OVERLAP_REPORT", "OVERLAP_QUIET"),
    *("OVERLAP_LAUNCHER_PID", "OVERLAP_POLICY", "OVERLAP_POLICY_PATH", "OVERLAP_HOME", "OVERLAP_BUILD"),
    "OVERLAP_PROGRESS",
)
CONNECTIONS, _MOST_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS", 32  # the CUDA Programming Guide
_ON = ("1", "true", "on", "yes")
_ONE_BY_ONE = "nothing overlaps"


class Variable(NamedTuple):
    """values: those that matter, in small letters; none: every one but 0. stops: nothing can overlap."""

    name: str
    values: tuple[str, ...]
    sentence: str
    hint: str
    stops: bool = False


# CUDA's: the CUDA Programming Guide, "CUDA environment variables". HIP's: clr's flags.hpp.
TABLE = (
    Variable("CUDA_LAUNCH_BLOCKING", (), f"every launch waits for its kernel, so {_ONE_BY_ONE}", "unset it", True),
    Variable("HIP_LAUNCH_BLOCKING", (), f"every launch waits for its kernel, so {_ONE_BY_ONE}", "unset it", True),
    Variable("AMD_SERIALIZE_KERNEL", (), f"kernels run one after the other, so {_ONE_BY_ONE}", "unset it", True),
    Variable(
        CONNECTIONS,
        ("1",),
        "streams share one hardware queue, and kernels start in the order of their launches; what overlaps in "
        "data-parallel training no longer does",
        "unset it unless the program asks for it (tensor parallelism in Megatron did, before Blackwell)",
    ),
    Variable(
        "TORCH_NCCL_BLOCKING_WAIT",
        _ON,
        "PyTorch's wait() for a collective blocks the host until it has ended, and launches behind it come late",
        "unset it",
    ),
    Variable(
        "NCCL_LAUNCH_ORDER_IMPLICIT",
        ("1",),
        "communicators of one GPU wait for each other in the order of the host's launches",
        "unset it, unless several communicators run at once and deadlock without it",
    ),
    Variable(
        "DEBUG_HIP_IGNORE_STREAM_PRIORITY",
        _ON,
        "HIP ignores the priority of streams",
        "0 turns it off; HIP's sources since 2026-07-13 have it on where nothing is set",
    ),
    Variable("LD_AUDIT", (), "its libraries may change what every symbol is bound to", "try without it first"),
    Variable("LD_BIND_NOT", (), "every call looks its symbol up again, which costs time at every launch", "unset it"),
)
# By the name of a process around this one.
_TOOLS = {
    "nsys": "Nsight Systems",
    "ncu": f"Nsight Compute, which runs kernels one at a time: {_ONE_BY_ONE}",
    "compute-sanitizer": "Compute Sanitizer",
    "cuda-gdb": "cuda-gdb",
    "rocgdb": "rocgdb",
    "rocprof": "rocprof",
    "rocprofv3": "rocprofv3",
}
_CGROUPS = (("kubepods", "Kubernetes"), ("docker[-/]", "Docker"), ("libpod", "Podman"), ("lxc", "LXC"))
_VARIABLES = (
    ("APPTAINER_CONTAINER", "Apptainer"),
    ("SINGULARITY_CONTAINER", "Singularity"),
    ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
    ("ENROOT_ROOTFS", "Enroot"),
)
_FILES = (("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/.singularity.d", "Apptainer"))
_SHM, _LEAST_SHM = "/dev/shm", 1 << 30


def variables(machine: Machine) -> Iterator[Line]:
    own = list(_ours(machine))
    yield from own
    found = bool(own)
    for variable in TABLE:
        value = machine.set(variable.name)
        if value is None or not (value.lower() in variable.values if variable.values else value != "0"):
            continue
        found = True
        yield (fail if variable.stops else warn)(f"{variable.name}={value}: {variable.sentence}", variable.hint)
    value = machine.set(CONNECTIONS)
    if value and not (re.fullmatch("[0-9]{1,9}", value) and 1 <= int(value) <= _MOST_CONNECTIONS):
        found = True
        sentence = f"{CONNECTIONS}={value} is not a number from 1 to {_MOST_CONNECTIONS}, which is what CUDA takes"
        yield warn(sentence, "unset it: the default is 8")
    if not found:
        yield ok("no variable is set that keeps launches from overlapping")


def _ours(machine: Machine) -> Iterator[Line]:
    """Check variables that switch the library off, and those whose names begin like ours and do not exist."""
    if machine.environment.get("OVERLAP_RUN") == plan.OFF:
        yield fail("OVERLAP_RUN=off: overlap-run does nothing here", "unset it")
    elif machine.policy is None and machine.environment.get(plan.CHOICE) == plan.OFF:
        yield fail(f"{plan.CHOICE}=off: overlap-run does nothing here without --policy", "unset it")
    for name in sorted(machine.environment):
        if name.startswith("OVERLAP_") and name not in OURS:
            near = closest(name, OURS)
            hint = f"did you mean {near}?" if near else f"unset it; those that there are: {', '.join(OURS)}"
            yield warn(f"{name} is no variable of ours, so it does nothing", hint)


def profilers(machine: Machine) -> Iterator[Line]:
    """Warn of profilers and debuggers around this process."""
    injected = machine.set("CUDA_INJECTION64_PATH")
    found = [f"CUDA_INJECTION64_PATH={injected}: CUDA loads it into the process"] if injected else []
    with suppress(psutil.Error):
        for parent in psutil.Process().parents():
            with suppress(psutil.Error):
                name = parent.name()
                found += [f"this runs under {_TOOLS[name]} ({name})"] if name in _TOOLS else []
    for sentence in found:
        yield warn(sentence, "measure without it; times under a profiler are not those of the program")
    if not found:
        yield ok("no profiler or debugger of GPUs is around this process")


def slurm(machine: Machine) -> Iterator[Line]:
    job = machine.set("SLURM_JOB_ID")
    if not job:
        yield ok("not in a Slurm job")
        return
    step = machine.set("SLURM_STEP_ID")
    tasks = machine.set("SLURM_STEP_NUM_TASKS") or machine.set("SLURM_NTASKS") or "1"
    where = (
        f"step {step} of Slurm job {job}, {tasks} task{'s' * (tasks != '1')}"
        if step
        else f"Slurm job {job}, outside a step"
    )
    export = machine.set("SLURM_EXPORT_ENV")
    if export and export != "ALL":
        yield warn(
            f"in {where}; SLURM_EXPORT_ENV={export}: srun passes on nothing else, so overlap-run before srun is lost",
            "srun --export=ALL, or write overlap-run behind srun, in front of the program",
        )
        return
    policy = "a policy is set" if machine.set("OVERLAP_TABLE") else "no policy is set"
    prolog = machine.set("SLURM_TASK_PROLOG")
    yield ok(f"in {where}; {policy} around this command" + (f"; SLURM_TASK_PROLOG={prolog}" if prolog else ""))


def container(machine: Machine) -> Iterator[Line]:
    kind = _container(machine)
    if kind is None:
        yield ok("not in a container, as far as can be seen")
        return
    size = _shm(machine)
    if size is not None and size < _LEAST_SHM:
        yield warn(
            f"in a container ({kind}) with {size >> 20} MiB of {_SHM}: NCCL may fail between GPUs of one host",
            "docker run --shm-size=8g or --ipc=host",
        )
    else:
        yield ok(f"in a container ({kind})")


def _container(machine: Machine) -> str | None:
    for name, kind in _VARIABLES:
        if machine.set(name):
            return kind
    for file, kind in _FILES:
        if machine.exists(file):
            return kind
    groups = machine.text("/proc/1/cgroup")
    return next((kind for pattern, kind in _CGROUPS if re.search(pattern, groups)), machine.set("container"))


def _shm(machine: Machine) -> int | None:
    try:
        found = os.statvfs(machine.path(_SHM))
    except OSError:
        return None
    return found.f_blocks * found.f_frsize
