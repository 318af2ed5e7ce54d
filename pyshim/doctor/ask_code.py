"""Hand the GPU code of files to the simulated driver, which says on stderr what it refuses, as it does in a program.

It is a program of its own, never imported: files may be damaged, and the driver may crash on them.

    python -I -S ask_code.py LIBRARY FILE DESCRIPTOR    # one JSON object to the descriptor: see refused()
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from ctypes import byref, c_int, c_void_p

# The table that NVIDIA's runtime asks the driver for: RUNTIME_TABLE of tools/simgpu/lookup.c. A file that has this
# name in it brings that runtime.
RUNTIME_TABLE = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
FATBIN = 0xBA55ED50, 1, 16  # magic, version and bytes of the header of a fat binary
_HEADER = "<IHHQ"
_MOST = 256  # fat binaries of a file; a compiler makes one for each source


def refused(library: ctypes.CDLL, path: str) -> dict[str, object]:
    """Return whether the driver refuses NVIDIA's runtime in a file, and how many of its fat binaries of how many."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found, module = c_void_p(), c_void_p()
        if data.find(RUNTIME_TABLE) >= 0 and library.cuGetExportTable(byref(found), RUNTIME_TABLE):
            return {"runtime": True, "images": 0, "refused": 0}
        codes = [library.cuModuleLoadData(byref(module), image) for image in _fat_binaries(data)]
    return {"runtime": False, "images": len(codes), "refused": sum(map(bool, codes))}


def _fat_binaries(data: mmap.mmap) -> Iterator[bytes]:
    """Yield the fat binaries in a file: what begins like one, and does not end behind the file."""
    at, found = -1, 0
    while found < _MOST and (at := data.find(struct.pack("<I", FATBIN[0]), at + 1)) >= 0:
        head = data[at : at + struct.calcsize(_HEADER)]
        if len(head) < struct.calcsize(_HEADER):
            return
        *kind, size = struct.unpack(_HEADER, head)
        end = at + len(head) + size
        if tuple(kind) == FATBIN and size > 0 and end <= len(data):
            found += 1
            yield data[at:end]


def _context(library: ctypes.CDLL) -> None:
    device, context = c_int(), c_void_p()
    library.cuInit(0)
    library.cuDeviceGet(byref(device), 0)
    library.cuDevicePrimaryCtxRetain(byref(context), device)
    library.cuCtxSetCurrent(context)


if __name__ == "__main__":
    driver = ctypes.CDLL(sys.argv[1])
    _context(driver)
    os.write(int(sys.argv[3]), json.dumps(refused(driver, sys.argv[2])).encode())  # noqa: TID251 (the parent's pipe)
