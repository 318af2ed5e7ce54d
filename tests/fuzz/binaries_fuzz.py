"""What explain and doctor read of binaries: cubins, fat binaries, code objects and their wrappings, ELF headers. Any
bytes give kernels or one sentence."""

from __future__ import annotations

import os
import tempfile
import zlib

from pyshim.footprints.footprint import Unreadable
from pyshim.footprints.read import read_bytes
from pyshim.launch import elf
from tests.fuzz.saying import ask
from tests.fuzz.seeds import code_objects, cubins

SLOWEST, LONGEST = 10.0, 1 << 16
WORDS = (
    *(
        b"\x7fELF\x02\x01\x01",
        b"CCOB\x03\0\1\0",
        b"CCOB\x02\0\0\0",
        b"__CLANG_OFFLOAD_BUNDLE__",
        b"\x50\xed\x55\xba\1\0\x10\0",
    ),
    *(
        b".nv.info.",
        b".nv.shared.",
        b".hip_fatbin\0",
        b".nv_fatbin\0",
        b"AMDGPU\0\0",
        b"hipv4-amdgcn-amd-amdhsa--gfx90a",
    ),
    *(
        b"\x28\xb5\x2f\xfd",
        b"\xbe\0",
        b"\xe0\0",
        b"\xde\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b".kd\0",
        b"\xff" * 8,
        b"\0" * 8,
    ),
    *(
        b"\x1b]0;x\x07",
        b"\xe2\x80\xae",
        b"[red]",
        b"#!/bin/sh\n",
        b"\x02\0\0\0",
        b"\x08\0\0\0",
        b"\x07\0\0\0",
        b"\x04\x2f\x08\0",
    ),
)
_FOLDER = tempfile.mkdtemp(prefix="overlap-fuzz-")
_FILE = os.path.join(_FOLDER, "library.so")


def seeds() -> dict[str, bytes]:
    from tests.footprints.footprint_files import (
        GEMM,
        RCCL,
        bundle,
        code_object,
        compressed,
        cubin,
        fatbin,
        with_segments,
    )
    from tests.footprints.footprint_files import elf as shared

    plain = code_object([RCCL, GEMM], target="gfx90a")
    wrapped = bundle({"host-x86_64": b"x", "hipv4-amdgcn-amd-amdhsa--gfx90a": plain})
    packed = {f"zlib{version}": compressed(wrapped, version) for version in (1, 2, 3)}
    fat = fatbin([(2, 90, 0, cubin(1024), 0), (1, 80, 0, b".version 8.0\n", 0)])
    made = {
        "segments": with_segments(plain),
        "shared": shared([(".hip_fatbin", 1, wrapped, 0, 0)]),
        "nvidia": shared([(".nv_fatbin", 1, fat, 0, 0)]),
        "old": cubin(2048),
        "apart": code_object([RCCL, GEMM], apart=True),
    }
    with open("/bin/true", "rb") as file:
        program = file.read(LONGEST)
    return {
        **code_objects(),
        **cubins(),
        **packed,
        **made,
        "program": program,
        "script": b"#!/usr/bin/env python3 -u\n",
    }


def one(data: bytes) -> bool:
    with open(_FILE, "wb") as file:
        file.write(data)
    found = elf.inspect(_FILE)
    assert found.kind in (elf.UNKNOWN, elf.ELF, elf.SCRIPT)
    try:
        kernels = list(read_bytes(data))
    except Unreadable:
        kernels = []
    if kernels or zlib.crc32(data) % 16 == 0:
        ask("explain", "--from", _FILE, "--threads", "128")
        ask("explain", "--from", _FILE, "--threads", "128", "--json")
    return bool(kernels) or found.kind == elf.ELF
