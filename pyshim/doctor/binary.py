"""What else an ELF file says: the functions that it defines for others, and strings among its constants.

Any file may be given. A broken one has none of either.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from pyshim.footprints.elffile import Data, damage, parse
from pyshim.footprints.fatbin import sections
from pyshim.footprints.footprint import Unreadable
from pyshim.launch.driver import at_once

_MOST_CONSTANTS = 16 << 20


def defined(path: str, names: Sequence[str]) -> list[str]:
    """Return those of the names that the file defines for others, by its hash table, as the loader does."""
    with _mapped(path) as data, suppress(Unreadable), damage("no library"):
        for table in parse(data).iter_sections():
            if table["sh_type"] in ("SHT_GNU_HASH", "SHT_HASH"):
                found = {name: table.get_symbol(name) for name in names}
                return [name for name, symbol in found.items() if symbol and symbol["st_shndx"] != "SHN_UNDEF"]
    return []


def holds(path: str, words: Sequence[bytes]) -> list[bytes]:
    """Return the words that are among its constants; of large files, their first 16 MiB."""
    with _mapped(path) as data:
        place = _constants(data)
        return [word for word in words if place and data.find(word, *place) >= 0]


def match(path: str, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """Return the first match among the constants of a file."""
    with _mapped(path) as data:
        place = _constants(data)
        return pattern.search(data[place[0] : place[1]]) if place else None


def _constants(data: Data) -> tuple[int, int] | None:
    place = _sections(data).get(".rodata")
    if not place or place[0] > len(data):
        return None
    return place[0], min(place[1], place[0] + _MOST_CONSTANTS, len(data))


def _sections(data: Data) -> dict[str, tuple[int, int]]:
    try:
        return dict(sections(data))
    except (Unreadable, UnicodeDecodeError):
        return {}


def _mapped(path: str) -> AbstractContextManager[Data]:
    try:
        with open(path, "rb", opener=at_once) as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: it is empty
        return nullcontext(b"")
