"""Kernels of one cubin (an ELF for NVIDIA GPUs): registers, static shared memory, launch bounds, barriers, clusters.

It follows tools/simgpu/elf.c, which the tests compare with `ptxas -v`: kernels are function symbols with the entry
bit; registers are EIATTR_REGCOUNT, or in older cubins the top byte of sh_info of the kernel's text; static shared
memory is the size of .nv.shared.KERNEL, less the 1,024 bytes that the compiler counts into it for the system on sm_90
and newer and wherever there is a .nv.shared.reserved section. Barriers, which elf.c has no use for, are
EIATTR_NUM_BARRIERS, or in older cubins bits 20 to 26 of the flags of the kernel's text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from pyshim.footprints.footprint import Budget, Footprint, Unreadable

RESERVED = 1024  # what the system keeps of shared memory for each block; the driver leaves it out of the static size
MACHINE_CUDA = 190
SECTION_SYMBOLS, SECTION_STRINGS, SECTION_EMPTY = 2, 3, 8
SYMBOL_FUNCTION, SYMBOL_ENTRY = 2, 0x10

# Attributes of .nv.info as cuobjdump -elf names them (EIATTR_...); a format of 4 carries its size, 2 and 3 a value.
SIZED = 4
MAX_THREADS, REQUIRED_THREADS, REGISTERS, CLUSTER, BARRIERS = 0x05, 0x10, 0x2F, 0x3D, 0x4C

_LONGEST = 1 << 16  # bytes of a name
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    at: int
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class _Note:
    attribute: int
    value: int  # of formats without data
    data: bytes

    def words(self) -> tuple[int, ...]:
        return struct.unpack_from(f"<{len(self.data) // 4}I", self.data)


def is_cubin(data: bytes) -> bool:
    return data[:5] == b"\x7fELF\x02" and len(data) >= 20 and struct.unpack_from("<H", data, 18)[0] == MACHINE_CUDA


def read_cubin(data: bytes) -> list[Footprint]:
    """Its kernels, in the order of its symbols."""
    try:
        return list(_Cubin(data).footprints())
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise Unreadable("a broken cubin: it ends before what it announces") from error


class _Cubin:
    def __init__(self, data: bytes) -> None:
        if not is_cubin(data):
            raise Unreadable("not a cubin (ELF file for NVIDIA GPUs)")
        self.data, self.budget = data, Budget(data)
        ident, *_, sections_at, flags, _, _, _, entry_size, count, names = _HEADER.unpack_from(data)
        if entry_size != _SECTION.size or count == 0:
            raise Unreadable("a broken cubin: it has no table of sections")
        recent = ident[8] >= 8  # ELF ABI byte since CUDA 13: the architecture moved up by one byte
        self.architecture = flags >> 8 & 0xFF if recent else flags & 0xFF
        raw = [_SECTION.unpack_from(data, sections_at + _SECTION.size * i) for i in range(count)]
        table = raw[names]
        self.sections = [_Section(self._string(table[4], table[5], row[0]), row[1], row[2], *row[4:8]) for row in raw]
        for section in self.sections:
            if section.kind != SECTION_EMPTY and section.at + section.size > len(data):
                raise Unreadable(f"a broken cubin: it ends before its section {section.name or 'without a name'}")
        self.by_name = {section.name: section for section in self.sections}
        self.reserved = self.architecture >= 90 or any(
            section.name.startswith(".nv.shared.reserved.") for section in self.sections
        )

    def _string(self, at: int, size: int, offset: int) -> str:
        start = at + offset
        end = self.data.find(b"\0", start, min(at + size, start + _LONGEST))
        self.budget.take(_LONGEST if end < 0 else end - start)
        if end < 0:
            raise ValueError("a name without an end")
        return self.data[start:end].decode()

    def footprints(self) -> Iterator[Footprint]:
        tables = [section for section in self.sections if section.kind == SECTION_SYMBOLS]
        if not tables:
            raise Unreadable("a broken cubin: it has no symbols")
        table = tables[-1]
        strings = self.sections[table.link]
        symbols = list(_SYMBOL.iter_unpack(self.data[table.at : table.at + table.size]))
        registers = self._registers()
        for index, (name_at, info, other, section_index, _, _) in enumerate(symbols):
            if info & 0xF == SYMBOL_FUNCTION and other & SYMBOL_ENTRY:
                name = self._string(strings.at, strings.size, name_at)
                text = self.sections[section_index]
                yield self._footprint(name, text, registers.get(index, text.info >> 24))

    def _footprint(self, kernel: str, text: _Section, registers: int) -> Footprint:
        maximum: int | None = None
        required: int | None = None
        barriers = text.flags >> 20 & 0x7F
        cluster: int | None = None
        for note in self._notes(".nv.info." + kernel):
            if note.attribute == MAX_THREADS:
                maximum = _product(note)
            elif note.attribute == REQUIRED_THREADS:
                required = _product(note)
            elif note.attribute == CLUSTER:
                cluster = _product(note) or None
            elif note.attribute == BARRIERS:
                barriers = note.value & 0xFF
        shared = self.by_name.get(".nv.shared." + kernel)
        static = shared.size if shared else 0
        if self.reserved and static >= RESERVED:
            static -= RESERVED
        return Footprint(kernel, f"sm_{self.architecture}", registers, static, maximum, required, barriers, cluster)

    def _registers(self) -> dict[int, int]:
        """By the index of the kernel's symbol."""
        found = {}
        for note in self._notes(".nv.info"):
            if note.attribute == REGISTERS and len(note.data) >= 8:
                symbol, count = note.words()[:2]
                found[symbol] = count & 0xFF
        return found

    def _notes(self, name: str) -> Iterator[_Note]:
        section = self.by_name.get(name)
        if section is None or section.kind == SECTION_EMPTY:
            return
        self.budget.take(section.size)
        at, end = section.at, section.at + section.size
        while at < end:
            form, attribute, value = struct.unpack_from("<BBH", self.data, at)
            size = value if form == SIZED else 0
            if at + 4 + size > end:
                raise Unreadable(f"a broken cubin: {name} ends inside an attribute")
            yield _Note(attribute, value, self.data[at + 4 : at + 4 + size])
            at += 4 + size


def _product(note: _Note) -> int:
    x, y, z = note.words()[:3]
    return x * y * z
