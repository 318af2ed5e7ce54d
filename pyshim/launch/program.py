"""The program that is to be run: where it is, and what about it keeps the library from working."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshim import preload
from pyshim.errors import NOT_EXECUTABLE, NOT_FOUND, OverlapError
from pyshim.launch import elf

DEFAULT_PATH = "/bin:/usr/bin"
BUNDLED = ("demo-stencil",)  # ours, in PATH with --simulate
_MOST_SCRIPTS = 4  # as the kernel follows #!
_LOADER = re.compile(
    r"ld-linux[-a-z0-9_]*\.so\.[0-9]+\Z|ld-[0-9.]+\.so\Z"
)  # it has no loader, and loads what it is given


class Obstacle(NamedTuple):
    """Why the library does nothing in the program; `harmful` where the preload must not even be asked for."""

    sentence: str
    harmful: bool
    hint: str = "overlap-run does nothing for it; build it as an ordinary program of this machine, linked to glibc"


def find(name: str, environment: Mapping[str, str]) -> str:
    """Return the file that execvp would run. Raises OverlapError with 126 or 127."""
    if "/" in name:
        return _check(name, name)
    refused = None
    for folder in environment.get("PATH", DEFAULT_PATH).split(":"):
        path = os.path.join(folder or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            refused = refused or path
    if refused and name:
        raise OverlapError(f"{refused} is not executable", _instead(refused), NOT_EXECUTABLE)
    hint = f"options of overlap-run go before PROGRAM; a file in this folder is ./{name}" if name else None
    if name.endswith(_SUFFIXES):
        hint = _instead(name)
    if name in BUNDLED:
        hint = f"{name} ships with overlap-run and runs on simulated GPUs only: overlap-run --simulate h100 {name}"
    raise OverlapError(f"{name or 'an empty name'}: program not found", hint, NOT_FOUND)


_SUFFIXES = (".py", ".yaml", ".yml")


def _instead(name: str) -> str:
    """Return what to write for a file that cannot be started by itself."""
    if not name.endswith(_SUFFIXES):
        return f"chmod +x {name}"
    return f"write: python {name}" if name.endswith(".py") else f"a policy is an option: --policy {name} PROGRAM"


def _check(name: str, path: str) -> str:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise OverlapError(f"{name}: program not found", None, NOT_FOUND) from None
    except OSError as error:
        raise OverlapError(f"{name}: {error.strerror}", None, NOT_EXECUTABLE) from error
    if stat.S_ISDIR(mode):
        raise OverlapError(f"{name} is a directory", None, NOT_EXECUTABLE)
    if not os.access(path, os.X_OK):
        raise OverlapError(f"{name} is not executable", _instead(name), NOT_EXECUTABLE)
    return path


def obstacle(path: str, environment: Mapping[str, str]) -> Obstacle | None:
    """Return what is wrong with a program, looked at through the #! of scripts and through `env`."""
    path, program = runs(path, environment)
    return _of_file(path, program, environment)


def runs(path: str, environment: Mapping[str, str]) -> tuple[str, elf.Program]:
    """Return the file that the kernel runs in the end, behind the #! of scripts and behind `env`, and what it is."""
    program = elf.inspect(path)
    for _ in range(_MOST_SCRIPTS):
        if program.kind != elf.SCRIPT:
            break
        follow = _behind_env(program.argument, environment) if _base(program.interpreter) == "env" else None
        path = follow or program.interpreter
        program = elf.inspect(path)
    return path, program


def missing(path: str, environment: Mapping[str, str]) -> str:
    """Return the program of a script's #! that is missing, so that the script ends with 127; or the empty string."""
    for _ in range(_MOST_SCRIPTS):
        program = elf.inspect(path)
        if program.kind != elf.SCRIPT or not program.interpreter:
            return ""
        if not os.path.exists(program.interpreter):
            return program.interpreter
        name = _named_to_env(program.argument) if _base(program.interpreter) == "env" else ""
        try:
            path = find(name, environment) if name else program.interpreter
        except OverlapError as error:
            return name if error.status == NOT_FOUND else ""
    return ""


def _behind_env(argument: str, environment: Mapping[str, str]) -> str | None:
    name = _named_to_env(argument)
    try:
        return find(name, environment) if name else None
    except OverlapError:
        return None


def _named_to_env(argument: str) -> str:
    """Return the program that `env` is to start, where that is certain."""
    words: Sequence[str] = argument.split()
    if words and words[0] in ("-S", "--split-string"):
        words = words[1:]
    return "" if not words or words[0].startswith("-") or "=" in words[0] else words[0]


def _of_file(path: str, program: elf.Program, environment: Mapping[str, str]) -> Obstacle | None:
    if program.kind != elf.ELF:
        return None
    name = _base(path)
    here = os.uname().machine
    if program.bits == 32:
        return Obstacle(f"{name} is a 32-bit program: the library cannot be loaded into it", True)
    if program.machine != here:
        return Obstacle(
            f"{name} is a program for {program.machine}, not {here}: the library cannot be loaded into it", True
        )
    if program.static and not _LOADER.match(name):
        hint = "link it dynamically, at least to libc (nvcc -cudart static is fine)"
        sentence = f"{name} is statically linked: nothing is done in it, only in programs that it starts"
        return Obstacle(sentence, False, hint)
    if _base(program.interpreter).startswith("ld-musl"):
        return Obstacle(f"{name} is linked to musl, not glibc: the library cannot be loaded into it", True)
    loaded = [entry for entry in preload.split(environment.get("LD_PRELOAD", "")) if preload.is_sanitizer(entry)]
    sanitizers = [library for library in program.needed if preload.is_sanitizer(library)]
    if sanitizers and not loaded:
        hint = f"LD_PRELOAD={sanitizers[0]}, and ours is put behind it; or build without the sanitizer"
        return Obstacle(
            f"{name} is linked to {sanitizers[0]}, which must be loaded before any other library", True, hint
        )
    if _privileged(path):
        return Obstacle(
            f"{name} runs with other privileges (setuid, setgid or capabilities): the loader ignores LD_PRELOAD",
            False,
            "run it as the user that owns it, without those privileges",
        )
    return None


def _privileged(path: str) -> bool:
    try:
        info = os.stat(path)
    except OSError:
        return False
    if info.st_mode & stat.S_ISUID and info.st_uid != os.getuid():
        return True
    if info.st_mode & stat.S_ISGID and info.st_mode & stat.S_IXGRP and info.st_gid != os.getgid():
        return True
    try:
        return bool(os.getuid()) and bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _base(path: str) -> str:
    return os.path.basename(path)
