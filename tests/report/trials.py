"""Trials of pages made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyshim import _native

SECOND = 10**9
BEGUN = 5000 * SECOND
RUNNING, KEPT, NOTHING, NOISY = range(4)
ARMS = ("trial", "critical-streams", "a100-paper")
Sums = tuple[int, float, float]
Block = tuple[int, int, int, int]  # begun (tenths of a millisecond), took (microseconds), arm, marks


def sums(percent: float, off: float = 0.1, count: int = 12) -> Sums:
    """Return the sums of samples: half of them this change, less `off` per cent, the other half so much more."""
    values = [percent + off, percent - off] * (count // 2)
    samples = [2 * (value / 100) / (2 + value / 100) for value in values]
    return len(samples), sum(samples), sum(sample**2 for sample in samples)


GAINS, EQUAL, LOSES = sums(-17.8, 0.7), sums(-0.1, 0.3), sums(39, 1, 4)


def put(
    path: Path,
    status: int = KEPT,
    kept: int = 1,
    samples: Sequence[Sums] = ((0, 0.0, 0.0), GAINS, LOSES),
    arms: Sequence[str] = ARMS,
    dropped: Sequence[int] = (2,),
    blocks: Sequence[Block] = (),
    level: int = 1,
    levels: Mapping[int, int] = {},
    **fields: Any,
) -> Path:
    """Put a trial into a page. levels: by the index of an arm, its level where it is not `level`."""
    page = _native.ffi.from_buffer("struct overlap_page *", data := bytearray(path.read_bytes()))
    trial = page.trial
    trial.arms, trial.status, trial.kept = len(arms), status, kept
    usual: Mapping[str, Any] = {"mark": 1, "begun": BEGUN, "settled": BEGUN + 41 * SECOND, "marks": 2048}
    for name, value in {**usual, **fields}.items():
        setattr(trial, name, value)
    for index, name in enumerate(arms):
        trial.arm[index].policy[0 : len(name)] = name.encode()
        trial.arm[index].status, trial.arm[index].level = int(index in dropped), levels.get(index, level)
        one = trial.arm[index].samples
        one.count, one.sum, one.squares = samples[index]
    trial.blocks = len(blocks)
    for index, block in enumerate(blocks):
        one = trial.block[index % len(trial.block)]
        one.begun, one.took, one.arm, one.marks = block
    path.write_bytes(data)
    return path


def blocks(lengths: Sequence[int], arms: Sequence[int]) -> list[Block]:
    """Return blocks of these lengths, in milliseconds, one after the other."""
    made, begun = [], 0
    for length, arm in zip(lengths, arms):
        made.append((begun, length * 750, arm, 23))
        begun += length * 10
    return made
