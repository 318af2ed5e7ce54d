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
    """Return the entries; the loader takes spaces and colons alike."""
    return [entry for entry in re.split("[ :]", value) if entry]


def is_sanitizer(library: str) -> bool:
    return bool(SANITIZER.match(os.path.basename(library)))


def can_hold(path: str) -> bool:
    """Return whether the loader takes it for one file: no separator, no $ORIGIN, nothing that launchers would quote."""
    return bool(_SAFE.match(path))


def entry(library: str, auxv: str = _AUXV) -> str:
    """Return the library's entry for LD_PRELOAD, with $PLATFORM so that 32-bit programs find one that they can load.

    The path is unchanged if there are no folders for that beside it, or if the kernel tells processes no platform: the
    loader would then load nothing."""
    folder, name = os.path.split(library)
    led = os.path.isfile(os.path.join(folder, os.uname().machine, name)) and _has_platform(auxv)
    return os.path.join(folder, _PLATFORM, name) if led else library


def plain(value: str) -> str:
    """Return an entry, or a whole LD_PRELOAD, with the path of our file itself instead of $PLATFORM.

    For code that opens the file, and for launchers whose shell may expand a variable PLATFORM of its own."""
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
    """Return LD_PRELOAD with the library in it, in place of another copy of it: two would decide twice."""
    name = os.path.basename(library)
    others = [entry for entry in split(value) if os.path.basename(entry) != name]
    first = [entry for entry in others if is_sanitizer(entry)]
    return ":".join([*first, library, *(entry for entry in others if entry not in first)])
