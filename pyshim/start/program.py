"""The program that is to be run: where it is, and what about its file and this machine keeps the library from working.

The reader of ELF headers checks every offset before it follows it; whatever is odd or unreadable makes the answer
UNKNOWN, and an unknown program is run as any other. Drivers are looked for, never opened.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshim.errors import NOT_EXECUTABLE, NOT_FOUND, OverlapError
from pyshim.start.environment import DEFAULT_PATH, is_sanitizer, preloaded

IN_PATH = "give the path of the program, or put its folder into PATH"
BUNDLED = ("demo-stencil",)  # ours, in PATH with --simulate
# Programs that start others elsewhere or anew, and their row of launchers.py.
LAUNCHER_KINDS = {
    "srun": "srun",
    "sbatch": "sbatch",
    "salloc": "salloc",
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prterun"), "mpirun"),
    **dict.fromkeys(("mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra"), "mpirun"),
    "env": "env",
    **dict.fromkeys(("sudo", "doas"), "sudo"),
    **dict.fromkeys(("su", "runuser"), "su"),
    **dict.fromkeys(("ssh", "rsh"), "ssh"),
    "deepspeed": "deepspeed",
    "ray": "ray",
    **dict.fromkeys(("docker", "podman", "nerdctl"), "docker"),
    **dict.fromkeys(("apptainer", "singularity"), "apptainer"),
    **dict.fromkeys(("nohup", "nice", "timeout", "stdbuf", "setsid"), "through"),
}
CUDA = "libcuda.so.1"
NVIDIA_PROC = "/proc/driver/nvidia/version"
AMD_DEVICE = "/dev/kfd"
_CACHE = "/etc/ld.so.cache"
_CACHE_SIZE = 16 << 20  # bytes; a larger file is no cache

UNKNOWN, ELF, SCRIPT = "unknown", "elf", "script"
MACHINES = {
    62: "x86_64",
    183: "aarch64",
    3: "i386",
    40: "arm",
    21: "ppc64",
    22: "s390x",
    243: "riscv64",
    258: "loongarch64",
}

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 0, 1, 5, 10
_SHORTEST = 52  # the smaller of the two file headers
_MOST_HEADERS, _MOST_DYNAMIC, _LONGEST = 256, 4096, 1 << 14
_MOST_SCRIPTS = 4  # as the kernel follows #!
_LOADER = re.compile(
    r"ld-linux[-a-z0-9_]*\.so\.[0-9]+\Z|ld-[0-9.]+\.so\Z"
)  # it has no loader, and loads what it is given


class Program(NamedTuple):
    kind: str = UNKNOWN
    bits: int = 0
    machine: str = ""
    interpreter: str = ""  # of ELF: the loader, empty where there is none; of a script: the program behind #!
    argument: str = ""  # of a script: what follows the interpreter on its line
    needed: tuple[str, ...] = ()

    @property
    def static(self) -> bool:
        return self.kind == ELF and not self.interpreter


class _Odd(Exception):
    """The file is not what its headers say."""


class Obstacle(NamedTuple):
    """Why the library does nothing in the program; `harmful` where the preload must not even be asked for."""

    sentence: str
    harmful: bool
    hint: str = "overlap-run does nothing for it; build it as an ordinary program of this machine, linked to glibc"


def find(name: str, environment: Mapping[str, str], starter: str = "overlap-run") -> str:
    """Return the file that execvp would run. Raises OverlapError with 126 or 127. starter: the command of ours."""
    if "/" in name:
        return _check(name, name, environment)
    refused = None
    for folder in environment.get("PATH", DEFAULT_PATH).split(":"):
        path = os.path.join(folder or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            refused = refused or path
    if refused and name:
        raise OverlapError(f"{refused} is not executable", _instead(refused), NOT_EXECUTABLE)
    hint = f"the file in this folder is ./{name}" if os.path.isfile(name) else IN_PATH
    if meant := _words(name, environment):
        raise OverlapError(f"{name}: program not found", meant, NOT_FOUND)
    if name.endswith(_SUFFIXES):
        hint = _instead(name)
    if name in BUNDLED:
        hint = f"{name} ships with overlap-run and runs on simulated GPUs only: {_simulating(name, starter)}"
        off = next((choice for choice in ("OVERLAP_RUN", "OVERLAP_POLICY") if environment.get(choice) == "off"), None)
        hint = f"{off}=off disables --simulate, which brings {name}: unset {off}" if off else hint
    elif close := _close(name, BUNDLED):
        hint = f"did you mean {close}? {_simulating(close, starter, environment.get('SIMGPU', 'h100'))}"
    raise OverlapError(f"{name or 'an empty name'}: program not found", hint, NOT_FOUND)


_SUFFIXES = (".py", ".yaml", ".yml")


def _simulating(name: str, starter: str, gpu: str = "h100") -> str:
    """Return the command that runs a program of ours on a simulated GPU."""
    return f"{starter} --simulate {gpu}{' --' * (starter == 'overlap tune')} {name}"


def is_there(name: str, environment: Mapping[str, str]) -> bool:
    """Return whether a word is a program that can be started, or one of ours."""
    try:
        return name in BUNDLED or bool(find(name, environment))
    except OverlapError:
        return False


def _close(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # which most starts need not import

    return next(iter(get_close_matches(name, names, n=1, cutoff=0.8)), "")


def _words(name: str, environment: Mapping[str, str]) -> str:
    """Return what to write instead of a command in quotes, or of a variable; "": it is neither."""
    variable, equals, _ = name.partition("=")
    if equals and variable.isidentifier():
        return f"a variable is set by env: env {name} PROGRAM"
    first = name.split()[:1]
    return f"leave the quotes out: {name}" if first and first != [name] and is_there(first[0], environment) else ""


def _nearby(name: str, environment: Mapping[str, str]) -> str:
    """Return what to write instead of a path that leads to no file."""
    around, base = os.path.split(name)
    try:
        names = os.listdir(around)
    except OSError as error:
        return f"the folder {around} cannot be read: {error.strerror}"
    able = [one for one in names if os.access(os.path.join(around, one), os.X_OK)]
    close = _close(base, [one for one in able if os.path.isfile(os.path.join(around, one))])
    if close:
        return f"did you mean {os.path.join(around, close)}?"
    if base in BUNDLED:
        return f"{base} ships with overlap-run: name it without a folder, behind --simulate h100"
    if is_there(base, environment):
        return f"{base} is in PATH: write it without its folder"
    return f"{os.path.realpath(around)} holds no {base}: build it, or name the program by its path from here"


def _instead(name: str) -> str:
    """Return what to write for a file that cannot be started by itself."""
    if not name.endswith(_SUFFIXES):
        return f"chmod +x {name}"
    return f"write: python {name}" if name.endswith(".py") else f"a policy is an option: --policy {name} PROGRAM"


_REACH = "ls -ld on it and on the folders above says who may enter them"


def _inside(folder: str) -> str:
    """Return what to write for a folder."""
    names = sorted(name for name in _entries(folder) if _is_program(os.path.join(folder, name)))
    close = _close(os.path.basename(os.path.realpath(folder)), names) or (names[0] if len(names) == 1 else "")
    return f"did you mean {os.path.join(folder, close)}?" if close else "name a program in it"


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _check(name: str, path: str, environment: Mapping[str, str]) -> str:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        hint = _words(name, environment) or _nearby(name, environment)
        raise OverlapError(f"{name}: program not found", hint, NOT_FOUND) from None
    except OSError as error:
        raise OverlapError(f"{name}: {error.strerror}", _REACH, NOT_EXECUTABLE) from error
    if stat.S_ISDIR(mode):
        raise OverlapError(f"{name} is a directory", _inside(name), NOT_EXECUTABLE)
    if not os.access(path, os.X_OK):
        raise OverlapError(f"{name} is not executable", _instead(name), NOT_EXECUTABLE)
    return path


def obstacle(path: str, environment: Mapping[str, str]) -> Obstacle | None:
    """Return what is wrong with a program, looked at through the #! of scripts and through `env`."""
    path, program = runs(path, environment)
    return _of_file(path, program, environment)


