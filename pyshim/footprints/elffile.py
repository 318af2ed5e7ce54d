"""ELF files, read by pyelftools from a stream that ends its work on a damaged file.

pyelftools trusts what it reads: headers that overlap, names without an end and sections of no size keep it busy for
hours. `Section.data` is not used: a damaged section of zeros, or a compressed one, fills the memory.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import IO, TYPE_CHECKING, NamedTuple, Union, cast

from pyshim.errors import OverlapError
from pyshim.footprints.footprint import Budget, Unreadable

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

Data = Union[bytes, bytearray, mmap]

MAGIC_64 = b"\x7fELF\x02\x01"  # 64 bits, little endian
_MACHINE = 18  # offset of e_machine
_NUMBER_ELSEWHERE = 0xFFFF  # of segments: PN_XNUM
_READ = 64  # bytes: a read of fewer takes as long
_SYMBOL = struct.Struct("<IBBHQQ")


class Symbol(NamedTuple):
    """A row of a symbol table, as it is in the file: pyelftools hides the bits of st_other that NVIDIA uses."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def is_elf_for(machine: int, data: Data) -> bool:
    return data[:6] == MAGIC_64 and data[_MACHINE : _MACHINE + 2] == struct.pack("<H", machine)


@contextmanager
def damage(sentence: str) -> Iterator[None]:
    """Turn every error of reading a damaged file into Unreadable: pyelftools lets those of Python through."""
    try:
        yield
    except Unreadable:
        raise
    except ImportError as error:
        raise OverlapError(f"{error.name} cannot be imported", "install overlap-run again") from error
    except Exception as error:
        raise Unreadable(sentence) from error


def parse(data: Data) -> ELFFile:
    """Return the file for pyelftools, whose errors `damage` must catch."""
    from elftools.elf.elffile import ELFFile  # late: 50 ms

    file = ELFFile(cast("IO[bytes]", _Metered(data)))
    # Then a number of 64 bits counts, and pyelftools keeps an object for each.
    if (file["e_shoff"] and not file["e_shnum"]) or file["e_phnum"] == _NUMBER_ELSEWHERE:
        raise Unreadable("a broken file: more sections or segments than its header can count")
    return file


def content(data: Data, section: Section) -> bytes:
    """Return the bytes of a section; fewer where the file ends before."""
    return bytes(data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]])


def symbols(data: Data, table: Section) -> Iterator[Symbol]:
    """Return the rows of a symbol table, a hundred times as fast as pyelftools: GEMM libraries have many thousands."""
    return map(Symbol._make, _SYMBOL.iter_unpack(content(data, table)))


class _Metered:
    """A stream over bytes or a map, without a copy of them, that gives no more than a few times what there is."""

    def __init__(self, data: Data) -> None:
        self._data, self._at, self._budget = data, 0, Budget(data)

    def seek(self, to: int, whence: int = io.SEEK_SET) -> int:
        self._at = to + (len(self._data) if whence == io.SEEK_END else 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        part = bytes(self._data[self._at : self._at + size])
        self._budget.take(max(_READ, len(part)))
        self._at += len(part)
        return part
