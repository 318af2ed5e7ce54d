"""The GPUs that the library knows by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyshim import _native


class KnownGpu(NamedTuple):
    """Limits of one multiprocessor unless said otherwise; bytes."""

    key: str
    name: str
    architecture: str
    multiprocessors: int
    threads: int
    blocks: int
    registers: int
    shared_memory: int
    shared_memory_per_block: int
    memory_gib: int


def known() -> list[KnownGpu]:
    library = _native.library()
    gpu: Any = _native.ffi.new("struct overlap_gpu *")
    found: list[KnownGpu] = []
    while library.overlap_gpu_known(len(found), gpu):
        found.append(
            KnownGpu(
                key=_text(gpu.key),
                name=_text(gpu.name),
                architecture=_text(gpu.architecture),
                multiprocessors=gpu.multiprocessors,
                threads=gpu.threads,
                blocks=gpu.blocks,
                registers=gpu.registers,
                shared_memory=gpu.shared,
                shared_memory_per_block=gpu.shared_optin,
                memory_gib=gpu.memory_gib,
            )
        )
    return found


def _text(array: Any) -> str:
    return bytes(_native.ffi.buffer(array)).split(b"\0", 1)[0].decode("utf-8", "replace")
