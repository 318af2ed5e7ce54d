"""What a policy file says, after every check: frozen values, no text, no positions but the rules' lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

When = Literal["overlapping", "always"]
ShapeKind = Literal["leave", "blocks", "percent", "bytes"]
PriorityKind = Literal["inherit", "highest", "number"]

# The largest value that the table's 64-bit ranges hold: no upper limit.
UNLIMITED = 2**64 - 1


@dataclass(frozen=True)
class Range:
    """Inclusive; the default matches everything."""

    minimum: int = 0
    maximum: int = UNLIMITED

    def covers(self, other: Range) -> bool:
        return self.minimum <= other.minimum and other.maximum <= self.maximum


ANY = Range()


@dataclass(frozen=True)
class Match:
    """All of it must hold; an empty tuple of patterns asks for nothing."""

    kernels: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    blocks: Range = ANY
    threads: Range = ANY
    registers: Range = ANY
    waves_percent: Range = ANY
    resident_blocks: Range = ANY


@dataclass(frozen=True)
class Shape:
    kind: ShapeKind = "leave"
    value: int = 0


@dataclass(frozen=True)
class Priority:
    kind: PriorityKind = "inherit"
    value: int = 0


@dataclass(frozen=True)
class Footprint:
    threads: int
    registers: int
    static_shared: int
    dynamic_shared: int


@dataclass(frozen=True)
class Rule:
    match: Match
    shape: Shape
    when: When
    keep_at_least: int  # per cent, 0: not asked for
    line: int  # in the policy file, from 1


@dataclass(frozen=True)
class Policy:
    name: str
    gpus: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()  # communication, besides the families that the library knows
    libraries: tuple[str, ...] = ()
    priority: Priority = Priority()
    stream_creators: tuple[str, ...] = ()
    stream_priority: Priority = Priority()
    footprint: Footprint | None = None  # None: measured
    rules: tuple[Rule, ...] = ()
