"""PROGRAM: can the library be loaded into it, by which route does it reach the driver, and which NCCL would it take?"""

from __future__ import annotations

import functools
import json
import mmap
import os
import re
from collections.abc import Iterator, Sequence

from pyshim import _native
from pyshim.doctor import child
from pyshim.doctor.machine import Line, Machine, ask, fail, ok, some, warn
from pyshim.errors import OverlapError
from pyshim.launch import driver, launchers, plan
from pyshim.launch import program as programs
from pyshim.launch.environment import line_ends, preloaded

# What is linked by name -> whose GPUs it leads to, and how its launches are seen.
_LINKED = (
    (re.compile(r"libcuda\.so(\.1)?"), "nvidia", "linked to the driver itself, launches are seen by symbol"),
    (re.compile(r"libcudart\.so(\.\d+)?"), "nvidia", "shared CUDA runtime, launches are seen by symbol"),
    (re.compile(r"libamdhip64\.so(\.\d+)?"), "amd", "linked to HIP, launches are seen by symbol"),
)
# What is among the constants of a file -> likewise. The first: NVIDIA's static runtime.
_STATIC = b"cudaErrorCudartUnloading"
_HELD = (
    (_STATIC, "nvidia", "a CUDA runtime of its own inside, launches are seen by dlsym"),
    (b"libcuda.so", "nvidia", "opens libcuda.so itself, launches are seen by dlsym"),
    (b"libamdhip64.so", "amd", "opens libamdhip64.so itself, launches are seen by dlsym"),
)
# A program that has none of these, and no route, uses no GPU: it opens no library, and starts no other program.
_LATER = (b"dlopen", b"execv", b"posix_spawn")
_LIBC = re.compile(r"(lib(c|m|dl|rt|pthread)|ld-linux[\w-]*)\.so\.\d+|linux-vdso\.so\.1")
_SYSTEM = re.compile(r"/(usr/)?lib(64|/[^/]+-linux-gnu)?/|linux-vdso")  # where the C library is
_MOST_CONSTANTS = 64 << 20  # bytes of a file that are searched
_NEEDED = re.compile(r"^\s*(\S+) => (not found|/.*?)(?: \(0x[0-9a-f]+\))?$", re.M)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "csh", "tcsh", "fish", "busybox"))
# What uses GPUs, and nvidia.nccl.
_NAMES = ("torch", "jax", "cupy", "tensorflow", "numba", "triton", "nvidia.nccl")
_LOOK = """
import sys
sys.path = [folder for folder in sys.path if folder]  # not the current one
import importlib.util, json, os
def place(name):
    try:
        found = importlib.util.find_spec(name)
    except Exception:
        return None
    return next(iter(found.submodule_search_locations or ()), None) if found else None
os.write(int(sys.argv[1]), json.dumps({name: place(name) for name in sys.argv[2:]}).encode())
"""
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?\Z")
_NOT_SIMULATED = "NVIDIA's own CUDA runtime, which does not run on the simulated GPU"
_NCCL = ("libnccl.so.2", "librccl.so.1", "librccl.so")
# Below the folders of packages.
_IN_PACKAGES = (("nvidia.nccl", "lib/libnccl.so.2"), ("torch", "lib/libnccl.so.2"), ("torch", "lib/librccl.so"))


def program(machine: Machine) -> Iterator[Line]:
    if not machine.command:
        return
    name = machine.command[0]
    try:
        path = programs.find(name, machine.environment, "overlap doctor")
    except OverlapError as error:
        yield fail(error.sentence, error.hint or "give the path of the program, or put its folder into PATH")
        return
    missing = programs.missing(path, machine.environment)
    if missing:
        yield fail(
            f"{path} ends with 127: {missing!r}, which its first line names, is not there",
            line_ends(path) or "install it, or write one that is there behind the #!",
        )
        return
    is_launcher = os.path.basename(path) in programs.LAUNCHERS
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
    elif is_python(path):
        yield from _script(machine.command)
        yield from _python(machine, path)
    elif is_python(end):
        yield from _python(machine, end)
    elif os.path.basename(end) in _SHELLS:
        yield ok(f"{os.path.basename(path)} is for a shell: what is set arrives at what it starts, not looked at here")
    else:
        yield from _reach(machine, end)