def runs(path: str, environment: Mapping[str, str]) -> tuple[str, Program]:
    """Return the file that the kernel runs in the end, behind the #! of scripts and behind `env`, and what it is."""
    program = inspect(path)
    for _ in range(_MOST_SCRIPTS):
        if program.kind != SCRIPT:
            break
        follow = _behind_env(program.argument, environment) if _base(program.interpreter) == "env" else None
        path = follow or program.interpreter
        program = inspect(path)
    return path, program


def missing(path: str, environment: Mapping[str, str]) -> str:
    """Return the program of a script's #! that is missing, so that the script ends with 127; or the empty string."""
    for _ in range(_MOST_SCRIPTS):
        program = inspect(path)
        if program.kind != SCRIPT or not program.interpreter:
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
    words: Sequence[str] = list(filter(None, argument.split(" ")))
    if words and words[0] in ("-S", "--split-string"):
        words = " ".join(words[1:]).split()  # env parts words at any white space, at the end of a line of Windows too
    return "" if not words or words[0].startswith("-") or "=" in words[0] else words[0]


def _of_file(path: str, program: Program, environment: Mapping[str, str]) -> Obstacle | None:
    if program.kind != ELF:
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
    loaded = [entry for entry in preloaded(environment.get("LD_PRELOAD", "")) if is_sanitizer(entry)]
    sanitizers = [library for library in program.needed if is_sanitizer(library)]
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


def inspect(path: str) -> Program:
    try:
        # Not blocking: a named pipe must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return Program()
    try:
        head = os.pread(descriptor, 256, 0)
        if head[:2] == b"#!":
            return _script(head)
        if head[:4] == b"\x7fELF" and len(head) >= _SHORTEST:
            return _elf(descriptor, head)
    except (OSError, OverflowError, struct.error, _Odd):  # OverflowError: no file has such an offset
        pass
    finally:
        os.close(descriptor)
    return Program()


