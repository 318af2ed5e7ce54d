"""Read the footprints of kernels in a cubin, fat binary, AMD code object, or shared object with any of them."""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Iterator
from pathlib import Path

from pyshim.footprints import codeobject, cubin, fatbin
from pyshim.footprints.elffile import Data
from pyshim.footprints.footprint import Footprint, Unreadable, Wanted, every


def read(path: Path, wanted: Wanted = every) -> Iterator[Footprint]:
    """Yield the kernels of wanted architectures; only their images are unpacked where possible. Raises Unreadable."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from read_bytes(data, wanted)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def read_bytes(data: Data, wanted: Wanted = every) -> Iterator[Footprint]:
    if codeobject.is_code_object(data):
        yield from codeobject.read_code_objects(data, 0, len(data), wanted)
    elif cubin.is_cubin(data):
        yield from (kernel for kernel in cubin.read_cubin(bytes(data[:])) if wanted(kernel.architecture))
    elif fatbin.is_fatbin(data):
        yield from _of_nvidia(data, wanted)
    else:
        hip = dict(fatbin.sections(data)).get(codeobject.SECTION)
        if hip:
            yield from codeobject.read_code_objects(data, *hip, wanted)
        else:
            yield from _of_nvidia(data, wanted)


def _of_nvidia(data: Data, wanted: Wanted) -> Iterator[Footprint]:
    for image in fatbin.images(data, wanted):
        for kernel in cubin.read_cubin(image.cubin(data)):
            # the container knows sm_90a and sm_90 apart, the cubin does not
            yield dataclasses.replace(kernel, architecture=image.architecture)
