"""What one kernel takes of a multiprocessor, as far as its binary says, and the error of all that read it."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass

_BEYOND = 1 << 31  # registers, bytes and threads of any GPU


class Unreadable(Exception):
    """A file that is no GPU binary, or a broken one. Its text is one sentence for the user."""


class Budget:
    """Bytes that may be looked at in a file: overlapping parts would make it the square of its size."""

    def __init__(self, data: Sized) -> None:
        self._left = 16 * len(data) + (1 << 20)

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Unreadable("a broken file: its parts lie over each other")


# Whether kernels of an architecture are asked for.
Wanted = Callable[[str], bool]


def every(architecture: str) -> bool:
    return True


@dataclass(frozen=True)
class Footprint:
    """Dynamic shared memory is not here: no binary says it, the program chooses it at each launch.

    static_shared_memory is what the driver reports, so without the 1,024 bytes that the system keeps for each block.
    On AMD it is LDS, and registers are VGPRs and AGPRs together, in the steps of 8 that a wave is given.
    """

    kernel: str  # as the binary says, so mangled
    architecture: str  # sm_90, sm_90a, gfx90a; gfx90a:xnack+ where the image is for GPUs in that mode only
    registers: int
    static_shared_memory: int
    max_threads: int | None = None  # the launch bound; None where the binary has none
    required_threads: int | None = None  # the exact block, where the kernel insists on one
    barriers: int | None = None  # named barriers; None on AMD, which records none
    cluster: int | None = None  # blocks in a cluster, where the kernel insists on one
    accumulators: int | None = None  # AMD: how many of the registers are AGPRs
    scalars: int | None = None  # AMD: SGPRs

    def __post_init__(self) -> None:
        """Raise Unreadable for sizes that no kernel has: later arithmetic is of 32 bits."""
        numbers = [value for name, value in vars(self).items() if name not in ("kernel", "architecture")]
        texts = isinstance(self.kernel, str) and isinstance(self.architecture, str)
        if (
            not texts
            or self.registers is None
            or self.static_shared_memory is None
            or any(value is not None and not _is_size(value) for value in numbers)
        ):
            raise Unreadable("a broken file: it says of a kernel what is true of none")


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < _BEYOND
