"""What fuzzing begins with: real files where there are any, else such as the tests make. By fuzzer, name -> bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POLICIES = sorted((ROOT / "policies").glob("*.yaml"))


def tables() -> dict[str, bytes]:
    """Of all shipped policies, of those that travel by default, and of none."""
    from pyshim.policy import library, reader
    from pyshim.policy.table import compile_table

    read = {path.stem: reader.read_file(path).policy for path in POLICIES}
    made = {name: compile_table([policy]) for name, policy in read.items() if policy}
    assert len(made) == len(POLICIES) > 0
    return {**made, "auto": compile_table(library.load("auto", {})), "empty": compile_table([])}


def code_objects() -> dict[str, bytes]:
    """With registers that hand-written kernels have; alone and bundled."""
    from tools.simgpu.hip.code_object import Kernel, bundle, code_object

    kernels = [Kernel("gemm", vgprs=128, agprs=128, arguments=[8, 4]), Kernel("_Z4copyPfS_", vgprs=24)]
    one, other = code_object(kernels), code_object(kernels[:1], "gfx942")
    several = bundle({"gfx942": other, "gfx90a:xnack+": one, "gfx90a:xnack-": one})
    return {"one": one, "bundle": several}


def cubins() -> dict[str, bytes]:
    """Those of nvcc, a fat binary and PTX of nvcc, and a small one by hand."""
    from tools.simgpu.simgpu_cubin import Kernel, cubin

    folder = ROOT / "tests" / "simgpu" / "data"
    real = [*folder.glob("*.cubin"), folder / "kernels.ptx", ROOT / "tests" / "clients" / "data" / "packed.fatbin"]
    found = {path.name: path.read_bytes() for path in real}
    small = cubin([Kernel("gemm", 168, 1024, 128, (8, 4), (2, 1, 1)), Kernel("copy")], 90)
    return {**found, "small": small, "fatbin": fat(found["kernels.sm_90.cubin"], found["kernels.ptx"])}


def fat(cubin: bytes, ptx: bytes) -> bytes:
    """A fat binary of both."""
    body = b""
    for kind, number, payload in ((2, 90, cubin), (1, 80, ptx + b"\0")):
        payload += b"\0" * (-len(payload) % 8)
        head = (kind, 0x101, 64, len(payload), 0, 0, 0, 8, number, 64, 0, 0, 0, 0)
        body += struct.pack("<HHIQIIHHIIIQQQ", *head) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def pages() -> dict[str, bytes]:
    """Changes of an empty page (page_fuzz.c): a row with its record, counts of it, and of reasons alone."""
    from pyshim import _native

    _native.header()
    ffi = _native.ffi
    places = {name: field.offset for name, field in ffi.typeof("struct overlap_page").fields}
    shard, row = ffi.sizeof("struct overlap_shard"), ffi.sizeof("struct overlap_row")

    def change(place: int, value: int) -> bytes:
        return (place // 8).to_bytes(4, "little") + value.to_bytes(8, "little")

    counts = [change(places["shards"] + shard * index + 8 * index, 1000 + index) for index in range(4)]
    rows = [change(places["rows"] + row * index, 0xABC << 6 | index) for index in range(4)]
    return {"counts": b"".join(counts), "rows": b"".join(rows + counts), "none": b"\0" * 12}


# Of the programs in C; tests/fuzz/*_fuzz.py have their own.
SEEDS: dict[str, Callable[[], dict[str, bytes]]] = {
    "table": tables,
    "page": pages,
    "cubin": cubins,
    "hip": code_objects,
}
