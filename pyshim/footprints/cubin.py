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
from typing import TYPE_CHECKING

from pyshim.footprints.elffile import Data, content, damage, is_elf_for, parse, symbols
from pyshim.footprints.footprint import Budget, Footprint, Unreadable

if TYPE_CHECKING:
    from elftools.elf.sections import Section

RESERVED = 1024  # what the system keeps of shared memory for each block; the driver leaves it out of the static size
MACHINE_CUDA = 190
SYMBOL_FUNCTION, SYMBOL_ENTRY = 2, 0x10

# Attributes of .nv.info as cuobjdump -elf names them (EIATTR_...); a format of 4 carries its size, 2 and 3 a value.
SIZED = 4
MAX_THREADS, REQUIRED_THREADS, REGISTERS, CLUSTER, BARRIERS = 0x05, 0x10, 0x2F, 0x3D, 0x4C


@dataclass(frozen=True)
class _Note:
    attribute: int
    value: int  # of formats without data
    data: bytes

    def words(self) -> tuple[int, ...]:
        return struct.unpack_from(f"<{len(self.data) // 4}I", self.data)


def is_cubin(data: Data) -> bool:
    return is_elf_for(MACHINE_CUDA, data)


def read_cubin(data: bytes) -> list[Footprint]:
    """Return its kernels, in the order of its symbols. Raise Unreadable."""
    if not is_cubin(data):
        raise Unreadable("not a cubin (ELF file for NVIDIA GPUs)")
    with damage("a broken cubin: it ends before what it announces"):
        return list(_Cubin(data).footprints())


class _Cubin:
    def __init__(self, data: bytes) -> None:
        self.data, self.budget = data, Budget(data)
        file = parse(data)
        recent = file["e_ident"]["EI_ABIVERSION"] >= 8  # since CUDA 13: the architecture moved up by one byte
        self.architecture = file["e_flags"] >> (8 if recent else 0) & 0xFF
        self.sections = list(file.iter_sections())
        for section in self.sections:
            if section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + section["sh_size"] > len(data):
                raise Unreadable(f"a broken cubin: it ends before its section {section.name or 'without a name'}")
        self.by_name = {section.name: section for section in self.sections}
        self.reserved = self.architecture >= 90 or any(
            section.name.startswith(".nv.shared.reserved.") for section in self.sections
        )

    def footprints(self) -> Iterator[Footprint]:
        tables = [section for section in self.sections if section["sh_type"] == "SHT_SYMTAB"]
        if not tables:
            raise Unreadable("a broken cubin: it has no symbols")
        registers = self._registers()
        for index, symbol in enumerate(symbols(self.data, tables[-1])):
            if symbol.info & 0xF == SYMBOL_FUNCTION and symbol.other & SYMBOL_ENTRY:
                name = tables[-1].stringtable.get_string(symbol.name)
                text = self.sections[symbol.section]
                yield self._footprint(name, text, registers.get(index, text["sh_info"] >> 24))

    def _footprint(self, kernel: str, text: Section, registers: int) -> Footprint:
        maximum: int | None = None
        required: int | None = None
        barriers = text["sh_flags"] >> 20 & 0x7F
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
        static = shared["sh_size"] if shared else 0
        if self.reserved and static >= RESERVED:
            static -= RESERVED
        return Footprint(kernel, f"sm_{self.architecture}", registers, static, maximum, required, barriers, cluster)

    def _registers(self) -> dict[int, int]:
        """Return the registers by the index of the kernel's symbol."""
        found = {}
        for note in self._notes(".nv.info"):
            if note.attribute == REGISTERS and len(note.data) >= 8:
                symbol, count = note.words()[:2]
                found[symbol] = count & 0xFF
        return found

    def _notes(self, name: str) -> Iterator[_Note]:
        section = self.by_name.get(name)
        if section is None or section["sh_type"] == "SHT_NOBITS":
            return
        data = content(self.data, section)
        self.budget.take(len(data))
        at = 0
        while at < len(data):
            form, attribute, value = struct.unpack_from("<BBH", data, at)
            size = value if form == SIZED else 0
            if at + 4 + size > len(data):
                raise Unreadable(f"a broken cubin: {name} ends inside an attribute")
            yield _Note(attribute, value, data[at + 4 : at + 4 + size])
            at += 4 + size


def _product(note: _Note) -> int:
    x, y, z = note.words()[:3]
    return x * y * z
