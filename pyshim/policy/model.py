"""What a policy file says, after every check: frozen values, no text, no positions but the rules' lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyshim.enums import Dispatch as Dispatch

When = Literal["overlapping", "always"]
ShapeKind = Literal["leave", "blocks", "percent", "bytes", "make_room", "quick_entry"]
PriorityKind = Literal["inherit", "highest", "number", "auto"]
Carveout = Literal["keep", "max", "always"]

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
    """All of it must hold; an empty tuple of patterns asks for nothing. Of kernels and sets together any may match."""

    kernels: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    blocks: Range = ANY
    threads: Range = ANY
    registers: Range = ANY
    waves_percent: Range = ANY
    resident_blocks: Range = ANY
    sets: tuple[str, ...] = ()  # words of kernels.py


@dataclass(frozen=True)
class Shape:
    kind: ShapeKind = "leave"
    value: int = 0


@dataclass(frozen=True)
class Priority:
    kind: PriorityKind = "inherit"
    value: int = 0


INHERIT, AUTO = Priority(), Priority("auto")


@dataclass(frozen=True)
class Critical:
    """Whose streams are raised; share: per cent of the device's computation that such a stream has at most."""

    communication: bool = False
    host_waits: bool = False
    feeding: bool = False
    share: int = 0


OFF, ALL = Critical(), Critical(communication=True, host_waits=True, feeding=True, share=25)


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
    when_dispatch: Dispatch = "unknown"  # unknown: whatever the GPU does
    carveout: Carveout = "keep"
    file: str = field(default="", compare=False)  # which has that line; empty for what is in none
    depth: int = field(default=0, compare=False)  # how many `extends` lead from the policy to that file
    guard: bool = False  # nobody wrote it: it spares what only looks like the kernels of the rule behind it


@dataclass(frozen=True)
class Policy:
    name: str
    gpus: tuple[str, ...] = ()
    dispatch: Dispatch = "unknown"
    kernels: tuple[str, ...] = ()  # communication, besides the families that the library knows
    families: tuple[str, ...] = ()  # those that may be raised, with `kernels` and `libraries`; none: every family
    libraries: tuple[str, ...] = ()
    priority: Priority = AUTO
    stream_creators: tuple[str, ...] = ()
    stream_priority: Priority = INHERIT
    critical: Critical = OFF
    footprint: Footprint | None = None  # None: measured
    communication_carveout: Carveout = "keep"
    reserve_cus: int = 0  # AMD: compute units that streams created with a mask leave to communication
    fixed_size: tuple[str, ...] = ()  # kernels that read their own dynamic size: patterns, words of kernels.py
    rules: tuple[Rule, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # each set only where the user has not
    all_ranks_environment: Mapping[str, str] = field(default_factory=dict)  # likewise, and only with --all-ranks
