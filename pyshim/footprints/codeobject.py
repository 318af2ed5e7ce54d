"""Kernels of AMD code objects: alone in a file, bundled, compressed, or in section .hip_fatbin of a shared object.

The formats are those of LLVM: ClangOffloadBundler.rst (bundles, and their compressed form CCOB) and AMDGPUUsage.rst
("Code Object V3 and Above Metadata": a MessagePack map in an ELF note). Compilers write one note for all kernels of
an object. The code objects of GEMM libraries are linked from objects of one kernel each, and hold the note of each.

Registers are not taken from there but from the kernel descriptor, which the hardware obeys: the assembler that makes
the GEMMs of rocBLAS and hipBLASLt writes .vgpr_count without the AGPRs, and no .agpr_count (128 where a wave takes
256), while compilers write the total. So only gfx90a, gfx942 and gfx950 are read, whose descriptors are alike: VGPRs
and AGPRs come out of one file of 512 in steps of 8, AGPRs behind the VGPRs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyshim.footprints.elffile import Data, damage, is_elf_for, parse, symbols
from pyshim.footprints.footprint import Budget, Footprint, Unreadable, Wanted, every
from pyshim.footprints.unpack import MOST, Forward

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

COMPRESSED, BUNDLE = b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__"
SECTION = ".hip_fatbin"  # of a shared object: bundles one after the other, from each of its source files
MACHINE_AMDGPU = 224
NOTE_METADATA, NOTE_OWNER = 32, "AMDGPU"
SYMBOL_OBJECT = 1
DESCRIPTOR_REGISTERS = 44  # compute_pgm_rsrc3 with ACCUM_OFFSET, then compute_pgm_rsrc1 with the steps of registers
UNIFIED = ("gfx90a", "gfx942", "gfx950")
MACHINES = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950"}  # EF_AMDGPU_MACH_AMDGCN_...
XNACK = "xnack+"  # retrying page faults, which GPUs do only where HSA_XNACK=1 asks for it; xnack- is the usual mode
FLAGS_XNACK = 0x300  # both bits: on
# Of CCOB, by version: size of the file (from version 2 on) and of what it holds.
_SIZES = {1: "<I", 2: "<II", 3: "<QQ"}
_HASH = 8
_ENTRY = struct.Struct("<QQQ")
_MOST_ENTRIES, _LONGEST_NAME = 1000, 1000  # of a bundle; more is damage


Images = Iterator[tuple[str, Data]]


def is_code_object(data: Data) -> bool:
    return data[:4] == COMPRESSED or data[: len(BUNDLE)] == BUNDLE or is_elf_for(MACHINE_AMDGPU, data)


def read_code_objects(data: Data, at: int, end: int, wanted: Wanted = every) -> Iterator[Footprint]:
    """Yield the kernels of a code object, or of any wrapping of it, between two offsets. Raises Unreadable."""
    if end > len(data):
        raise Unreadable("a broken file: it ends inside its code objects")
    with damage("a broken code object: it ends before what it announces"):
        yield from _read(data, at, end, wanted)


def _read(data: Data, at: int, end: int, wanted: Wanted) -> Iterator[Footprint]:
    try:
        while at < end:
            if data[at : at + 4] == COMPRESSED:
                size, images = _compressed(data, at, end, wanted)
            elif data[at : at + len(BUNDLE)] == BUNDLE:
                size, images = _bundled(_Plain(data, at, end), wanted)
            else:
                yield from (kernel for kernel in _kernels(data[at:end]) if wanted(kernel.architecture))
                return
            for architecture, image in images:
                yield from _kernels(image, architecture)
            at += size
            while at < end and not data[at]:  # filling, up to the next page
                at += 1
    except KeyError as error:
        raise Unreadable(f"a code object whose description lacks {error}") from error


class _Plain:
    """A part of a file, read as what is compressed is."""

    def __init__(self, data: Data, start: int, end: int) -> None:
        self._data, self._start, self._end = data, start, end
        self.at = 0

    def read(self, size: int) -> bytes:
        start = self._start + self.at
        if start + size > self._end:
            raise Unreadable("a broken bundle: it ends inside one of its code objects")
        self.at += size
        return bytes(self._data[start : start + size])

    def skip(self, to: int) -> None:
        self.at = to


def _compressed(data: Data, at: int, end: int, wanted: Wanted) -> tuple[int, Images]:
    version, method = struct.unpack_from("<HH", data, at + 4)
    if version not in _SIZES:
        raise Unreadable(f"a compressed code object of version {version}, which overlap-run does not know")
    sizes = struct.unpack_from(_SIZES[version], data, at + 8)
    size = sizes[0] if version > 1 else end - at
    head = 8 + struct.calcsize(_SIZES[version]) + _HASH
    if not head < size <= end - at:
        raise Unreadable("a broken compressed code object: it ends before what it announces")
    packed = Forward(data, at + head, at + size, "zstd" if method else "zlib")
    return size, _bundled(packed, wanted)[1]


def _bundled(bundle: _Plain | Forward, wanted: Wanted) -> tuple[int, Images]:
    """Return the size of a bundle, and its images for GPUs of AMD that are wanted."""
    if bundle.read(len(BUNDLE)) != BUNDLE:
        raise Unreadable("a broken compressed code object: it holds no bundle")
    (count,) = struct.unpack("<Q", bundle.read(8))
    if count > _MOST_ENTRIES:
        raise Unreadable(f"a broken bundle: it announces {count} code objects")
    entries = []
    for _ in range(count):
        start, size, length = _ENTRY.unpack(bundle.read(_ENTRY.size))
        triple = bundle.read(min(length, _LONGEST_NAME)).decode()
        entries.append((start, size, triple))
    # Never less than was read: what is nothing would be read again and again.
    return max([bundle.at, *(start + size for start, size, _ in entries)]), _images(bundle, entries, wanted)


def _images(bundle: _Plain | Forward, entries: list[tuple[int, int, str]], wanted: Wanted) -> Images:
    for start, size, triple in sorted(entries):
        # hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-; the others are for the host
        if "amdgcn" not in triple or not size:
            continue
        architecture = _mode(triple)
        if wanted(architecture) and architecture.split(":")[0] in UNIFIED:
            if start < bundle.at:
                raise Unreadable(f"a broken bundle: its code objects for {architecture} and another overlap")
            bundle.skip(start)
            if size > MOST:
                raise Unreadable(f"a broken bundle: it announces {size} bytes for {architecture}")
            yield architecture, bundle.read(size)


def _mode(target: str) -> str:
    """Return gfx90a, or gfx90a:xnack+; other modes, or none, do not change the registers."""
    architecture, *modes = target[max(0, target.find("gfx")) :].split(":")
    return f"{architecture}:{XNACK}" if XNACK in modes else architecture


def _kernels(data: Data, architecture: str = "") -> Iterator[Footprint]:
    """Yield the kernels of one image. architecture: where the bundle says it."""
    if not is_elf_for(MACHINE_AMDGPU, data):
        raise Unreadable("a broken bundle: an image in it is not for AMD GPUs")
    file = parse(data)
    target, kernels = _metadata(file)
    architecture = architecture or _architecture(file, target)
    if architecture.split(":")[0] not in UNIFIED:
        return
    registers_of = dict(descriptors(data))
    for symbol, kernel in kernels.items():
        required: int | None = None
        if ".reqd_workgroup_size" in kernel:
            x, y, z = kernel[".reqd_workgroup_size"]
            required = x * y * z
        registers, before = registers_of[symbol]
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


def descriptors(data: Data) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield, by symbol (KERNEL.kd), the registers of a wave, and those before the first AGPR."""
    sections, budget = list(parse(data).iter_sections()), Budget(data)
    for table in sections:
        if table["sh_type"] != "SHT_SYMTAB":
            continue
        budget.take(table["sh_size"])
        for symbol in symbols(data, table):
            if symbol.info & 0xF != SYMBOL_OBJECT:  # hand-written kernels have thousands of labels
                continue
            name = table.stringtable.get_string(symbol.name)
            if name.endswith(".kd") and 0 < symbol.section < len(sections):
                home = sections[symbol.section]
                at = home["sh_offset"] + symbol.value - home["sh_addr"]
                third, second = struct.unpack_from("<II", data, at + DESCRIPTOR_REGISTERS)
                yield name, ((second & 0x3F) * 8 + 8, (third & 0x3F) * 4 + 4)


