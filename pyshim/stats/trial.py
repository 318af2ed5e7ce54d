"""The trial of a process: policies that took turns, and what each took (struct overlap_page_trial)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.samples import Samples
from pyshim.stats.file import Unreadable
from pyshim.stats.rows import records

STATUSES = ("running", "kept", "nothing", "noisy")
ARM_STATUSES = ("tried", "harmful")
MARKS = (None, "communication", "host_wait")
OBSTACLES = (None, "context", "times", "captures")


class Block(NamedTuple):
    """The measured part of a block."""

    begun: int  # nanoseconds of the host's monotonic clock
    took: int | None  # nanoseconds, by the GPU's clock where communication is counted; None: not known, or not yet
    arm: int  # in force
    marks: int


class Arm(NamedTuple):
    name: str  # of its policy
    status: str  # tried | harmful: dropped
    level: int  # of the samples
    samples: Samples  # with those of earlier runs


@dataclass(frozen=True)
class Trial:
    status: str  # running | kept | nothing | noisy
    kept: int  # the arm in force to the end of the process, unless running
    mark: str | None  # what is counted: communication | host_wait; None: the trial has not begun
    obstacle: str | None  # why it gets no times: its context ended, the driver has no times, each turn has captures
    begun: int | None  # this and the next: nanoseconds of the host's monotonic clock; None: not yet
    settled: int | None
    marks: int  # of the trial, up to the last switch
    early: tuple[int, int]  # marks before it, of communication and of host waits
    arms: tuple[Arm, ...]  # the first is the reference
    measured: int  # blocks
    blocks: tuple[Block, ...]  # the latest of them, by time

    @property
    def seconds(self) -> float | None:
        """Seconds from the beginning to the verdict."""
        return None if None in (self.begun, self.settled) else ((self.settled or 0) - (self.begun or 0)) / 1e9


def trial(page: Any) -> Trial | None:
    """Return the trial of a page; None: its policy has none. Raises Unreadable for what no process has written."""
    record, library = page.trial, _native.library()
    if not record.arms:
        return None
    least = (
        2 <= record.arms <= library.OVERLAP_PAGE_ARMS
        and record.status < len(STATUSES)
        and record.mark < len(MARKS)
        and record.obstacle < len(OBSTACLES)
        and record.kept < record.arms
        and (STATUSES[record.status] != "kept" or record.kept)
    )
    blocks = _blocks(record) if least else []
    arms = [record.arm[index] for index in range(record.arms)] if least else []
    if (
        not least
        or any(block.arm >= record.arms for block in blocks)
        or any(arm.status >= len(ARM_STATUSES) or arm.level >= library.OVERLAP_TRIAL_LEVELS for arm in arms)
    ):
        raise Unreadable("damaged: its trial is none")
    return Trial(
        status=STATUSES[record.status],
        kept=record.kept,
        mark=MARKS[record.mark],
        obstacle=OBSTACLES[record.obstacle],
        begun=record.begun or None,
        settled=record.settled if record.begun and record.settled >= record.begun else None,
        marks=record.marks,
        early=(record.early[0], record.early[1]),
        arms=tuple(_arm(arm) for arm in arms),
        measured=record.blocks,
        blocks=tuple(blocks),
    )


def _blocks(record: Any) -> list[Block]:
    """Return the blocks in the order of their times; the latest ones take the places of the first."""
    made = [
        Block(record.begun + 100_000 * begun, 1000 * took or None, arm, marks)
        for begun, took, arm, marks in islice(records("<4I", record.block), record.blocks)
    ]
    at = record.blocks % len(record.block) if record.blocks > len(record.block) else 0
    return made[at:] + made[:at]


def _arm(record: Any) -> Arm:
    # A process may be writing them: what does not fit together is left out, and is there the next time.
    samples = Samples(record.samples.count, record.samples.sum, record.samples.squares)
    return Arm(
        name=_native.text(record.policy),
        status=ARM_STATUSES[record.status],
        level=record.level,
        samples=samples if samples.are_possible else Samples(),
    )
