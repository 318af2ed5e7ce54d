"""PROGRAM: can the library be loaded into it, and by which linked library does it reach the driver?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from pyshim import _native
from pyshim.doctor import child
from pyshim.doctor.frameworks import framework
from pyshim.doctor.machine import Line, Machine, fail, ok, some, warn
from pyshim.doctor.simulated import BUILD, refusals
from pyshim.errors import OverlapError
from pyshim.start import driver, launchers, plan
from pyshim.start import program as programs
from pyshim.start.environment import line_ends

# What is linked by name -> whose GPUs it leads to, and how its launches are seen.
_LINKED = (
    (re.compile(r"libcuda\.so(\.1)?"), "nvidia", "linked to the driver itself, launches are seen by symbol"),
    (re.compile(r"libcudart\.so(\.\d+)?"), "nvidia", "shared CUDA runtime, launches are seen by symbol"),
    (re.compile(r"libamdhip64\.so(\.\d+)?"), "amd", "linked to HIP, launches are seen by symbol"),
)
_SYSTEM = re.compile(r"/(usr/)?lib(64|/[^/]+-linux-gnu)?/|linux-vdso")  # where the C library is
_NEEDED = re.compile(r"^\s*(\S+) => (not found|/.*?)(?: \(0x[0-9a-f]+\))?$", re.M)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "csh", "tcsh", "fish", "busybox"))
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?\Z")
_NOT_SIMULATED = "NVIDIA's own CUDA runtime, which does not run on the simulated GPU"


def program(machine: Machine) -> Iterator[Line]:
    if not machine.command:
        return
    found = framework(machine.command) if machine.simulated else None
    if found:
        name, package, profilers = found
        sentence = f"{name} needs {package}, whose own runtime of the GPU's vendor does not run on the simulated GPU"
        yield fail(sentence, f"on a machine with the GPU record a trace ({profilers}), then: overlap explain TRACE")
        return
    name = machine.command[0]
    try:
        path = programs.find(name, machine.environment, "overlap doctor")
    except OverlapError as error:
        yield fail(error.sentence, error.hint or programs.IN_PATH)
        return
    missing = programs.missing(path, machine.environment)
    if missing:
        yield fail(
            f"{path} ends with 127: {missing!r}, which its first line names, is not there",
            line_ends(path) or "install it, or write one that is there behind the #!",
        )
        return
    is_launcher = os.path.basename(path) in programs.LAUNCHER_KINDS
    doubt = _doubt(machine, path) if is_launcher else None
    if doubt:
        sentence, _, hint = doubt.partition(": ")
        yield fail(f"behind overlap-run, {sentence}", hint)
        return
    end, kind = programs.runs(path, machine.environment)
    script = f", a script for {end}" if end != path else ""
    if kind.kind != programs.ELF:
        yield warn(
            f"{path}{script}: {end if script else 'it'} is no ELF file that can be read: nothing more is known of it",
            "after a run, overlap report says how many launches were seen",
        )
        return
    obstacle = programs.obstacle(path, machine.environment)
    if obstacle and not (is_launcher and kind.static):
        yield fail(obstacle.sentence, obstacle.hint)
        return
    if not obstacle:
        yield ok(f"{path}{script}: the library can be loaded into it")
    if is_launcher:
        started = "starts other programs: what is set arrives there, and they are not looked at here"
        yield ok(f"{os.path.basename(path)} {started}")
    elif _is_python(path):
        yield from _script(machine.command)
    elif os.path.basename(end) in _SHELLS:
        yield ok(f"{os.path.basename(path)} is for a shell: what is set arrives at what it starts, not looked at here")
    elif not _is_python(end):
        yield from _reach(machine, end)


def _doubt(machine: Machine, path: str) -> str | None:
    """Return what overlap-run says about a launcher that loses the environment."""
    needed = {"LD_PRELOAD": plan.LIBRARY, "OVERLAP_TABLE": "..."}
    again = ("overlap-run", *(("--policy", machine.policy) if machine.policy else ()))
    return launchers.look(launchers.LauncherCall(machine.command, machine.environment, needed, again, path)).doubt


def _libraries(machine: Machine, path: str) -> dict[str, str]:
    """Return the path of each library that the loader finds for a program; empty if it is missing.

    The loader itself is asked, as ldd does: it lists them and does not start the program."""
    loader = programs.inspect(path).interpreter
    if not _SYSTEM.match(loader):  # a program that names a file of its own as its loader would start it so
        return {}
    environment = {**machine.environment, "LD_TRACE_LOADED_OBJECTS": "1"}
    environment.pop("LD_PRELOAD", None)
    try:
        outcome = child.run([loader, path], environment, machine.patience, stdout=True)
    except OSError:
        return {}
    said = outcome.answer.decode("utf-8", "replace")
    return {name: "" if found == "not found" else found for name, found in _NEEDED.findall(said)}


def _reach(machine: Machine, path: str) -> Iterator[Line]:
    """Yield the routes to a GPU by linked libraries."""
    name = os.path.basename(path)
    every = _libraries(machine, path)
    for library in (library for library, found in every.items() if not found):
        if library == programs.CUDA and not machine.vendors():
            continue  # the check of drivers has said that there is none
        hint = "LD_LIBRARY_PATH of the module or package that brings it"
        if library == programs.CUDA:
            hint = "the driver of NVIDIA brings it; without a GPU: overlap-run --simulate h100 PROGRAM"
        yield fail(f"{library}, which {name} needs, is not found: the loader ends the program", hint)
    found: dict[str, list[str]] = {}
    vendors: set[str] = set()
    foreign = []
    for library, place in {name: path, **every}.items():
        known = [(vendor, how) for pattern, vendor, how in _LINKED if pattern.fullmatch(library)]
        if known and library.startswith("libcudart") and not _is_ours(place):
            foreign.append(library)
        for vendor, how in known:
            vendors.add(vendor)
            found.setdefault(how, []).append(library)
    for how, names in found.items():
        yield ok(f"{some(names)}: {how}")
    if not found:
        yield ok(
            f"{name} is linked to no library of a GPU: launches of a CUDA runtime inside it (nvcc's default), and of "
            "plugins, are seen by dlsym"
        )
    simulated = machine.simulated
    if simulated and vendors and simulated.vendor not in vendors:
        yield _other_vendor(name, simulated)
    elif simulated and simulated.vendor == "nvidia" and foreign:
        yield fail(f"{some(foreign)}: {_NOT_SIMULATED}", BUILD)
    elif simulated and simulated.vendor == "nvidia":
        brought = [place for place in every.values() if place and not _SYSTEM.match(place) and not _is_ours(place)]
        yield from refusals(machine, [path, *brought])


def _is_ours(path: str) -> bool:
    return path.startswith(str(_native.DIRECTORY))


def _other_vendor(name: str, simulated: driver.SimulatedGpu) -> Line:
    theirs, own, other = ("AMD", "NVIDIA", "h100") if simulated.vendor == "amd" else ("NVIDIA", "AMD", "mi250x")
    return fail(
        f"{name} is for GPUs of {own}: it finds no GPU on the simulated {simulated.name}, which is one of {theirs}",
        f"overlap doctor --simulate {other} PROGRAM, or a build for {theirs}",
    )


def _script(command: Sequence[str]) -> Iterator[Line]:
    """Check the file that Python is to run, as far as it is plain which word that is."""
    name = next((word for word in command[1:] if word in ("-c", "-m") or not word.startswith("-")), "")
    if name.endswith(".py") and not os.path.exists(name):
        said = f"{name}, which {os.path.basename(command[0])} is to run, is not there"
        yield fail(said, "write its path as it is from this folder")


def _is_python(path: str) -> bool:
    return bool(_PYTHON.match(os.path.basename(path)))
