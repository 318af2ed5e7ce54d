"""What fuzzing begins with: real files where there are any, else such as the tests make. By fuzzer, name -> bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POLICIES = sorted((ROOT / "policies").glob("*.yaml"))


def tables() -> dict[str, bytes]:
    """Of all shipped policies, of those that travel by default, and of none."""
    from pyshim.policy import reader
    from pyshim.policy.table import compile_table
    from pyshim.start import chosen

    read = {path.stem: reader.read_file(path).policy for path in POLICIES}
    made = {name: compile_table([policy]) for name, policy in read.items() if policy}
    assert len(made) == len(POLICIES) > 0
    return {**made, "auto": compile_table(chosen.load("auto", {})), "empty": compile_table([])}


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
}
