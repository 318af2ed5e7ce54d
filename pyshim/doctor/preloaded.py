"""The preloaded library itself, loaded into real processes, and what else is preloaded."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator

from pyshim import __version__, _native
from pyshim.doctor import child
from pyshim.doctor.machine import Line, Machine, fail, ok, warn
from pyshim.start.environment import can_preload, is_sanitizer, preload, preloaded

ETC = "/etc/ld.so.preload"
# Is it in the process, first to be asked for a symbol, and of which layout?
_LOOK = """
import ctypes, json, os, sys
name = os.path.basename(sys.argv[1])
with open("/proc/self/maps", errors="replace") as file:
    mapped = any(line.rstrip().endswith("/" + name) for line in file)
found = ctypes.CDLL(None)
version = found.overlap_abi_version() if hasattr(found, "overlap_abi_version") else None
os.write(int(sys.argv[2]), json.dumps([mapped, version]).encode())
"""


def library(machine: Machine) -> Iterator[Line]:
    path = str(_native.SHIM)
    if not os.path.isfile(path):
        yield fail(f"the library {path} is missing: programs run without it", _native.AGAIN)
        return
    if not can_preload(path):
        yield fail(f"LD_PRELOAD cannot hold the path {path}", "install into a folder without spaces, colons and quotes")
        return
    wrong = next(_loaded(machine, path), None)
    if wrong:
        yield wrong
        return
    glibc = _glibc()
    yield ok(f"the library loads into programs (version {__version__}, layout {_expected()}, {glibc})")


def _loaded(machine: Machine, path: str) -> Iterator[Line]:
    """Yield what is wrong with the library; nothing where it loads."""
    environment = {
        **machine.environment,
        "LD_PRELOAD": preload(machine.environment.get("LD_PRELOAD", ""), path),
        "OVERLAP_RUN": "off",
    }
    true = shutil.which("true", path="/bin:/usr/bin")
    programs = [[true]] if true else []
    programs.append([sys.executable, "-I", "-S", "-c", _LOOK, path, "{answer}"])
    for program in programs:
        try:
            outcome = child.run(program, environment, machine.patience)
        except OSError as error:
            yield warn(f"{program[0]} cannot be started to try the library in: {error.strerror}", _native.AGAIN)
            continue
        complaint = next((line for line in outcome.stderr.splitlines() if os.path.basename(path) in line), "")
        if outcome.status != 0 or complaint:
            why = f" ({complaint or outcome.last})" if complaint or outcome.last else ""
            yield fail(f"with the library preloaded, {program[0]} {outcome.how}{why}", _native.AGAIN)
            return
    yield from _answered(outcome, path)


def _answered(outcome: child.Outcome, path: str) -> Iterator[Line]:
    try:
        mapped, version = json.loads(outcome.answer)
    except (ValueError, TypeError):
        yield fail(f"a process with {path} preloaded gave no answer", _native.AGAIN)
        return
    if not mapped:
        yield fail(f"the loader took LD_PRELOAD={path}, but the library is not in the process", _native.AGAIN)
    elif version != _expected():
        has = "has no layout number" if version is None else f"has layout {version}"
        yield fail(f"{path} {has}, and this package {__version__} is for {_expected()}", _native.AGAIN)


def _expected() -> int:
    return int(_native.header().OVERLAP_ABI_VERSION)


def _glibc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "no glibc"
    except (OSError, ValueError):
        return "glibc of an unknown version"


def preloads(machine: Machine) -> Iterator[Line]:
    """Check other libraries that are preloaded."""
    variable = preloaded(machine.environment.get("LD_PRELOAD", ""))
    etc = [entry for entry in re.split(r"[\s:]+", machine.text(ETC)) if entry]
    for where, entry in [("LD_PRELOAD", entry) for entry in variable] + [(ETC, entry) for entry in etc]:
        name = os.path.basename(entry)
        if "/" in entry and not os.path.exists(entry):
            said = f"{where} has {entry}, which is not there: every program says so in a line"
            yield warn(said, f"take it out of {where}")
        elif name == os.path.basename(str(_native.SHIM)):
            if os.path.realpath(entry) == os.path.realpath(_native.SHIM):
                yield ok(f"{where} has our library already")
            else:
                yield warn(f"{where} has another copy of our library: {entry}", "overlap-run puts its own in its place")
        elif is_sanitizer(name):
            yield ok(f"{where} has {name}, a sanitizer: it stays in front of ours")
        else:
            yield ok(f"{where} has {name}: ours is put in front of it; if launches are missing, try without it first")
    if not (variable or etc):
        yield ok("nothing else is preloaded")
