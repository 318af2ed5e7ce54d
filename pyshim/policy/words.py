"""The words that a policy may use, and the small values that they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

When = Literal["overlapping", "always"]
ShapeKind = Literal["leave", "blocks", "percent", "bytes", "make_room"]

WHENS: tuple[When, ...] = ("overlapping", "always")
SHAPES: tuple[ShapeKind, ...] = ("leave", "make_room")
FAMILIES = ("all", "nccl", "rccl", "ncclx", "torch", "nvshmem", "deep_ep", "mscclpp", "vllm", "flashinfer", "ucc")

# Of a kernel's own resident blocks, in per cent: less than half costs more than overlap can gain.
KEEP = 50
# The largest value that the table's 64-bit ranges hold: no upper limit.
UNLIMITED = 2**64 - 1
MAX_THREADS = 1024


@dataclass(frozen=True)
class Range:
    """Inclusive; the default matches everything."""

    minimum: int = 0
    maximum: int = UNLIMITED

    def covers(self, other: Range) -> bool:
        return self.minimum <= other.minimum and other.maximum <= self.maximum


ANY = Range()


def either(words: tuple[str, ...]) -> str:
    """Return "a, b or c"."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
