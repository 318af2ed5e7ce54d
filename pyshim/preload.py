"""The value of LD_PRELOAD: our library first, but behind sanitizer runtimes, once, and everything else as it was."""

from __future__ import annotations

import os
import re

NAME = "liboverlap.so"
# They must come first in the list of libraries, or they end the program.
SANITIZER = re.compile(r"lib(clang_rt\.)?(asan|tsan|lsan|msan|hwasan)\b")
_SAFE = re.compile(r"[A-Za-z0-9._/+=@%~,-]+\Z")


def split(value: str) -> list[str]:
    """Return the entries; the loader takes spaces and colons alike."""
    return [entry for entry in re.split("[ :]", value) if entry]


def is_sanitizer(library: str) -> bool:
    return bool(SANITIZER.match(os.path.basename(library)))


def can_hold(path: str) -> bool:
    """Return whether the loader takes it for one file: no separator, no $ORIGIN, nothing that launchers would quote."""
    return bool(_SAFE.match(path))


def merge(value: str, library: str) -> str:
    """Return LD_PRELOAD with the library in it, in place of another copy of it: two would decide twice."""
    name = os.path.basename(library)
    others = [entry for entry in split(value) if os.path.basename(entry) != name]
    first = [entry for entry in others if is_sanitizer(entry)]
    return ":".join([*first, library, *(entry for entry in others if entry not in first)])
