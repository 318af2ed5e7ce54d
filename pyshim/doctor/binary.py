"""What else an ELF file says: the functions that it defines for others, and strings among its constants.

Any file may be given. What is broken, or of another byte order, has none of either.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyshim.footprints.fatbin import sections
from pyshim.footprints.footprint import Unreadable

_MOST_CONSTANTS, _MOST_SYMBOLS = 16 << 20, 1 << 16
_SYMBOL = struct.Struct("<IBBHQQ")


def defined(path: str, names: Sequence[str]) -> list[str]:
    """Those of the names that the file defines for others."""
    with _mapped(path) as data:
        found = _sections(data)
        if ".dynsym" not in found or ".dynstr" not in found:
            return []
        (start, end), (text, text_end) = found[".dynsym"], found[".dynstr"]
        end = min(end, start + _MOST_SYMBOLS * _SYMBOL.size, len(data))
        wanted = {name.encode(): name for name in names}
        longest = max(map(len, wanted)) + 1
        seen = set()
        for at in range(start, end - _SYMBOL.size + 1, _SYMBOL.size):
            name, _, _, section, _, _ = _SYMBOL.unpack_from(data, at)
            if section and text + name < min(text_end, len(data)):
                word = data[text + name : text + name + longest].split(b"\0", 1)[0]
                if word in wanted:
                    seen.add(word)
        return [wanted[word] for word in wanted if word in seen]


def holds(path: str, words: Sequence[bytes]) -> list[bytes]:
    """Those of the words that are among its constants; of large files, their first 16 MiB."""
    with _mapped(path) as data:
        place = _constants(data)
        return [word for word in words if place and data.find(word, *place) >= 0]


def match(path: str, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """The first match among its constants."""
    with _mapped(path) as data:
        place = _constants(data)
        return pattern.search(data[place[0] : place[1]]) if place else None


def _constants(data: mmap.mmap | bytes) -> tuple[int, int] | None:
    place = _sections(data).get(".rodata")
    if not place or place[0] > len(data):
        return None
    return place[0], min(place[1], place[0] + _MOST_CONSTANTS, len(data))


def _sections(data: mmap.mmap | bytes) -> dict[str, tuple[int, int]]:
    try:
        return dict(sections(data))  # type: ignore[arg-type]  # sliced and measured like bytes
    except (Unreadable, UnicodeDecodeError):
        return {}


@contextmanager
def _mapped(path: str) -> Iterator[mmap.mmap | bytes]:
    try:
        # Not blocking: a named pipe must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        yield b""
        return
    try:
        data: mmap.mmap | bytes = b""
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            try:
                data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
                data = b""
    finally:
        os.close(descriptor)
    try:
        yield data
    finally:
        if isinstance(data, mmap.mmap):
            data.close()