def _end(machine: Machine) -> tuple[str, str]:
    """Return what PROGRAM runs in the end, and the Python that it is or starts; empty where there is none."""
    if not machine.command:
        return "", ""
    try:
        path = programs.find(machine.command[0], machine.environment)
    except OverlapError:
        return "", ""
    end = programs.runs(path, machine.environment)[0]
    return end, next((one for one in (path, end) if is_python(one)), "")


def _doubt(machine: Machine, path: str) -> str | None:
    """Return what overlap-run says about a launcher that loses the environment."""
    needed = {"LD_PRELOAD": plan.LIBRARY, "OVERLAP_TABLE": "..."}
    again = ("overlap-run", *(("--policy", machine.policy) if machine.policy else ()))
    return launchers.look(launchers.Asked(machine.command, machine.environment, needed, again, path)).doubt


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
    """Yield the known routes to a GPU, each with the files that take it."""
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
        if known and library.startswith("libcudart") and not place.startswith(str(_native.DIRECTORY)):
            foreign.append(library)
        if not known and place and not (_SYSTEM.match(place) and place != path):
            held = _held(place)
            known = [(vendor, how) for word, vendor, how in _HELD if word in held][:1]
            known += [("amd", _HELD[2][2])] if _HELD[2][0] in held and known and known[0][0] != "amd" else []
            foreign += [library] if _STATIC in held else []
        for vendor, how in known:
            vendors.add(vendor)
            found.setdefault(how, []).append(library)
    for how, names in found.items():
        yield ok(f"{some(names)}: {how}")
    files = (place for library, place in {name: path, **every}.items() if place and not _LIBC.fullmatch(library))
    if not found and not any(_held(place).intersection(_LATER) for place in files):
        said = f"{name} uses no GPU: neither it nor a library that it is linked to has a route to one"
        yield fail(said, "name the program that does")
    elif not found:
        yield warn(
            f"no route to a GPU was found in {name} or the libraries that it is linked to",
            "nothing to do if it loads a plugin, or starts another program, that has one; else name that program",
        )
    simulated = machine.simulated
    if simulated and vendors and simulated.vendor not in vendors:
        yield _other_vendor(name, simulated)
    elif simulated and simulated.vendor == "nvidia" and foreign:
        hint = "for a try without a GPU, build with nvcc -cudart shared -no-compress, and without DT_RPATH"
        yield fail(f"{some(foreign)}: {_NOT_SIMULATED}", hint)


def _other_vendor(name: str, simulated: driver.Gpu) -> Line:
    theirs, own, other = ("AMD", "NVIDIA", "h100") if simulated.vendor == "amd" else ("NVIDIA", "AMD", "mi250x")
    return fail(
        f"{name} is for GPUs of {own}: it finds no GPU on the simulated {simulated.name}, which is one of {theirs}",
        f"overlap doctor --simulate {other} PROGRAM, or a build for {theirs}",
    )


@functools.cache
def _held(path: str) -> frozenset[bytes]:
    """Return the words of _HELD and _LATER that are in a file."""
    try:
        with open(path, "rb", opener=driver.at_once) as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: it is empty
        return frozenset()
    linked = programs.inspect(path).needed  # whose names are in the file, too
    words = [
        word
        for word in (*(word for word, _, _ in _HELD), *_LATER)
        if not any(name.startswith(word.decode()) for name in linked)
    ]
    with data:
        return frozenset(word for word in words if data.find(word, 0, _MOST_CONSTANTS) >= 0)


def _script(command: Sequence[str]) -> Iterator[Line]:
    """Check the file that Python is to run, as far as it is plain which word that is."""
    name = next((word for word in command[1:] if word in ("-c", "-m") or not word.startswith("-")), "")
    if name.endswith(".py") and not os.path.exists(name):
        said = f"{name}, which {os.path.basename(command[0])} is to run, is not there"
        yield fail(said, "write its path as it is from this folder")


def _python(machine: Machine, python: str) -> Iterator[Line]:
    found = _places(machine, python)
    if found is None:
        yield warn(f"{python} does not say which packages it has", f"try: {python} -c 'import torch'")
        return
    shown = [name for name in found if name not in ("torch", "nvidia.nccl")]
    if "torch" in found:
        version, built = _pytorch(found["torch"])
        if not built:
            said = f"PyTorch {version} ({found['torch']}) is built without CUDA and HIP: it uses no GPU"
            yield (warn if shown else fail)(said, "install a build of PyTorch for the GPU: https://pytorch.org")
        elif machine.simulated and (machine.simulated.vendor == "nvidia") is not built.startswith("CUDA"):
            yield _other_vendor(f"PyTorch {version} ({built})", machine.simulated)
        elif machine.simulated and machine.simulated.vendor == "nvidia":
            yield fail(f"PyTorch brings {_NOT_SIMULATED}", "overlap demo shows programs that do")
        shown.insert(0, f"torch {version} ({built or 'no GPU'})")
    if shown:
        yield ok(f"packages of this Python: {', '.join(shown)}")
    else:
        yield warn(
            f"{python} finds none of the packages for GPUs that are known here",
            "nothing to do if the program loads a library of its own",
        )


