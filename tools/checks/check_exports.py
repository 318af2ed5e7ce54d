"""What the preloaded library shows to other objects, and what it asks of them. Exits 1 and says every finding.

    python -m tools.checks.check_exports [LIBRARY ...]        default: pyshim/_lib/liboverlap.so

Any machine's library can be looked at (tools/release looks at all that a wheel carries). Exported are the rows of the
vendors' tables of entry points, the functions that overlap_abi.h promises, and those of the C library that we stand in
front of (INTERPOSED), each under two versions.
"""

from __future__ import annotations

import io
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.constants import P_FLAGS
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from tools.checks import driver_table

ROOT = Path(__file__).resolve().parents[2]

LIBRARY = ROOT / "pyshim" / "_lib" / "liboverlap.so"
MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_CUDA": "cuda"}
OLDEST_NODE = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}
NEWEST_GLIBC = (2, 17)
# Only glibc has these, or not every libc: the library must load without them.
WEAK = {
    "environ", "_environ", "__environ", "__getauxval", "__register_atfork", "_r_debug", "_dl_debug_addr",
    "program_invocation_name", "__progname_full", "__gmon_start__", "__cxa_finalize",
    "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable",
}  # fmt: skip
INTERPOSED = ("dlsym", "dlvsym", "dlclose")  # dlopen: see docs/how-to/profile.md

HIDDEN = 0x8000  # of several versions of a name, not the default


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
    tags: set[str] = field(default_factory=set)
    symbols: list[Symbol] = field(default_factory=list)
    executable_stack: bool = True  # unless a header says otherwise
    stripped: bool = True


def read(data: bytes) -> Elf:
    """Raises ValueError for what is no such file."""
    if data[:4] != b"\x7fELF" or data[4:6] != b"\x02\x01":
        raise ValueError("not a little-endian ELF file of 64 bits")
    try:
        return _read(ELFFile(io.BytesIO(data)))
    except (ELFError, struct.error, LookupError, OverflowError, UnicodeDecodeError, StopIteration) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _read(file: Any) -> Elf:
    elf = Elf(MACHINES.get(file["e_machine"], "unknown"))
    elf.stripped = not any(section["sh_type"] == "SHT_SYMTAB" for section in file.iter_sections())
    for segment in file.iter_segments():
        if segment["p_type"] == "PT_GNU_STACK":
            elf.executable_stack = bool(segment["p_flags"] & P_FLAGS.PF_X)
        if not isinstance(segment, DynamicSegment):
            continue
        for tag in segment.iter_tags():
            elf.tags.add(tag.entry.d_tag)
            if tag.entry.d_tag == "DT_NEEDED":
                elf.needed.append(tag.needed)
            if tag.entry.d_tag == "DT_SONAME":
                elf.soname = tag.soname
    symbols, versions = (file.get_section_by_name(name) for name in (".dynsym", ".gnu.version"))
    if symbols is None:
        return elf
    names = _nodes(file)
    for index, symbol in enumerate(symbols.iter_symbols()):
        ndx = versions.get_symbol(index)["ndx"] if versions else 1
        number = ndx if isinstance(ndx, int) else 1  # VER_NDX_LOCAL, VER_NDX_GLOBAL
        if index:
            defined, weak = symbol["st_shndx"] != "SHN_UNDEF", symbol["st_info"]["bind"] == "STB_WEAK"
            node = names.get(number & ~HIDDEN, "")
            elf.symbols.append(Symbol(symbol.name, defined, weak, node, not number & HIDDEN))
    return elf


def _nodes(file: Any) -> dict[int, str]:
    """Version index -> name, of the nodes defined here and of those asked of others."""
    names = {}
    if defined := file.get_section_by_name(".gnu.version_d"):
        for node, parents in defined.iter_versions():
            names[node["vd_ndx"]] = next(parents).name
    if asked := file.get_section_by_name(".gnu.version_r"):
        for _, nodes in asked.iter_versions():
            names.update((node["vna_other"], node.name) for node in nodes)
    names.pop(1, None)  # the library's own name, for what has no version
    return names


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
    if {"DT_RPATH", "DT_RUNPATH"} & elf.tags:
        yield "has a RUNPATH"
    if "DT_TEXTREL" in elf.tags:
        yield "relocates its code"
    if elf.executable_stack:
        yield "asks for an executable stack"


def check_library(elf: Elf, root: Path = ROOT) -> list[str]:
    return [*check_exported(elf, root), *check_needs(elf), *check_loading(elf)]


def check(path: Path, root: Path = ROOT) -> list[str]:
    try:
        elf = read(path.read_bytes())
    except (OSError, ValueError) as error:
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
