"""Small files of the formats that the tool reads, made by hand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

MACHINE_X86, MACHINE_CUDA, MACHINE_AMDGPU = 62, 190, 224
SYMBOLS, STRINGS, NOTE = 2, 3, 7


# Kernels of code objects: RCCL's as its compiler wrote it; a GEMM whose assembler left the AGPRs out of the metadata.
RCCL = ("_Z23ncclDevKernel_Generic_1v", 280, 248, {".vgpr_count": 280, ".agpr_count": 32})
GEMM = ("Cijk_MT256x128x16", 256, 128, {".vgpr_count": 128, ".reqd_workgroup_size": [64, 2, 2]})
Section = tuple[str, int, bytes, int, int]  # name, type, data, link, info


def elf(sections: Sequence[Section], machine: int = MACHINE_X86, flags: int = 0, abi: int = 0) -> bytes:
    """The index of the first section is 1."""
    names, body, table = b"\0", b"", b"\0" * 64
    for name, kind, data, link, info in [*sections, (".shstrtab", STRINGS, b"", 0, 0)]:
        at, names = len(names), names + name.encode() + b"\0"
        data = names if name == ".shstrtab" else data
        table += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(body), len(data), link, info, 8, 24)
        body += data + b"\0" * (-len(data) % 8)
    head, count = b"\x7fELF\x02\x01\x01\0" + bytes([abi]) + b"\0" * 7, len(sections) + 2
    rest = (3, machine, 1, 0, 0, 64 + len(body), flags, 64, 56, 0, 64, count, count - 1)
    return struct.pack("<16sHHIQQQIHHHHHH", head, *rest) + body + table


def cubin(shared: int, notes: bytes = b"", registers: int = 32, architecture: int = 90, more: str = ".more") -> bytes:
    """As compilers before CUDA 13 made it, of one kernel k: registers in sh_info, no section for what is reserved."""
    sections = [
        (".text.k", 1, b"\0" * 16, 0, registers << 24),
        (".nv.shared.k", 1, b"\0" * shared, 0, 0),
        (".nv.info.k", 0x70000000, notes, 0, 0),
        (".symtab", SYMBOLS, struct.pack("<IBBHQQ", 1, 0x12, 0x10, 1, 0, 16), 5, 0),
        (".strtab", STRINGS, b"\0k\0", 0, 0),
        (more, 1, b"", 0, 0),
    ]
    return elf(sections, MACHINE_CUDA, architecture, abi=7)


def fatbin(entries: Sequence[tuple[int, int, int, bytes, int]]) -> bytes:
    """Of (kind, architecture, flags, payload, size when unpacked or zero)."""
    body = b""
    for kind, number, flags, payload, unpacked in entries:
        packed = len(payload) if unpacked else 0
        payload += b"\0" * (-len(payload) % 8)
        head = (kind, 0x101, 64, len(payload), packed, 0, 0, 8, number, 64, 0, flags, 0, unpacked)
        body += struct.pack("<HHIQIIHHIIIQQQ", *head) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def messagepack(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\xda" + struct.pack(">H", len(value)) + value.encode()
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return bytes([value]) if value < 0x80 else b"\xcd" + struct.pack(">H", value)
    if isinstance(value, Mapping):
        pairs = [messagepack(part) for pair in value.items() for part in pair]
        return bytes([0x80 | len(value)]) + b"".join(pairs)
    return bytes([0x90 | len(value)]) + b"".join(map(messagepack, value))


def note(body: bytes, kind: int = 32, owner: bytes = b"AMDGPU\0") -> bytes:
    return struct.pack("<III", 7, len(body), kind) + owner + b"\0" + body + b"\0" * (-len(body) % 4)


def code_object(
    kernels: Sequence[tuple[str, int, int, Mapping[str, Any]]],
    flags: int = 0x3F,
    target: str = "",
    apart: bool = False,
) -> bytes:
    """Of (name, registers and AGPR offset as the descriptor has them, more of the metadata). apart: a note each."""
    described, symbols, strings, data = [], b"\0" * 24, b"\0", b""
    for name, registers, before, more in kernels:
        symbol = name + ".kd"
        described.append(
            {
                ".name": name,
                ".symbol": symbol,
                ".group_segment_fixed_size": 19808,
                ".max_flat_workgroup_size": 256,
                ".sgpr_count": 106,
                **more,
            }
        )
        symbols += struct.pack("<IBBHQQ", len(strings), 0x11, 0, 2, len(data), 64)
        strings += symbol.encode() + b"\0"
        descriptor = struct.pack("<II", before // 4 - 1, 0xABC0 | registers // 8 - 1)
        data += b"\0" * 44 + descriptor + b"\0" * 12
    named = {"amdhsa.target": target if "-" in target else "amdgcn-amd-amdhsa--" + target} if target else {}
    parts = [[kernel] for kernel in described] if apart else [described]
    sections = [
        (".note", NOTE, b"".join(note(messagepack({"amdhsa.kernels": part, **named})) for part in parts), 0, 0),
        (".rodata", 1, data, 0, 0),
        (".symtab", SYMBOLS, symbols, 4, 0),
        (".strtab", STRINGS, strings, 0, 0),
    ]
    return elf(sections, MACHINE_AMDGPU, flags)


def with_segments(data: bytes, count: int = 1) -> bytes:
    """The same code object, whose notes are found by its segments, all alike, and by no section."""
    changed = bytearray(data)
    (sections,) = struct.unpack_from("<Q", data, 40)
    (place, size) = struct.unpack_from("<QQ", data, sections + 64 + 24)
    struct.pack_into("<I", changed, sections + 64 + 4, 1)
    struct.pack_into("<Q", changed, 32, len(data))
    struct.pack_into("<H", changed, 56, count)
    return bytes(changed) + b"".join(
        struct.pack("<IIQQQQQQ", 4, 4, place, 0, 0, size - index, size - index, 4) for index in range(count)
    )


def bundle(images: Mapping[str, bytes]) -> bytes:
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(images)), b""
    at = len(head) + sum(24 + len(triple) for triple in images)
    for triple, image in images.items():
        head += struct.pack("<QQQ", at + len(body), len(image), len(triple)) + triple.encode()
        body += image
    return head + body


def compressed(data: bytes, version: int = 3) -> bytes:
    """With zlib, which the standard library has."""
    packed = zlib.compress(data)
    form = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    size = 16 + struct.calcsize(form) + len(packed)
    sizes = [size, len(data)] if version > 1 else [len(data)]
    return b"CCOB" + struct.pack("<HH", version, 0) + struct.pack(form, *sizes) + b"\0" * 8 + packed
