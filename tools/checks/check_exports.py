"""What the preloaded library shows to other objects, and what it asks of them. Exits 1 and says every finding.

    python -m tools.checks.check_exports [LIBRARY ...]        default: pyshim/_lib/liboverlap.so

Reads the ELF file itself: no binutils needed, and any machine's library can be looked at (tools/release looks at all
that a wheel carries). Exported are the rows of the vendors' tables of entry points, the functions that overlap_abi.h
promises, and those of the C library that we stand in front of (INTERPOSED), each under two versions.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.checks import driver_table

ROOT = Path(__file__).resolve().parents[2]

LIBRARY = ROOT / "pyshim" / "_lib" / "liboverlap.so"
MACHINES = {62: "x86_64", 183: "aarch64", 190: "cuda"}
OLDEST_NODE = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}
NEWEST_GLIBC = (2, 17)
# Only glibc has these, or not every libc: the library must load without them.
WEAK = {
    "environ", "_environ", "__environ", "__getauxval", "__register_atfork", "_r_debug", "_dl_debug_addr",
    "program_invocation_name", "__progname_full", "__gmon_start__", "__cxa_finalize",
    "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable",
}  # fmt: skip
INTERPOSED = ("dlsym", "dlvsym", "dlclose")  # dlopen: see docs/how-to/profile.md

PT_DYNAMIC, PT_GNU_STACK, PT_LOAD = 2, 0x6474E551, 1
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_SONAME, DT_RPATH, DT_TEXTREL, DT_RUNPATH = 1, 4, 5, 6, 14, 15, 22, 29
SHT_SYMTAB = 2
DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERNEED = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE


@dataclass(frozen=True)
class Symbol:
    name: str
    defined: bool
    weak: bool
    version: str  # empty: none
    default: bool  # of several versions, the one that a linker takes


@dataclass
class Elf:
    """The dynamic part of a little-endian shared object, and whether it was stripped."""

    machine: str = ""
    soname: str = ""
    needed: list[str] = field(default_factory=list)
    tags: set[int] = field(default_factory=set)
    symbols: list[Symbol] = field(default_factory=list)
    executable_stack: bool = True  # unless a header says otherwise
    stripped: bool = True


# System V gABI, chapters 4 and 5, of 64 bits.
SEGMENT, DYNAMIC, SYMBOL, WORD = "<IIQQQQQQ", "<qQ", "<IBBHQQ", 8


class Reader:
    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF" or data[4:6] != b"\x02\x01":
            raise ValueError("not a little-endian ELF file of 64 bits")
        self.data = data
        self.elf = Elf(machine=MACHINES.get(self.get("<H", 18)[0], "unknown"))
        segments, sections = self.get("<QQ", 32)
        size, count, section_size, section_count = self.get("<HHHH", 54)
        rows = [self.get(SEGMENT, segments + i * size) for i in range(count)]
        self.headers = [(kind, flags, offset, address, there) for kind, flags, offset, address, _, there, *_ in rows]
        kinds = [self.get("<I", sections + i * section_size + 4)[0] for i in range(section_count)]
        self.elf.stripped = SHT_SYMTAB not in kinds
        self.dynamic: dict[int, int] = {}

    def get(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(form, self.data, offset)

    def offset(self, address: int) -> int:
        """Where in the file an address lies."""
        for kind, _, offset, start, size in self.headers:
            if kind == PT_LOAD and start <= address < start + size:
                return offset + address - start
        raise ValueError(f"address {address:#x} is in no segment")

    def string(self, index: int) -> str:
        start = self.offset(self.dynamic[DT_STRTAB]) + index
        return self.data[start : self.data.index(b"\0", start)].decode()

    def read(self) -> Elf:
        needed = []
        step = struct.calcsize(DYNAMIC)
        for kind, flags, offset, _, size in self.headers:
            if kind == PT_GNU_STACK:
                self.elf.executable_stack = bool(flags & 1)
            if kind != PT_DYNAMIC:
                continue
            for at in range(offset, offset + size, step):
                tag, value = self.get(DYNAMIC, at)
                if tag == 0:
                    break
                self.dynamic[tag] = value
                if tag == DT_NEEDED:
                    needed.append(value)
        self.elf.tags = set(self.dynamic)
        self.elf.needed = [self.string(value) for value in needed]
        self.elf.soname = self.string(self.dynamic[DT_SONAME]) if DT_SONAME in self.dynamic else ""
        names = self.versions()
        for index in range(1, self.symbol_count()):
            self.elf.symbols.append(self.symbol(index, names))
        return self.elf

    def symbol_count(self) -> int:
        if DT_SYMTAB not in self.dynamic:
            return 0
        if DT_HASH in self.dynamic:
            return self.get("<I", self.offset(self.dynamic[DT_HASH]) + 4)[0]
        at = self.offset(self.dynamic[DT_GNU_HASH])
        buckets, first, words, _ = self.get("<IIII", at)
        table = at + 16 + WORD * words
        last = max(self.get(f"<{buckets}I", table))
        if last < first:
            return first
        while not self.get("<I", table + 4 * (buckets + last - first))[0] & 1:
            last += 1
        return last + 1

    def versions(self) -> dict[int, str]:
        """Version index -> name, of the nodes defined here and of those asked of others."""
        names: dict[int, str] = {}
        at = self.offset(self.dynamic[DT_VERDEF]) if DT_VERDEF in self.dynamic else 0
        while at:
            _, _, index, _, _, first, following = self.get("<HHHHIII", at)
            names[index] = self.string(self.get("<I", at + first)[0])
            at = at + following if following else 0
        at = self.offset(self.dynamic[DT_VERNEED]) if DT_VERNEED in self.dynamic else 0
        while at:
            _, count, _, entry, following = self.get("<HHIII", at)
            entry += at
            for _ in range(count):
                _, _, index, name, more = self.get("<IHHII", entry)
                names[index] = self.string(name)
                entry += more
            at = at + following if following else 0
        return names

    def symbol(self, index: int, versions: dict[int, str]) -> Symbol:
        at = self.offset(self.dynamic[DT_SYMTAB]) + struct.calcsize(SYMBOL) * index
        name, info, _, section, _, _ = self.get(SYMBOL, at)
        version = (
            self.get("<H", self.offset(self.dynamic[DT_VERSYM]) + 2 * index)[0] if DT_VERSYM in self.dynamic else 1
        )
        node = versions.get(version & 0x7FFF, "") if version & 0x7FFF > 1 else ""
        return Symbol(self.string(name), section != 0, info >> 4 == 2, node, not version & 0x8000)


# By which librocprofiler-register finds who wants HIP's table of functions (shim/hip/dispatch_table.c).
PROFILER = {"rocprofiler_configure", "rocprofiler_set_api_table"}


def vendor_names(root: Path = ROOT) -> set[str]:
    rows: set[str] = set()
    for path in (root / "shim").glob("*/driver.def"):
        rows |= {row.name for row in driver_table.rows(path)}
    for path in (root / "shim").glob("*/runtime.def"):
        rows |= set(re.findall(r"^RUNTIME\((\w+),", path.read_text(encoding="utf-8"), re.M))
    return rows | PROFILER


def own_names(root: Path = ROOT) -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", (root / "shim" / "overlap_abi.h").read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(r"\b(overlap_\w+)\(", text))


def aliases() -> set[str]:
    """The names that .symver gives another name; an assembler keeps them."""
    return {f"overlap_{name}_{age}" for name in INTERPOSED for age in ("old", "new")}


def check_exported(elf: Elf, root: Path = ROOT) -> Iterator[str]:
    found = {(s.name, s.version) for s in elf.symbols if s.defined and not s.name.startswith("GLIBC_")}
    old = OLDEST_NODE.get(elf.machine, "")
    versioned = {(name, node) for name in INTERPOSED for node in (old, "GLIBC_2.34")}
    plain = {(name, "") for name in vendor_names(root) | own_names(root)}
    allowed = plain | versioned | {(name, "") for name in aliases()}
    for name, version in sorted((plain | versioned) - found):
        yield f"{name}{'@' + version if version else ', without a version,'} is not exported"
    for name, version in sorted(found - allowed):
        yield f"{name}{'@' + version if version else ''} is exported, and nobody promised it"
    for name in INTERPOSED:
        defaults = [s.version for s in elf.symbols if s.defined and s.name == name and s.default]
        if defaults and defaults != ["GLIBC_2.34"]:
            yield f"{name}: the default version is {', '.join(defaults)}"


def check_needs(elf: Elf) -> Iterator[str]:
    """Of the library alone, which is loaded into every process of whatever libc."""
    if elf.needed != ["libc.so.6"]:
        yield f"needs {', '.join(elf.needed) or 'nothing'}, not libc.so.6 alone"
    for symbol in elf.symbols:
        if symbol.defined:
            continue
        if "pthread" in symbol.name:
            yield f"{symbol.name}: a pthread symbol asks for another library"
        if symbol.name in WEAK and not symbol.weak:
            yield f"{symbol.name}: a strong reference, which not every libc can satisfy"
    if elf.machine not in OLDEST_NODE:
        yield "is for a machine that nobody knows"


def check_loading(elf: Elf) -> Iterator[str]:
    """Of everything that a loader gets from us."""
    for symbol in elf.symbols:
        if symbol.defined:
            continue
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", symbol.version)
        if symbol.version and not number:
            yield f"{symbol.name}@{symbol.version}: not a version of glibc"
        elif number and (int(number[1]), int(number[2])) > NEWEST_GLIBC:
            yield f"{symbol.name}@{symbol.version}: newer than glibc 2.17"
        if re.fullmatch(r"__\w+_chk", symbol.name):
            yield f"{symbol.name}: of a fortified build, which musl does not know"
        if symbol.name.startswith("_Z"):
            yield f"{symbol.name}: a symbol of C++"
    if {DT_RPATH, DT_RUNPATH} & elf.tags:
        yield "has a RUNPATH"
    if DT_TEXTREL in elf.tags:
        yield "relocates its code"
    if elf.executable_stack:
        yield "asks for an executable stack"


def check_library(elf: Elf, root: Path = ROOT) -> list[str]:
    return [*check_exported(elf, root), *check_needs(elf), *check_loading(elf)]


def check(path: Path, root: Path = ROOT) -> list[str]:
    try:
        elf = Reader(path.read_bytes()).read()
    except (OSError, ValueError, KeyError, struct.error) as error:
        return [f"cannot be read: {error}"]
    return check_library(elf, root)


def main() -> int:
    failed = 0
    for path in [Path(name) for name in sys.argv[1:]] or [LIBRARY]:
        found = check(path)
        failed += len(found)
        for line in found:
            print(f"check_exports: {path}: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
