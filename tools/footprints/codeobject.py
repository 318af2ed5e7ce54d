"""Kernels of AMD code objects: alone in a file, bundled, compressed, or in section .hip_fatbin of a shared object.

The formats are those of LLVM: ClangOffloadBundler.rst (bundles, and their compressed form CCOB) and AMDGPUUsage.rst
("Code Object V3 and Above Metadata": a MessagePack map in an ELF note).

Registers are not taken from there but from the kernel descriptor, which the hardware obeys: the assembler that makes
the GEMMs of rocBLAS and hipBLASLt writes .vgpr_count without the AGPRs, and no .agpr_count (128 where a wave takes
256), while compilers write the total. So only gfx90a, gfx942 and gfx950 are read, whose descriptors are alike: VGPRs
and AGPRs come out of one file of 512 in steps of 8, AGPRs behind the VGPRs.
"""

from __future__ import annotations

import fnmatch
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from footprint import Footprint, Unreadable
from messagepack import decode
from unpack import unpack_zstd

COMPRESSED, BUNDLE = b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__"
MACHINE_AMDGPU = 224
NOTE_SECTION, NOTE_METADATA = 7, 32
SECTION_SYMBOLS = 2
DESCRIPTOR_REGISTERS = 44  # compute_pgm_rsrc3 with ACCUM_OFFSET, then compute_pgm_rsrc1 with the steps of registers
UNIFIED = ("gfx90a", "gfx942", "gfx950")
MACHINES = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950"}  # EF_AMDGPU_MACH_AMDGCN_...
# Of CCOB, by version: size of the file (from version 2 on) and of what it holds.
_SIZES = {1: "<I", 2: "<II", 3: "<QQ"}
_HASH = 8


def is_code_object(data: bytes) -> bool:
    return data[:4] == COMPRESSED or data[: len(BUNDLE)] == BUNDLE or _is_amdgpu(data)


def _is_amdgpu(data: bytes) -> bool:
    return data[:5] == b"\x7fELF\x02" and len(data) >= 20 and struct.unpack_from("<H", data, 18)[0] == MACHINE_AMDGPU


def read_code_objects(data: bytes, architecture: str = "*") -> Iterator[Footprint]:
    """Of a code object, or any wrapping of it; architecture is a glob on gfx90a and the like."""
    try:
        if data[:4] == COMPRESSED:
            data = _decompressed(data)
        if data[: len(BUNDLE)] == BUNDLE:
            for target, image in _bundled(data):
                if fnmatch.fnmatchcase(target, architecture) and image:
                    yield from _kernels(image)
        elif _is_amdgpu(data):
            for kernel in _kernels(data):
                if fnmatch.fnmatchcase(kernel.architecture, architecture):
                    yield kernel
        else:
            raise Unreadable("not a code object for AMD GPUs")
    except KeyError as error:
        raise Unreadable(f"a code object whose description lacks {error}") from error
    except (struct.error, IndexError, OverflowError, TypeError, ValueError) as error:
        raise Unreadable("a broken code object: it ends before what it announces") from error


def _decompressed(data: bytes) -> bytes:
    version, method = struct.unpack_from("<HH", data, 4)
    if version not in _SIZES:
        raise Unreadable(f"a compressed code object of version {version}, which this tool does not know")
    sizes = struct.unpack_from(_SIZES[version], data, 8)
    packed = data[8 + struct.calcsize(_SIZES[version]) + _HASH :]
    if method == 0:
        try:
            return zlib.decompress(packed)
        except zlib.error as error:
            raise Unreadable(f"a broken compressed code object: {error}") from error
    return unpack_zstd(packed, sizes[-1])


def _bundled(data: bytes) -> Iterator[tuple[str, bytes]]:
    (count,) = struct.unpack_from("<Q", data, len(BUNDLE))
    at = len(BUNDLE) + 8
    for _ in range(count):
        start, size, length = struct.unpack_from("<QQQ", data, at)
        triple = data[at + 24 : at + 24 + length].decode()
        at += 24 + length
        if start + size > len(data):
            raise Unreadable(f"a broken bundle: it ends inside its code object for {triple}")
        if "amdgcn" in triple:  # hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-; the others are for the host
            yield triple.split("--")[-1].split(":")[0], data[start : start + size]


def _kernels(data: bytes) -> Iterator[Footprint]:
    if not _is_amdgpu(data):
        raise Unreadable("a broken bundle: an image in it is not for AMD GPUs")
    metadata = _metadata(data)
    architecture = _architecture(data, metadata)
    if architecture not in UNIFIED:
        return
    descriptors = dict(_descriptors(data))
    for kernel in metadata.get("amdhsa.kernels", ()):
        required: int | None = None
        if ".reqd_workgroup_size" in kernel:
            x, y, z = kernel[".reqd_workgroup_size"]
            required = x * y * z
        registers, before = descriptors[kernel[".symbol"]]
        yield Footprint(
            kernel=kernel[".name"],
            architecture=architecture,
            registers=registers,
            static_shared_memory=kernel[".group_segment_fixed_size"],
            max_threads=kernel[".max_flat_workgroup_size"],
            required_threads=required,
            accumulators=max(0, registers - before),
            scalars=kernel[".sgpr_count"],
        )


def _descriptors(data: bytes) -> Iterator[tuple[str, tuple[int, int]]]:
    """By symbol (KERNEL.kd): registers of a wave, and how many of them are before the first AGPR."""
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + size * index) for index in range(count)]
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind != SECTION_SYMBOLS:
            continue
        strings = sections[link][4]
        for name, _, _, home, value, _ in struct.iter_unpack("<IBBHQQ", data[start : start + length]):
            first = strings + name
            text = data[first : data.index(b"\0", first)].decode()
            if text.endswith(".kd") and 0 < home < count:
                place = sections[home][4] + value - sections[home][3]
                third, second = struct.unpack_from("<II", data, place + DESCRIPTOR_REGISTERS)
                yield text, ((second & 0x3F) * 8 + 8, (third & 0x3F) * 4 + 4)


def _architecture(data: bytes, metadata: dict[str, Any]) -> str:
    """From the flags of the ELF file where the metadata, as that of hipBLASLt's own assembler, does not say it."""
    if "amdhsa.target" in metadata:
        return str(metadata["amdhsa.target"]).split("--")[-1].split(":")[0]
    (flags,) = struct.unpack_from("<I", data, 48)
    return MACHINES.get(flags & 0xFF, f"machine {flags & 0xFF:#x}")


def _metadata(data: bytes) -> dict[str, Any]:
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for index in range(count):
        _, kind, _, _, start, length = struct.unpack_from("<IIQQQQ", data, at + size * index)
        end = start + length
        while kind == NOTE_SECTION and start < end:
            name, described, note = struct.unpack_from("<III", data, start)
            start += 12 + (name + 3 & ~3)
            if note == NOTE_METADATA:
                found = decode(data[start : start + described])
                if isinstance(found, dict):
                    return found
            start += described + 3 & ~3
    raise Unreadable("a code object without the note that describes its kernels")
