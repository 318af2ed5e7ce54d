"""Writes code objects for AMD GPUs with kernels that take what they are said to take, and no code: for tests.

    image = code_object([Kernel("gemm", vgprs=128, agprs=128, static_shared=32768, arguments=[8, 8, 4])], "gfx90a")
    library = bundle({"gfx90a": image})

The formats are LLVM's (AMDGPUUsage.rst, ClangOffloadBundler.rst). Registers of the descriptor are those of the
hardware; `said` is what the metadata says, if that is something else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MACHINES = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41}
VECTOR_GRANULE, SCALAR_GRANULE, DESCRIPTOR = 8, 16, 64


@dataclass
class Kernel:
    name: str
    vgprs: int = 32
    agprs: int = 0
    sgprs: int = 32
    static_shared: int = 0
    max_threads: int = 1024
    arguments: list[int] = field(default_factory=list)  # sizes
    said: int | None = None
    uniform: bool = True

    @property
    def registers(self) -> int:
        """VGPRs and AGPRs; these begin at a multiple of 4."""
        return (self.vgprs + 3) // 4 * 4 + self.agprs if self.agprs else self.vgprs


def pack(value: Any) -> bytes:
    """MessagePack."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return bytes([value]) if 0 <= value < 128 else b"\xce" + struct.pack(">I", value)
    if isinstance(value, str):
        data = value.encode()
        return (bytes([0xA0 | len(data)]) if len(data) < 32 else b"\xda" + struct.pack(">H", len(data))) + data
    if isinstance(value, dict):
        return b"\xde" + struct.pack(">H", len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    return b"\xdc" + struct.pack(">H", len(value)) + b"".join(pack(item) for item in value)


def _arguments(kernel: Kernel) -> tuple[list[dict[str, Any]], int]:
    found, offset = [], 0
    for size in kernel.arguments:
        offset = (offset + min(size, 8) - 1) // min(size, 8) * min(size, 8)
        found.append({".offset": offset, ".size": size, ".value_kind": "by_value"})
        offset += size
    offset = (offset + 7) // 8 * 8
    found.append({".offset": offset, ".size": 4, ".value_kind": "hidden_block_count_x"})
    return found, offset + 8


def _metadata(kernel: Kernel) -> dict[str, Any]:
    arguments, bytes_of_arguments = _arguments(kernel)
    return {
        ".name": kernel.name,
        ".symbol": f"{kernel.name}.kd",
        ".args": arguments,
        ".kernarg_segment_size": bytes_of_arguments,
        ".group_segment_fixed_size": kernel.static_shared,
        ".private_segment_fixed_size": 0,
        ".wavefront_size": 64,
        ".vgpr_count": kernel.registers if kernel.said is None else kernel.said,
        ".agpr_count": kernel.agprs,
        ".sgpr_count": kernel.sgprs,
        ".max_flat_workgroup_size": kernel.max_threads,
        ".uniform_work_group_size": int(kernel.uniform),
    }


def _descriptor(kernel: Kernel) -> bytes:
    steps = max(0, -(-kernel.registers // VECTOR_GRANULE) - 1)
    scalars = 2 * max(0, -(-kernel.sgprs // SCALAR_GRANULE) - 1)
    first, third = steps | scalars << 6, (kernel.vgprs + 3) // 4 - 1
    head = struct.pack("<III", kernel.static_shared, 0, 0).ljust(44, b"\0")
    return (head + struct.pack("<III", third, first, 0)).ljust(DESCRIPTOR, b"\0")


def _note(kernels: list[Kernel]) -> bytes:
    described = pack({"amdhsa.kernels": [_metadata(kernel) for kernel in kernels], "amdhsa.version": [1, 2]})
    note = struct.pack("<III", 7, len(described), 32) + b"AMDGPU\0\0" + described
    return note + bytes(-len(note) % 4)


def code_object(
    kernels: Iterable[Kernel],
    architecture: str = "gfx90a",
    variables: Mapping[str, bytes] | None = None,
    apart: bool = False,
) -> bytes:
    """An ELF file with the note, the descriptors and the symbols. apart: a note for each kernel, as in rocBLAS."""
    chosen = list(kernels)
    note = b"".join(map(_note, [[kernel] for kernel in chosen] if apart else [chosen]))
    readonly = b"".join(_descriptor(kernel) for kernel in chosen)
    data = b"".join((variables or {}).values())
    strings, symbols = b"\0", bytes(24)
    base = {3: 0x1000, 4: 0x10000}
    places = [(f"{kernel.name}.kd", 3, index * DESCRIPTOR, DESCRIPTOR) for index, kernel in enumerate(chosen)]
    at = 0
    for name, value in (variables or {}).items():
        places.append((name, 4, at, len(value)))
        at += len(value)
    for name, home, offset, size in places:
        symbols += struct.pack("<IBBHQQ", len(strings), 0x11, 0, home, base[home] + offset, size)
        strings += name.encode() + b"\0"
    names = b"\0.note\0.dynsym\0.rodata\0.data\0.dynstr\0.symtab\0.shstrtab\0"
    contents = [(".note", 7, 0, note), (".dynsym", 11, 0, symbols), (".rodata", 1, base[3], readonly)]
    contents += [(".data", 1, base[4], data), (".dynstr", 3, 0, strings)]
    contents += [(".symtab", 2, 0, symbols), (".shstrtab", 3, 0, names)]
    place, body, table = 64, b"", bytes(64)
    for name, kind, address, content in contents:
        link, entry = (5, 24) if kind in (2, 11) else (0, 0)
        start = names.index(name.encode())
        table += struct.pack("<IIQQQQIIQQ", start, kind, 2, address, place, len(content), link, 1, 8, entry)
        padded = content + bytes(-len(content) % 8)
        body += padded
        place += len(padded)
    head = b"\x7fELF\x02\x01\x01\x40\x03" + bytes(7)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, place, MACHINES[architecture], 64, 0, 0, 64, 8, 7)
    return head + body + table


def bundle(images: Mapping[str, bytes]) -> bytes:
    """A fat binary; keys are targets such as gfx90a or gfx90a:xnack-."""
    entries = [("host-x86_64-unknown-linux-gnu-", b"")]
    entries += [(f"hipv4-amdgcn-amd-amdhsa--{target}", image) for target, image in images.items()]
    places, at = [], 4096
    for _, image in entries:
        places.append(at)
        at += (len(image) + 4095) // 4096 * 4096
    out = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    for (target, image), place in zip(entries, places):
        out += struct.pack("<QQQ", place, len(image), len(target)) + target.encode()
    for (_, image), place in zip(entries, places):
        out = out.ljust(place, b"\0") + image
    return out