def _architecture(file: ELFFile, target: str) -> str:
    """Return the target's, or that of the ELF flags: hipBLASLt's own assembler writes no target."""
    if "gfx" in target:
        return _mode(target)
    flags = file["e_flags"]
    name = MACHINES.get(flags & 0xFF, f"machine {flags & 0xFF:#x}")
    return f"{name}:{XNACK}" if flags & FLAGS_XNACK == FLAGS_XNACK else name


def _metadata(file: ELFFile) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the target, empty where no note has one, and the description of each kernel, by its symbol."""
    import msgpack

    notes = _notes(file)
    if not notes:
        raise Unreadable("a code object without the note that describes its kernels")
    target = ""
    kernels: dict[str, dict[str, Any]] = {}
    for note in notes:
        said = msgpack.unpackb(note)
        if not isinstance(said, dict):
            raise Unreadable("a broken code object: a note on its kernels is no map")
        target = target or str(said.get("amdhsa.target", ""))
        for kernel in said.get("amdhsa.kernels", ()):
            kernels.setdefault(kernel[".symbol"], kernel)
    return target, kernels


def _notes(file: ELFFile) -> list[bytes]:
    """Return each metadata map once: sections and segments lead to the same notes."""
    places = {(part["sh_offset"], part["sh_size"]): part for part in file.iter_sections("SHT_NOTE")}
    places.update({(part["p_offset"], part["p_filesz"]): part for part in file.iter_segments("PT_NOTE")})
    if sum(size for _, size in places) > 2 * file.stream_len:
        raise Unreadable("a broken code object: its notes overlap")
    found = {}
    for (start, size), part in places.items():
        for note in part.iter_notes():
            if note["n_offset"] + note["n_size"] >= start + size + 4:  # the last one may be without its filling
                raise Unreadable("a broken code object: a note ends outside its place")
            if note["n_type"] == NOTE_METADATA and note["n_name"] == NOTE_OWNER:
                found[note["n_offset"]] = note["n_descdata"]
    return list(found.values())
