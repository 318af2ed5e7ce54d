"""What a program has: streams, events, captures, graphs; and what the model makes of its operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.windows.operations import Key

EAGER = 0
SHARE = 250  # thousandths of the computation: the most of a minor stream


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Node(NamedTuple):
    operation: int  # its place in the program
    world: int  # EAGER, or the number of a capture
    device: int
    communication: bool = False


@dataclass
class Event:
    device: int
    record: int = 0  # node of the latest record outside of captures, as a bit; 0: never recorded
    capture: Capture | None = None  # the capture that it was recorded in last
    heads: int = 0
    in_graph: bool = False  # a graph records it or waits for it
    of_start: bool = False  # a launch has recorded it before its kernel
    by: Stream | None = None  # the stream that has recorded it last, outside of captures

    @property
    def vague(self) -> bool:
        """Who waits for it may be taken to wait for everything."""
        return self.in_graph or self.of_start


@dataclass
class Stream:
    device: int
    blocking: bool
    legacy: bool = False
    tail: int = 0  # its latest node, as a bit
    capture: Capture | None = None
    heads: int = 0  # in that capture
    prioritised: bool = False  # by the program
    work: int = 0  # threads of its computation
    waits: list[tuple[int, int]] = field(default_factory=list)  # its work and all, at each wait for it

    def minor(self) -> bool:
        """Was it, twice in a row, a small part of what was computed between two times that somebody waited for it?"""
        behind_one: set[int] = set()
        for to, (own, total) in enumerate(self.waits):
            for begin, (before, total_before) in enumerate(self.waits[:to]):
                mine, others = own - before, total - total_before
                if mine and mine * 1000 // others <= SHARE:
                    if begin in behind_one:
                        return True
                    behind_one.add(to)
        return False


@dataclass
class Capture:
    number: int
    origin: Key
    device: int
    members: list[Key]
    nodes: int = 0
    active: bool = True
    kernels: bool = False  # there are some in it


class Part(NamedTuple):
    """A node of a graph."""

    before: tuple[int, ...]
    communication: bool = False
    records: Event | None = None
    waits: Event | None = None


@dataclass
class Graph:
    device: int
    parts: list[Part]
    latest: int = 0  # its latest launch: launches of one executable graph follow each other
    by_hand: bool = False
    kernels: bool = False

    @property
    def has_communication(self) -> bool:
        return any(part.communication for part in self.parts)


class Launch(NamedTuple):
    """A computation launch, and the communication that was launched before it in its context and world."""

    operation: int
    node: int
    stream: Key
    earlier: int
