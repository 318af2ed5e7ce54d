"""The value of LD_PRELOAD: our library first, but behind sanitizer runtimes, once, and everything else as it was."""

from __future__ import annotations

import os
import re
import struct

NAME = "liboverlap.so"
# They must come first in the list of libraries, or they end the program.
SANITIZER = re.compile(r"lib(clang_rt\.)?(asan|tsan|lsan|msan|hwasan)\b")
_SAFE = re.compile(r"[A-Za-z0-9._/+=@%~,-]+\Z")
# What glibc's loader puts a folder in for: ours for this machine's programs, an empty one for its 32-bit programs
# (shim/stub32.py).
_PLATFORM = "$PLATFORM"
_AUXV = "/proc/self/auxv"
_AT_PLATFORM = 15  # <elf.h>


def split(value: str) -> list[str]:
    """The entries; the loader takes spaces and colons alike."""
    return [entry for entry in re.split("[ :]", value) if entry]


def is_sanitizer(library: str) -> bool:
    return bool(SANITIZER.match(os.path.basename(library)))


def can_hold(path: str) -> bool:
    """Whether the loader takes it for one file: no separators, no $ORIGIN, nothing that a launcher would quote."""
    return bool(_SAFE.match(path))


def entry(library: str, auxv: str = _AUXV) -> str:
    """How LD_PRELOAD names this file so that 32-bit programs, too, find a library that they can load: by $PLATFORM. As
    it is where there are no folders for that beside it, or where the kernel tells processes no platform: the loader
    would then load nothing."""
    folder, name = os.path.split(library)
    led = os.path.isfile(os.path.join(folder, os.uname().machine, name)) and _has_platform(auxv)
    return os.path.join(folder, _PLATFORM, name) if led else library


def plain(value: str) -> str:
    """Of an entry, or of a whole LD_PRELOAD: with the path of our file itself. For what looks at the file, and for ways
    on which something may put in a variable PLATFORM of its own. (Where it has none, the path stays right.)"""
    return value.replace(f"/{_PLATFORM}/{NAME}", f"/{NAME}")


def _has_platform(auxv: str) -> bool:
    pair = struct.Struct("NN")
    try:
        with open(auxv, "rb") as file:
            data = file.read(4096)
    except OSError:
        return False
    return any(kind == _AT_PLATFORM for kind, _ in pair.iter_unpack(data[: len(data) // pair.size * pair.size]))


def merge(value: str, library: str) -> str:
    """LD_PRELOAD with the library in it; another copy of the same library gives way, two would decide twice."""
    name = os.path.basename(library)
    others = [entry for entry in split(value) if os.path.basename(entry) != name]
    first = [entry for entry in others if is_sanitizer(entry)]
    return ":".join([*first, library, *(entry for entry in others if entry not in first)])