def is_python(path: str) -> bool:
    return bool(_PYTHON.match(os.path.basename(path)))


def _places(machine: Machine, python: str) -> dict[str, str] | None:
    """Return the folder of each package that this Python, or a script that starts one, finds; None: it does not say."""
    environment = {**machine.environment, "OVERLAP_RUN": "off", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        outcome = child.run([python, "-c", _LOOK, "{answer}", *_NAMES], environment, machine.patience)
        found = json.loads(outcome.answer)
    except (OSError, ValueError):
        return None
    return {name: folder for name, folder in found.items() if isinstance(folder, str)}


def _pytorch(folder: str) -> tuple[str, str]:
    """Return PyTorch's version, and what it was built for: CUDA 13.0, HIP 7.2; empty for the CPU."""
    said = driver.text(os.path.join(folder, "version.py"))
    version = re.search(r"^__version__ = '([^']+)'", said, re.M)
    for word, pattern in (("CUDA", r"^cuda\b[^=]*=\s*'([^']+)'"), ("HIP", r"^hip\b[^=]*=\s*'([^']+)'")):
        found = re.search(pattern, said, re.M)
        if found:
            return version[1] if version else "", f"{word} {found[1]}"
    return version[1] if version else "", ""


def nccl(machine: Machine) -> Iterator[Line]:
    found: dict[str, list[str]] = {}
    for path in dict.fromkeys(os.path.realpath(path) for path in _paths(machine)):
        found.setdefault(_version(machine, path), []).append(path)
    if not found:
        yield ok("no NCCL or RCCL is found here; a program may bring its own")
        return
    named = "; ".join(f"{version} ({', '.join(paths)})" for version, paths in found.items())
    if len(found) > 1 and len({version.split()[0] for version in found}) == 1:
        hint = "all ranks must load the same one; after a run, NCCL_DEBUG=VERSION says which it was"
        yield warn(f"several versions: {named}", hint)
    else:
        yield ok(named)


def _paths(machine: Machine) -> Iterator[str]:
    """Yield libraries in the order in which a program would take them."""
    for entry in preloaded(machine.environment.get("LD_PRELOAD", "")):
        if os.path.basename(entry).startswith(_NCCL) and os.path.isfile(entry):
            yield entry
    packages = _packages(machine)
    for name, file in _IN_PACKAGES:
        path = os.path.join(packages.get(name, ""), file)
        if name in packages and os.path.isfile(path):
            yield path
    yield from (path for name, path in _linked(machine).items() if name in _NCCL)
    for name in _NCCL:
        folders = (*programs.library_path(machine.environment), machine.path("/opt/rocm/lib"))
        yield from (path for folder in folders if os.path.isfile(path := os.path.join(folder, name)))
        yield from (machine.path(path) for path in programs.cached(machine.root) if os.path.basename(path) == name)


def _packages(machine: Machine) -> dict[str, str]:
    """Return the folder of each package for GPUs, where PROGRAM is a Python."""
    end, python = _end(machine)
    return _places(machine, python) or {} if end and python else {}


def _linked(machine: Machine) -> dict[str, str]:
    """Return the libraries that PROGRAM is linked to, by name; empty where one is missing."""
    end, python = _end(machine)
    return {name: path for name, path in _libraries(machine, end).items() if path} if end and not python else {}


def _version(machine: Machine, path: str) -> str:
    """Return `NCCL 2.28.9`, asked of the library itself in a process of its own."""
    library = "RCCL" if "rccl" in os.path.basename(path) else "NCCL"
    number = ask("nccl", path, machine.environment, machine.patience).version
    return f"{library} {_dotted(number) if number else 'of an unknown version'}"


def _dotted(number: int) -> str:
    """As ncclGetVersion counts: 22809 is 2.28.9, and 2708 was 2.7.8."""
    step = 1000 if number < 10000 else 10000
    return f"{number // step}.{number % step // 100}.{number % 100}"
