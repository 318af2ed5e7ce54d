"""PROGRAM: can the library be loaded into it, and by which way do it and its libraries reach the driver?"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator

from pyshim.doctor import binary, packages, shims
from pyshim.doctor.line import Line, fail, ok, some, warn
from pyshim.doctor.loader import RPATH, VARIABLE, Loaded, Loader, Walk
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError
from pyshim.launch import driver, elf, folder, launchers, plan
from pyshim.launch import program as programs

# What is linked by name -> how its launches are seen.
_LINKED = (
    (re.compile(r"libcuda\.so(\.1)?"), "linked to the driver itself, launches are seen by symbol"),
    (re.compile(r"libcudart\.so(\.\d+)?"), "shared CUDA runtime, which finds the driver by dlsym, and that is seen"),
    (re.compile(r"libamdhip64\.so(\.\d+)?"), "linked to HIP, launches are seen by symbol"),
)
# What is among its constants, the stronger first -> likewise.
_STATIC, _OPENS, _OPENS_HIP = b"cudaErrorCudartUnloading", b"libcuda.so", b"libamdhip64.so"
_INSIDE = {
    _STATIC: "a CUDA runtime of its own inside, which finds the driver by dlsym, and that is seen",
    _OPENS: "opens libcuda.so itself, launches are seen by dlsym",
    _OPENS_HIP: "opens libamdhip64.so itself, launches are seen by dlsym",
}
# Of these it matters which file is taken.
_CHOSEN = re.compile(r"lib(cuda|cudart|amdhip64|nccl|rccl)\.so[.\d]*")
# Programs that open libraries with RTLD_DEEPBIND unless told otherwise: Julia's Libdl.dlopen (its manual, Libdl).
_DEEP = {"julia": "its dlopen uses RTLD_DEEPBIND where nothing else is asked for"}
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "csh", "tcsh", "fish", "busybox"))
_SHOWN = 4


def program(machine: Machine) -> Iterator[Line]:
    if not machine.command:
        return
    name = machine.command[0]
    try:
        path = programs.find(name, machine.environment)
    except OverlapError as error:
        yield fail(error.sentence, error.hint or "give the path of the program, or put its folder into PATH")
        return
    behind = shims.behind(path, machine.environment, machine.patience)
    if behind and not behind.path:
        yield warn(
            f"{path} is a script of {behind.by}, and {behind.by} does not say which {os.path.basename(path)} it starts",
            f"{behind.by} which {os.path.basename(path)} says why",
        )
        return
    if behind:
        by = f" of {behind.by}" if behind.by else ""
        yield ok(f"{path} is a script{by}, which starts {behind.path}")
        path = behind.path
    missing = programs.missing(path, machine.environment)
    if missing:
        yield fail(
            f"{path} ends with 127: {missing}, which its first line names, is not there",
            "install it, or write one that is there behind the #!",
        )
        return
    end, kind = programs.runs(path, machine.environment)
    script = f", a script for {end}" if end != path else ""
    if kind.kind != elf.ELF:
        yield warn(
            f"{path}{script}: {end if script else 'it'} is no ELF file that can be read: nothing more is known of it",
            "after a run, overlap report says how many launches were seen",
        )
        yield from _launcher(machine, path)
        return
    obstacle = programs.obstacle(path, machine.environment)
    if obstacle:
        yield fail(obstacle.sentence, obstacle.hint)
        return
    yield ok(f"{path}{script}: the library can be loaded into it")
    yield from _launcher(machine, path)
    yield from _deep(end, path)
    loader = Loader(machine.environment, machine.root)
    walk = loader.walk(end)
    yield from _missing(walk)
    yield from _chosen(machine, walk.loaded)
    if packages.is_python(path):  # pyenv and others put a shell script of that name in front
        yield from _script(machine)
    if packages.is_python(end):
        yield from _python(machine, loader, end)
    elif os.path.basename(machine.command[0]) in launchers.KINDS:
        return  # what matters is what it starts
    elif packages.is_python(path):
        yield warn(
            f"{path} is a script for {end}: which Python it starts is not known here",
            "name that Python itself: overlap doctor /path/of/python ...",
        )
    elif os.path.basename(end) in _SHELLS:
        yield ok(f"{os.path.basename(path)} is for a shell: what is set arrives at what it starts, not looked at here")
    else:
        yield from _reach(machine, walk.loaded, os.path.basename(end))


def _launcher(machine: Machine, path: str) -> Iterator[Line]:
    name = os.path.basename(machine.command[0])
    if name not in launchers.KINDS:
        return
    needed = {"LD_PRELOAD": plan.LIBRARY, "OVERLAP_TABLE": "..."}
    way = launchers.look(launchers.Asked(machine.command, machine.environment, needed, path=path))
    if way.doubt:
        yield warn(
            f"behind overlap-run, {way.doubt}", "as it is, the program runs without the library, and that is said"
        )
    else:
        yield ok(f"{name} starts other programs: what is set arrives there, and they are not looked at here")


def _deep(end: str, path: str) -> Iterator[Line]:
    why = _DEEP.get(os.path.basename(end))
    if why is None and end != path and "RTLD_DEEPBIND" in driver.text(path):
        why = "the script names RTLD_DEEPBIND"
    if why:
        yield warn(
            f"{os.path.basename(path)}: {why}: launches of libraries opened so are not seen",
            "if they launch kernels, open them without it: no policy changes that, and the report does not name them",
        )


def _missing(walk: Walk) -> Iterator[Line]:
    for name, by in walk.missing[:_SHOWN]:
        hint = "LD_LIBRARY_PATH of the module or package that brings it"
        if name == driver.NAME:
            hint = "the driver of NVIDIA brings it; without a GPU: overlap doctor --simulate h100 PROGRAM"
        yield fail(f"{name}, which {os.path.basename(by)} needs, is not found: the loader ends the program", hint)
    if walk.stopped:
        yield warn(f"it loads more than {len(walk.loaded):,} libraries: the others were not looked at", "report this")


def _chosen(machine: Machine, loaded: Iterable[Loaded]) -> Iterator[Line]:
    """Where DT_RPATH wins over LD_LIBRARY_PATH."""
    folders = driver.library_path(machine.environment)
    for library in loaded:
        if library.how != RPATH or not _CHOSEN.fullmatch(library.name):
            continue
        others = (os.path.join(folder, library.name) for folder in folders)
        other = next((path for path in others if os.path.exists(path)), None)
        if other and os.path.realpath(other) != os.path.realpath(library.path):
            by = os.path.basename(library.by.path) if library.by else "it"
            yield warn(
                f"{library.name} is taken from {library.path}, by DT_RPATH of {by}, and not from LD_LIBRARY_PATH "
                f"({other})",
                f"patchelf --set-rpath, or LD_PRELOAD={other}",
            )


def _reach(machine: Machine, loaded: Iterable[Loaded], name: str) -> Iterator[Line]:
    """Yield the known routes to a GPU, each with the libraries that take it."""
    every = list(loaded)
    found: dict[str, list[str]] = {}
    foreign = []
    vendors: set[str] = set()  # whose GPUs they lead to
    for library in every:
        linked = next((sentence for pattern, sentence in _LINKED if pattern.fullmatch(library.name)), None)
        if linked and library.by:
            vendors.add("amd" if "HIP" in linked else "nvidia")
            by = os.path.basename(library.by.path)
            found.setdefault(f"{linked} ({library.name} from {library.path})", []).append(by)
            if library.name.startswith("libcudart") and library.how != VARIABLE:
                foreign.append(by)
        elif not linked:
            # The first alone: a runtime inside opens the driver, too.
            words = binary.holds(library.path, tuple(_INSIDE))
            vendors.update("amd" if word == _OPENS_HIP else "nvidia" for word in words)
            for word in words[:1]:
                found.setdefault(_INSIDE[word], []).append(os.path.basename(library.path))
                if word == _STATIC:
                    foreign.append(os.path.basename(library.path))
    for sentence, names in found.items():
        yield ok(f"{some(names)}: {sentence}")
    if not found:
        yield warn(
            f"no way to a GPU was found in {name} or the libraries that it is linked to",
            "nothing to do if it opens one later (plugins); after a run, overlap report says what was seen",
        )
    yield from _for_the_other_vendor(machine, vendors, name)
    if foreign and machine.simulated and machine.simulated.vendor == "nvidia":
        yield warn(
            f"{some(foreign)}: NVIDIA's own CUDA runtime, which does not run on the simulated GPU",
            "for a try without a GPU, build with nvcc -cudart shared, and without DT_RPATH",
        )


def _for_the_other_vendor(machine: Machine, vendors: Collection[str], name: str) -> Iterator[Line]:
    simulated = machine.simulated
    if simulated and vendors and simulated.vendor not in vendors:
        theirs, own, other = ("AMD", "NVIDIA", "h100") if simulated.vendor == "amd" else ("NVIDIA", "AMD", "mi250x")
        yield fail(
            f"{name} is for GPUs of {own}: it finds no GPU on the simulated {simulated.name}, which is one of {theirs}",
            f"overlap doctor --simulate {other} PROGRAM, or a build for {theirs}",
        )


def _script(machine: Machine) -> Iterator[Line]:
    """Check the file that Python is to run."""
    name = packages.script(machine.command[1:])
    if name and not os.path.exists(name):
        said = f"{name}, which {os.path.basename(machine.command[0])} is to run, is not there"
        yield fail(said, _from_here())


def _from_here() -> str:
    try:
        return f"write its path as it is from this folder, {os.getcwd()}"
    except FileNotFoundError:
        return f"{folder.WITHOUT}: cd to the program's folder"


def _python(machine: Machine, loader: Loader, interpreter: str) -> Iterator[Line]:
    places = packages.folders(interpreter, machine.environment)
    found = packages.installed(places)
    if not found:
        yield warn(
            f"no package that uses GPUs is in the folders of {interpreter} ({len(places)} were looked at)",
            "nothing to do if the program loads a library of its own",
        )
        return
    shown = []
    for package in found:
        built = packages.built_for(package)
        shown.append(f"{package} ({built})" if built else str(package))
    yield ok(f"packages of this Python: {', '.join(shown)}")
    seen = set()
    for name, path in packages.entrances(places):
        if name in seen:
            continue
        seen.add(name)
        loaded = loader.walk(path).loaded
        yield from _chosen(machine, loaded)
        yield from _reach(machine, loaded, os.path.basename(path))
    if any(package.name == "triton" for package in found):
        yield ok("triton: opens the driver itself, launches are seen by dlsym")
