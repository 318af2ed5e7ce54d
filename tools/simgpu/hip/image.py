"""Writes what the simulated GPUs of AMD take for code: a list of kernels with what they take (image.c), for tests.

image([Kernel("gemm", vgprs=128, agprs=128, static_shared=32768, arguments=[8, 8, 4])])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

GRANULE = 8  # registers


@dataclass
class Kernel:
    name: str
    vgprs: int = 32
    agprs: int = 0
    sgprs: int = 32
    static_shared: int = 0
    max_threads: int = 1024  # 0: not said
    arguments: list[int] = field(default_factory=list)  # sizes
    said: int | None = None  # registers by the metadata, where that is not what the hardware counts
    uniform: bool = True

    @property
    def registers(self) -> int:
        """VGPRs and AGPRs; these begin at a multiple of 4."""
        return (self.vgprs + 3) // 4 * 4 + self.agprs if self.agprs else self.vgprs


def image(kernels: Iterable[Kernel]) -> bytes:
    lines = ["simulated kernels of AMD"]
    for one in kernels:
        hardware = -(-one.registers // GRANULE) * GRANULE
        said = one.registers if one.said is None else one.said
        numbers = (hardware, said, one.sgprs, one.static_shared, one.max_threads, int(one.uniform), *one.arguments)
        lines.append(" ".join([one.name, *map(str, numbers)]))
    return "\n".join([*lines, "\0"]).encode()
