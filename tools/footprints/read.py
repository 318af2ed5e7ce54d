"""What GPU kernels take, read out of real libraries.

    python tools/footprints/read.py FILE [--architecture 'sm_90*'] [--kernel '*ncclDevKernel*'] [--json]

FILE is a cubin, a fat binary, a code object for AMD GPUs, or a shared object that holds any of them. Compressed ones
(all that NVIDIA and AMD ship) need `pip install lz4 zstandard`. One line a kernel; --json: one JSON object a line.
Exit status 1 where nothing can be read, with one line that says why.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

import codeobject
import cubin
import fatbin
from footprint import Footprint, Unreadable


def read(path: Path, architecture: str = "*") -> Iterator[Footprint]:
    """Footprints of all kernels of a file, of those architectures that match a glob."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from read_bytes(data, architecture)  # type: ignore[arg-type]  # sliced and measured like bytes
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def read_bytes(data: bytes, architecture: str = "*") -> Iterator[Footprint]:
    if codeobject.is_code_object(data):
        yield from codeobject.read_code_objects(data[:], architecture)
    elif cubin.is_cubin(data):
        yield from (kernel for kernel in cubin.read_cubin(data[:]) if _matches(kernel.architecture, architecture))
    else:
        hip = None if fatbin.is_fatbin(data) else fatbin.section(data, ".hip_fatbin")
        if hip:
            yield from codeobject.read_code_objects(data[slice(*hip)], architecture)
            return
        for image in fatbin.images(data, architecture):
            for kernel in cubin.read_cubin(image.cubin(data)):
                # the container knows sm_90a and sm_90 apart, the cubin does not
                yield dataclasses.replace(kernel, architecture=image.architecture)


def _matches(name: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(name, glob)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--architecture", default="*", metavar="GLOB")
    parser.add_argument("--kernel", default="*", metavar="GLOB")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = [
            kernel for kernel in read(options.file, options.architecture) if _matches(kernel.kernel, options.kernel)
        ]
    except Unreadable as error:
        print(f"read.py: {options.file}: {error}", file=sys.stderr)
        return 1
    for kernel in found:
        facts = {name: value for name, value in dataclasses.asdict(kernel).items() if value is not None}
        if options.json:
            print(json.dumps(facts))
        else:
            rest = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in list(facts.items())[2:])
            print(f"{kernel.architecture} {kernel.kernel}: {rest}")
    if not found:
        print(f"read.py: {options.file}: no kernel of it matches", file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
