#!/usr/bin/env python3
"""Write api.def, the table of every entry point of the CUDA driver API, from NVIDIA's headers.

    python tools/simgpu/generate_api.py /usr/local/cuda/include > tools/simgpu/api.def

Needs cuda.h, cudaTypedefs.h, cudaProfiler.h and a C preprocessor ($CC or cc). Only maintainers run it: the build
reads the committed table. Every function of the headers gets a row, which says for which name and version
cuGetProcAddress answers it. One without a typedef, or a typedef without one, stops the generator.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

VIEWS: tuple[list[str], ...] = ([], ["-D__CUDA_API_PER_THREAD_DEFAULT_STREAM"], ["-D__CUDA_API_VERSION_INTERNAL"])
TYPEDEF = re.compile(r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)")
PROTOTYPE = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(")


def exported_names(include: Path) -> set[str]:
    """Every function name that the headers declare, seen from the three views of their macros."""
    names: set[str] = set()
    compiler = os.environ.get("CC", "cc").split()
    for view in VIEWS:
        source = "#include <cuda.h>\n#include <cudaProfiler.h>\n"
        command = [*compiler, "-E", "-P", *view, "-I", str(include), "-x", "c", "-"]
        text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
        names.update(PROTOTYPE.findall(text))
    names.discard("cuGetProcAddress_v2_ptsz")  # an inline function of the header, not an entry point
    return names


def split_symbol(symbol: str) -> tuple[str, int, str]:
    """cuMemcpyHtoD_v2_ptds -> ("cuMemcpyHtoD", 2, "_ptds")."""
    match = re.fullmatch(r"(\w+?)(?:_v(\d))?(_pt[sd][sz])?", symbol)
    assert match is not None
    return match[1], int(match[2] or 1), match[3] or ""


def proc_rows(include: Path, names: set[str]) -> list[tuple[str, int, int, str]]:
    """(base name, version, per thread, symbol) of every typedef."""
    versions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        for base, version, suffix in TYPEDEF.findall((include / header).read_text()):
            versions[base, suffix].append(int(version))
    symbols: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        base, number, suffix = split_symbol(name)
        symbols[base, suffix].append((number, name))
    rows = []
    for key, found in versions.items():
        candidates = [name for _, name in sorted(symbols[key])]
        if len(candidates) != len(found):
            sys.exit(f"generate_api: {key}: versions {sorted(found)}, symbols {candidates}")
        per_thread = 1 if key[1] else 0
        rows += [(key[0], version, per_thread, name) for version, name in zip(sorted(found), candidates)]
    return sorted(rows)


def main() -> None:
    include = Path(sys.argv[1])
    names = exported_names(include)
    rows = proc_rows(include, names)
    version = re.search(r"#define CUDA_VERSION (\d+)", (include / "cuda.h").read_text())
    assert version is not None
    if names != {symbol for *_, symbol in rows}:
        sys.exit(f"generate_api: no typedef: {sorted(names - {symbol for *_, symbol in rows})}")
    print("/* Every entry point of the CUDA driver API, and for which question cuGetProcAddress answers it.")
    print(f" * Written by generate_api.py from the headers of CUDA {version[1]}; do not edit.")
    print(" *   ENTRY(symbol, base name, version, per thread)  sorted by base name, per thread within version */")
    for base, number, per_thread, symbol in rows:
        print(f"ENTRY({symbol}, {base}, {number}, {per_thread})")


if __name__ == "__main__":
    main()
