"""What runs around the program: Slurm, a container, profilers and debuggers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pyshim.doctor import processes
from pyshim.doctor.line import Line, ok, warn
from pyshim.doctor.machine import Machine

_NO_PROFILER = "measure without it; times under a profiler are not those of the program"
_ONE_BY_ONE = "it runs kernels one at a time, so nothing overlaps under it"
_SLOWS = "it may run kernels one at a time, so what overlaps under it says little"
_BESIDE = "it sits between program and driver, too; launches are seen by both"
# By the name of a process around this one.
_TOOLS = {
    "nsys": ("Nsight Systems", _BESIDE),
    "ncu": ("Nsight Compute", _ONE_BY_ONE),
    "nv-nsight-cu-cli": ("Nsight Compute", _ONE_BY_ONE),
    "nvprof": ("nvprof", _BESIDE),
    "compute-sanitizer": ("Compute Sanitizer", _SLOWS),
    "cuda-gdb": ("cuda-gdb", _SLOWS),
    "rocgdb": ("rocgdb", _SLOWS),
    "rocprof": ("rocprof", _SLOWS),
    "rocprofv2": ("rocprofv2", _BESIDE),
    "rocprofv3": ("rocprofv3", _BESIDE),
    "rocprof-sys-run": ("ROCm Systems Profiler", _BESIDE),
}
_INJECTED = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
_CGROUPS = (
    (re.compile(r"kubepods"), "Kubernetes"),
    (re.compile(r"docker[-/]"), "Docker"),
    (re.compile(r"libpod"), "Podman"),
    (re.compile(r"lxc"), "LXC"),
)
_VARIABLES = (
    ("APPTAINER_CONTAINER", "Apptainer"),
    ("SINGULARITY_CONTAINER", "Singularity"),
    ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
    ("ENROOT_ROOTFS", "Enroot"),
)
_FILES = (("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/.singularity.d", "Apptainer"))
_SHM = "/dev/shm"
_LEAST_SHM = 1 << 30


def profilers(machine: Machine) -> Iterator[Line]:
    found = False
    for name in _INJECTED:
        value = machine.set(name)
        if value:
            found = True
            there = "" if os.path.exists(value) or "/" not in value else ", which is not there"
            yield warn(f"{name}={value}{there}: CUDA loads a profiler or another tool into the process", _NO_PROFILER)
    for parent in dict.fromkeys(processes.parents()):
        if parent in _TOOLS:
            found = True
            tool, what = _TOOLS[parent]
            yield warn(f"this runs under {tool} ({parent}): {what}", _NO_PROFILER)
    if not found:
        yield ok("no profiler or debugger of GPUs is around this process")


def slurm(machine: Machine) -> Iterator[Line]:
    job = machine.set("SLURM_JOB_ID")
    if not job:
        yield ok("not in a Slurm job")
        return
    step = machine.set("SLURM_STEP_ID")
    tasks = machine.set("SLURM_STEP_NUM_TASKS") or machine.set("SLURM_NTASKS") or "1"
    where = f"step {step} of Slurm job {job}, {tasks} tasks" if step else f"Slurm job {job}, outside a step"
    export = machine.set("SLURM_EXPORT_ENV")
    if export and export != "ALL":
        yield warn(
            f"in {where}; SLURM_EXPORT_ENV={export}: srun passes on nothing else, so overlap-run before srun is lost",
            "srun --export=ALL, or write overlap-run behind srun, in front of the program",
        )
    elif machine.set("OVERLAP_TABLE"):
        yield ok(f"in {where}; a policy is set around this command (overlap-run, TaskProlog, module)")
    else:
        prolog = machine.set("SLURM_TASK_PROLOG")
        said = f"; SLURM_TASK_PROLOG={prolog}" if prolog else ""
        yield ok(f"in {where}; no policy is set around this command{said}")


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
    for pattern, kind in _CGROUPS:
        if pattern.search(machine.text("/proc/1/cgroup")):
            return kind
    return machine.set("container")


def _shm(machine: Machine) -> int | None:
    try:
        found = os.statvfs(machine.path(_SHM))
    except OSError:
        return None
    return found.f_blocks * found.f_frsize
