"""Cubins made by hand, so that a test may ask for any registers, shared memory and bounds.

Only what a driver reads is in them: symbols, .nv.info, .text and .nv.shared. They hold no code.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Kernel:
    name: str
    registers: int = 32
    static_shared: int = 0
    max_threads: int = 0
    parameters: Sequence[int] = ()  # sizes
    cluster: Sequence[int] = ()  # required


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def _sized(attribute: int, data: bytes) -> bytes:
    return struct.pack("<BBH", 4, attribute, len(data)) + data


def _kernel_info(kernel: Kernel) -> bytes:
    data, offset = b"", 0
    for ordinal, size in enumerate(kernel.parameters):
        align = min(size, 8) or 1
        offset = (offset + align - 1) // align * align
        data += _sized(0x17, struct.pack("<IHHI", 0, ordinal, offset, size << 18 | 0x1F000))
        offset += size
    if kernel.max_threads:
        data += _sized(0x05, struct.pack("<III", kernel.max_threads, 1, 1))
    if kernel.cluster:
        data += _sized(0x3D, struct.pack("<III", *kernel.cluster))
    return data


def cubin(kernels: Sequence[Kernel], architecture: int = 90, old: bool = False, reserved: bool | None = None) -> bytes:
    """`old`: registers in sh_info and the architecture in the low byte, as before CUDA 13."""
    reserved = architecture >= 90 if reserved is None else reserved
    names, strings = _Strings(), _Strings()
    sections: list[tuple[int, int, bytes, int, int, int, int]] = []  # name, type, data, size, link, info, entry

    def section(
        name: str, kind: int, data: bytes = b"", size: int = 0, link: int = 0, info: int = 0, entry: int = 0
    ) -> int:
        sections.append((names.add(name), kind, data, size or len(data), link, info, entry))
        return len(sections)

    symbols, info = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0), b""
    for number, kernel in enumerate(kernels, start=1):
        text = section(f".text.{kernel.name}", 1, b"\0" * 16, info=kernel.registers << 24 if old else 0)
        section(f".nv.info.{kernel.name}", 0x70000000, _kernel_info(kernel))
        shared = kernel.static_shared + (1024 if reserved else 0)
        if shared:
            section(f".nv.shared.{kernel.name}", 8, size=shared)
        symbols += struct.pack("<IBBHQQ", strings.add(kernel.name), 0x12, 0x10, text, 0, 16)
        if not old:
            info += _sized(0x2F, struct.pack("<II", number, kernel.registers))
    if reserved:
        section(".nv.shared.reserved.0", 8)
    section(".nv.info", 0x70000000, info)
    string_index = section(".strtab", 3, strings.data)
    section(".symtab", 2, symbols, link=string_index, info=1, entry=24)
    last = names.add(".shstrtab")
    sections.append((last, 3, names.data, len(names.data), 0, 0, 0))

    body, table = b"", b"\0" * 64
    for name, kind, data, size, link, info_word, entry in sections:
        table += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, 64 + len(body), size, link, info_word, 1, entry)
        body += data if kind != 8 else b""
    flags = architecture if old else architecture << 8 | 0x06000004
    header = b"\x7fELF\x02\x01\x01\x41" + bytes([7 if old else 8]) + b"\0" * 7
    header += struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), flags, 64, 56, 0, 64, len(sections) + 1, len(sections)
    )
    return header + body + table


def fatbin(entries: Sequence[tuple[int, int, bytes]]) -> bytes:
    """(kind: 1 PTX, 2 ELF; architecture; payload)."""
    body = b""
    for kind, architecture, payload in entries:
        payload += b"\0" * (-len(payload) % 8)
        body += struct.pack(
            "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0, 0, 8, architecture, 64, 0, 0x11, 0, 0
        )
        body += payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