def _script(head: bytes) -> Program:
    line = head[2:].split(b"\n", 1)[0].strip(b" \t\0")  # as the kernel: a \r stays, and no such program is there
    interpreter, _, argument = line.replace(b"\t", b" ").partition(b" ")
    if not interpreter:
        return Program()
    return Program(SCRIPT, interpreter=os.fsdecode(interpreter), argument=os.fsdecode(argument.strip(b" ")))


def _elf(descriptor: int, head: bytes) -> Program:
    bits = {1: 32, 2: 64}.get(head[4])
    order = {1: "<", 2: ">"}.get(head[5])
    if bits is None or order is None:
        raise _Odd
    wide = bits == 64
    kind, machine = struct.unpack_from(order + "HH", head, 16)
    if kind not in (2, 3):  # neither an executable nor a position-independent one
        raise _Odd
    name = MACHINES.get(machine, f"machine {machine}")
    if order == ">":
        return Program(ELF, bits, name + " (big-endian)", interpreter="?")
    (offset,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
    if not 0 < count <= _MOST_HEADERS or size != (56 if wide else 32):
        raise _Odd
    table = _read(descriptor, offset, size * count)
    segments = [_segment(table, index * size, wide) for index in range(count)]
    interpreter = ""
    for kind_, where, _, length in segments:
        if kind_ == _PT_INTERP:
            interpreter = os.fsdecode(_read(descriptor, where, min(length, 4096)).split(b"\0", 1)[0])
    return Program(ELF, bits, name, interpreter, needed=_needed(descriptor, segments, wide))


def _segment(table: bytes, at: int, wide: bool) -> tuple[int, int, int, int]:
    """Type, file offset, address, bytes in the file."""
    if wide:
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", table, at)
    else:
        kind, offset, address, _, length = struct.unpack_from("<IIIII", table, at)
    return kind, offset, address, length


def _needed(descriptor: int, segments: list[tuple[int, int, int, int]], wide: bool) -> tuple[str, ...]:
    """Read the names of the libraries that the dynamic section asks for."""
    entry = struct.Struct("<qQ" if wide else "<iI")
    names: list[int] = []
    strings = length = 0
    for kind, where, _, size in segments:
        if kind != _PT_DYNAMIC:
            continue
        whole = min(size // entry.size, _MOST_DYNAMIC) * entry.size
        for tag, value in entry.iter_unpack(_read(descriptor, where, whole)):
            if tag == _DT_NULL:
                break
            if tag == _DT_NEEDED:
                names.append(value)
            elif tag == _DT_STRTAB:
                strings = value
            elif tag == _DT_STRSZ:
                length = value
    if not names:
        return ()
    for kind, where, address, size in segments:
        if kind == _PT_LOAD and address <= strings < address + size:
            room = min(length, address + size - strings)
            # One by one: the strings of a large library are many megabytes.
            return tuple(filter(None, (_string(descriptor, where + strings - address, name, room) for name in names)))
    raise _Odd


def _string(descriptor: int, table: int, at: int, room: int) -> str:
    if at >= room:
        return ""
    return os.fsdecode(_read(descriptor, table + at, min(room - at, _LONGEST)).split(b"\0", 1)[0])


def _read(descriptor: int, offset: int, size: int) -> bytes:
    data = os.pread(descriptor, size, offset)
    if len(data) != size:
        raise _Odd
    return data


def library_path(environment: Mapping[str, str]) -> list[str]:
    """Return the folders of LD_LIBRARY_PATH, without empty entries."""
    return [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]


def _nvidia(environment: Mapping[str, str], root: str = "/") -> bool:
    """Return whether NVIDIA's driver is on this machine, or a library of its name where programs find it."""
    triple = f"{os.uname().machine}-linux-gnu"
    usual = (
        f"usr/lib/{triple}",
        f"lib/{triple}",
        "usr/lib64",
        "lib64",
        "usr/lib",
        "usr/lib/wsl/lib",
        "usr/local/nvidia/lib64",
    )
    if os.path.exists(os.path.join(root, NVIDIA_PROC[1:])):
        return True
    folders = [*library_path(environment), *(os.path.join(root, folder) for folder in usual)]
    if any(os.path.exists(os.path.join(folder, CUDA)) for folder in folders):
        return True
    return any(os.path.basename(path) == CUDA for path in cached(root))


def cached(root: str = "/") -> list[str]:
    """Return the paths in the loader's cache, in its order; none if it cannot be read."""
    try:
        with open(os.path.join(root, _CACHE[1:]), "rb") as file:
            data = file.read(_CACHE_SIZE)
    except OSError:
        return []
    return [os.fsdecode(path) for path in re.findall(rb"(?<=\0)/[^\0]+(?=\0)", data)]


def vendors(environment: Mapping[str, str], root: str = "/") -> frozenset[str]:
    """Return whose GPUs there may be; empty where no driver was found."""
    amd = os.path.exists(os.path.join(root, AMD_DEVICE[1:]))
    return frozenset(["nvidia"] * _nvidia(environment, root) + ["amd"] * amd)
