"""Other libraries that are preloaded, and the order: what stands between the program and its driver besides ours."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pyshim import _native, preload
from pyshim.doctor import binary
from pyshim.doctor.line import Line, ok, warn
from pyshim.doctor.loader import Loader
from pyshim.doctor.machine import Machine

ETC = "/etc/ld.so.preload"
_GPU = "stands between programs and the GPU, too"
# By file name. What is said of an interposer for GPUs: facts of each in its sources.
_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"libvgpu\.so"), f"HAMi, which {_GPU}"),
    (re.compile(r"libvgpu-control\.so|libcuda-control\.so"), f"a limiter of GPUs (vgpu-manager, vcuda), which {_GPU}"),
    (re.compile(r"libnvshare\.so"), f"nvshare, which {_GPU}"),
    (re.compile(r"torch_memory_saver\w*\.so.*"), f"torch_memory_saver, which {_GPU}"),
    (re.compile(r"libToolsInjection(Proxy)?64\.so"), "a profiler of NVIDIA's"),
    (re.compile(r"librocprofiler\S*\.so.*|librocprofv3\S*|libroctracer\S*\.so.*"), "a profiler of AMD's"),
    (re.compile(r"libfaketime\w*\.so.*"), "libfaketime: the time is not the real one, so reports and windows err"),
)
_HARMLESS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"lib(jemalloc|tcmalloc\w*|mimalloc)\.so.*"), "an allocator"),
    (re.compile(r"libdarshan\S*\.so.*"), "Darshan"),
    (re.compile(r"libxalt\w*\.so.*"), "XALT"),
    (re.compile(r"libeatmydata\.so.*"), "libeatmydata"),
    (re.compile(r"libnccl\.so.*|librccl\.so.*"), "a communication library, which comes before the program's own"),
    (re.compile(r"lib(stdc\+\+|gcc_s|gomp|omp|iomp5)\.so.*"), "a runtime library"),
)
_INTERCEPTED = ("dlsym", "cuLaunchKernel", "cuGetProcAddress", "cudaLaunchKernel", "hipLaunchKernel")


def preloads(machine: Machine) -> Iterator[Line]:
    variable = preload.split(machine.environment.get("LD_PRELOAD", ""))
    etc = re.split(r"[\s:]+", machine.text(ETC).strip())
    own = os.path.basename(str(_native.SHIM))
    found = [(entry, "LD_PRELOAD") for entry in variable] + [(entry, ETC) for entry in etc if entry]
    loader = Loader(machine.environment, machine.root)
    lines = [line for entry, where in found for line in _one(entry, where, own, loader)]
    yield from lines
    yield from _order(variable)
    if not found:
        yield ok("nothing else is preloaded")


def _one(entry: str, where: str, own: str, loader: Loader) -> Iterator[Line]:
    name = os.path.basename(entry)
    path = entry if "/" in entry and os.path.exists(entry) else loader.by_name(entry)
    if path is None:
        yield warn(
            f"{where} has {entry}, which is not there: every program says so in a line", f"take it out of {where}"
        )
    elif name == own:
        if os.path.realpath(entry) == os.path.realpath(_native.SHIM):
            yield ok(f"{where} has our library already")
        else:
            yield warn(f"{where} has another copy of our library: {path}", "overlap-run puts its own in its place")
    elif preload.is_sanitizer(name):
        yield ok(f"{where} has {name}, a sanitizer: it stays in front of ours")
    else:
        yield from _foreign(name, path, where)


def _foreign(name: str, path: str, where: str) -> Iterator[Line]:
    for pattern, what in _KNOWN:
        if pattern.fullmatch(name):
            yield warn(f"{where} has {name}: {what}", "overlap-run puts ours in front of it; try without it first")
            return
    functions = binary.defined(path, _INTERCEPTED)
    if functions:
        yield warn(
            f"{where} has {name}, which defines {', '.join(functions)}: it {_GPU}",
            "overlap-run puts ours in front of it; try without it first",
        )
        return
    what = next((f", {what}" for pattern, what in _HARMLESS if pattern.fullmatch(name)), "")
    yield ok(f"{where} has {name}{what}: it goes with ours")


def _order(entries: list[str]) -> Iterator[Line]:
    """Warn of a sanitizer that is not first: it ends programs."""
    for index, entry in enumerate(entries):
        if index and preload.is_sanitizer(entry) and not preload.is_sanitizer(entries[index - 1]):
            yield warn(
                f"LD_PRELOAD has {os.path.basename(entry)} behind {os.path.basename(entries[index - 1])}: a sanitizer "
                "ends programs unless it is first",
                "nothing to do under overlap-run, which moves it there; without it, write it first",
            )
