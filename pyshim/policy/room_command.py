"""The command `overlap policy room` about one kernel, as answers print it."""

from __future__ import annotations

from pyshim.errors import OverlapError


def room_command(gpu: str, threads: int = 0, registers: int = 0, static: int = 0, dynamic: int = 0) -> str:
    """Return the command about a block on a GPU of the driver's name; what is not known (0, "") is left to fill in."""
    block = ":".join(map(str, _without_zeros([threads, registers, static, dynamic])))
    return f"overlap policy room --gpu {_key(gpu)} --kernel {block if threads else 'THREADS:REGISTERS'}"


def _without_zeros(numbers: list[int]) -> list[int]:
    """Return the numbers up to the last that says something: shared memory may be left out."""
    while len(numbers) > 2 and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


def _key(name: str) -> str:
    """Return how commands call a GPU: h200; GPU where it is not known."""
    from pyshim.policy import gpus  # most answers name no GPU, and need not load it

    try:
        return gpus.named(name).key if name else "GPU"
    except OverlapError:
        return "GPU"
