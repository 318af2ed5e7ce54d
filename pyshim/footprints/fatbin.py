"""Cubins inside fat binaries: alone in a file, or in the sections of a shared object.

A fat binary is a chain of containers, each with entries for several architectures; PTX entries are left out, since
their footprint is made by the driver. Of the libraries read for the tables, those built with CUDA 12 compress an
entry as one LZ4 block, those built with CUDA 13 as one zstd frame. The section is .nv_fatbin; cuBLASLt keeps more
containers in .cask_resource, between data of other kinds, which cuobjdump does not show. __nv_relfatbin is left out:
those are the objects before linking.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from pyshim.footprints.elffile import MAGIC_64, Data, damage, parse
from pyshim.footprints.footprint import Unreadable, Wanted, every
from pyshim.footprints.unpack import unpack_lz4, unpack_zstd

MAGIC = struct.pack("<I", 0xBA55ED50)
MAGIC_VERSION = 1
NOT_LOADED, MIXED = "__nv_relfatbin", ".cask_resource"
KIND_CUBIN = 2
# Flags of an entry. The last two are what a name like sm_90a or sm_100f says: for this chip, or its family, only.
LZ4, ZSTD, THIS_CHIP, THIS_FAMILY = 0x2000, 0x8000, 0x100000, 0x200000

_CONTAINER = struct.Struct("<4sHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")


@dataclass(frozen=True)
class Image:
    architecture: str  # sm_90a: with the letter, which the cubin itself does not say
    compression: str  # none, lz4, zstd
    _at: int
    _size: int
    _unpacked: int

    def cubin(self, data: Data) -> bytes:
        """Return the image, unpacked. Raises Unreadable."""
        packed = bytes(data[self._at : self._at + self._size])
        if len(packed) < self._size:
            raise Unreadable(f"a broken fat binary: it ends inside its image for {self.architecture}")
        if self.compression == "lz4":
            return unpack_lz4(packed, self._unpacked)
        return unpack_zstd(packed, self._unpacked) if self.compression == "zstd" else packed


def is_fatbin(data: Data) -> bool:
    return data[:4] == MAGIC


def images(data: Data, wanted: Wanted = every) -> Iterator[Image]:
    """Yield the images of a fat binary, or of a shared object that holds some. Raises Unreadable."""
    if is_fatbin(data):
        places = [("", 0, len(data))]
    else:
        places = [
            (name, start, end)
            for name, (start, end) in sections(data)
            if name != NOT_LOADED and data[start : start + 4] == MAGIC
        ]
        if not places:
            raise Unreadable("no GPU code in it: it has no section .hip_fatbin, and none that holds a fat binary")
    for name, start, end in places:
        for image in _chain(data, start, end, mixed=name == MIXED):
            if wanted(image.architecture):
                yield image


def sections(data: Data) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield name, start and end of the sections of an ELF file that have bytes in it. Raises Unreadable."""
    if data[:4] != MAGIC_64[:4]:
        raise Unreadable("neither an ELF file nor a fat binary nor a code object")
    if data[4:6] != MAGIC_64[4:]:
        raise Unreadable("an ELF file, but not one of 64 bits and little endian")
    with damage("a broken ELF file: it ends before its table of sections"):
        for section in parse(data).iter_sections():
            if section["sh_type"] != "SHT_NOBITS":
                yield section.name, (section["sh_offset"], section["sh_offset"] + section["sh_size"])


def _chain(data: Data, at: int, end: int, mixed: bool) -> Iterator[Image]:
    if end > len(data):
        raise Unreadable("a broken file: it ends inside its fat binaries")
    while at < end:
        if not any(data[at : at + 8]):  # filling between containers
            at += 8
            continue
        if end - at < _CONTAINER.size:
            if mixed:
                return
            raise Unreadable("a broken fat binary: it ends inside a header")
        magic, version, header, size = _CONTAINER.unpack_from(data, at)
        if mixed and magic != MAGIC:
            found = data.find(MAGIC, at, end)
            at = found if found >= 0 else end
            continue
        if magic != MAGIC or version != MAGIC_VERSION:
            raise Unreadable(f"a broken fat binary: no container at byte {at}")
        if header < _CONTAINER.size:
            raise Unreadable(f"a broken fat binary: the container at byte {at} is smaller than its own header")
        start, at = at + header, at + header + size
        if at > end:
            raise Unreadable("a broken fat binary: it ends inside a container")
        yield from _entries(data, start, at)


def _entries(data: Data, at: int, end: int) -> Iterator[Image]:
    while at < end:
        if end - at < _ENTRY.size:
            raise Unreadable("a broken fat binary: it ends inside an entry")
        kind, _, header, size, packed, _, _, _, number, _, _, flags, _, unpacked = _ENTRY.unpack_from(data, at)
        if header < _ENTRY.size or at + header + size > end:
            raise Unreadable(f"a broken fat binary: the entry at byte {at} ends outside its container")
        if kind == KIND_CUBIN:
            letter = "a" if flags & THIS_CHIP else "f" if flags & THIS_FAMILY else ""
            compression = "lz4" if flags & LZ4 else "zstd" if flags & ZSTD else "none"
            yield Image(f"sm_{number}{letter}", compression, at + header, packed or size, unpacked)
        at += header + size
