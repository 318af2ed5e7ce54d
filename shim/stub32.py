"""An empty 32-bit library, made without a compiler, and the folders that lead each kind of program to its own.

LD_PRELOAD names the library as FOLDER/$PLATFORM/liboverlap.so. The loader of glibc puts in what the kernel tells every
process of its processor (AT_PLATFORM; ld.so(8), getauxval(3)): a 32-bit program gets i686 where others get x86_64. It
finds an empty library there, instead of complaining that ours is for 64 bits. Unlike $LIB, which says lib, lib64, lib32
or lib/x86_64-linux-gnu, and lib for 32 bits on one distribution and for 64 on another, that depends on no distribution.
Steam's container runtime has its libraries found in the same way (https://gitlab.steamos.cloud/steamrt/steam-runtime-tools).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

NAME = "liboverlap.so"


class Platforms(NamedTuple):
    """What $PLATFORM may be on a machine; `own` begins with the kernel's name for it, which is that of uname."""

    own: tuple[str, ...]
    narrow: tuple[str, ...]  # of its 32-bit programs
    narrow_machine: int  # e_machine
    narrow_flags: int  # e_flags


PLATFORMS = {
    # glibc itself says haswell or xeon_phi on Intel's processors since these (sysdeps/x86/cpu-features.c); the kernel
    # says i686 to all 32-bit programs, emulators what they emulate.
    "x86_64": Platforms(("x86_64", "haswell", "xeon_phi"), ("i686", "i586", "i486", "i386"), 3, 0),
    # The kernel says v8l to all 32-bit programs (COMPAT_ELF_PLATFORM). EABI version 5, of either float ABI.
    "aarch64": Platforms(("aarch64",), ("v8l", "v7l", "v6l"), 40, 0x05000000),
}

_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 4, 5, 6, 10, 11, 14
_SHT_STRTAB, _SHT_HASH, _SHT_DYNAMIC, _SHT_DYNSYM = 3, 5, 6, 11
_WRITE, _ALLOC = 1, 2
_HEADER, _SEGMENT, _SECTION, _SYMBOL, _TAG = 52, 32, 40, 16, 8  # bytes of each, in a 32-bit file
_READ_WRITE = 4 | 2  # loaders before glibc 2.35 write into the dynamic section
_PAGE = 0x10000  # the largest of any machine here


def library(platforms: Platforms, soname: str = NAME) -> bytes:
    """A shared object that needs nothing, defines nothing and runs nothing: one writable segment, no code."""
    strings = b"\0" + soname.encode() + b"\0"
    tables = struct.pack("<4I", 1, 1, 0, 0)  # of hashes: one bucket, for the one symbol that every table begins with
    symbols = bytes(_SYMBOL)
    hash_at = _HEADER + 3 * _SEGMENT
    symbols_at = hash_at + len(tables)
    strings_at = symbols_at + len(symbols)
    dynamic_at = _aligned(strings_at + len(strings))
    tags = (
        (_DT_SONAME, 1),
        (_DT_HASH, hash_at),
        (_DT_STRTAB, strings_at),
        (_DT_SYMTAB, symbols_at),
        (_DT_STRSZ, len(strings)),
        (_DT_SYMENT, _SYMBOL),
        (0, 0),
    )
    dynamic = b"".join(struct.pack("<2I", *tag) for tag in tags)
    loaded = dynamic_at + len(dynamic)
    segments = (
        (_PT_LOAD, 0, loaded, _PAGE),
        (_PT_DYNAMIC, dynamic_at, len(dynamic), 4),
        (_PT_GNU_STACK, 0, 0, 16),  # without it the stack of the program would become executable
    )
    # Loaders need no sections; strip, patchelf and their like do. Behind the names: struct Elf32_Shdr without sh_name.
    names = b"\0.hash\0.dynsym\0.dynstr\0.dynamic\0.shstrtab\0"
    sections = (
        (b"", 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (b".hash", _SHT_HASH, _ALLOC, hash_at, hash_at, len(tables), 2, 0, 4, 4),
        (b".dynsym", _SHT_DYNSYM, _ALLOC, symbols_at, symbols_at, len(symbols), 3, 1, 4, _SYMBOL),
        (b".dynstr", _SHT_STRTAB, _ALLOC, strings_at, strings_at, len(strings), 0, 0, 1, 0),
        (b".dynamic", _SHT_DYNAMIC, _ALLOC | _WRITE, dynamic_at, dynamic_at, len(dynamic), 3, 0, 4, _TAG),
        (b".shstrtab", _SHT_STRTAB, 0, 0, loaded, len(names), 0, 0, 1, 0),
    )
    table_at = _aligned(loaded + len(names))
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian
    header = ident + struct.pack(
        "<HHIIIIIHHHHHH",
        3,  # a shared object
        platforms.narrow_machine,
        1,
        0,
        _HEADER,
        table_at,
        platforms.narrow_flags,
        _HEADER,
        _SEGMENT,
        len(segments),
        _SECTION,
        len(sections),
        len(sections) - 1,
    )
    parts = (
        (0, header + b"".join(_segment(*segment) for segment in segments) + tables + symbols + strings),
        (dynamic_at, dynamic + names),
        (table_at, b"".join(struct.pack("<10I", names.index(name + b"\0"), *rest) for name, *rest in sections)),
    )
    data = b""
    for at, part in parts:
        data = data.ljust(at, b"\0") + part
    return data


def _aligned(at: int) -> int:
    return (at + 3) // 4 * 4


def _segment(kind: int, at: int, size: int, align: int) -> bytes:
    return struct.pack("<8I", kind, at, at, at, size, size, _READ_WRITE, align)
