"""The processes of a report: a row each, or one for each kind of process; and which are far from the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyshim.html import draw
from pyshim.report import many

Process = Mapping[str, Any]
# Heads of the columns of numbers, by what they count.
COLUMNS = {name: ("comm" if name == "communication" else name, "n") for name in many.COUNTED}


@dataclass(frozen=True)
class Spread:
    """What the processes of one kind counted under one name."""

    counter: str
    dots: list[draw.Dot]
    values: list[int]  # ascending


@dataclass(frozen=True)
class Kind:
    """Processes of one program and policy."""

    program: str
    policy: str
    members: list[Process]

    @property
    def hosts(self) -> int:
        return len({process["host"] for process in self.members})

    @cached_property
    def spreads(self) -> list[Spread]:
        counters = (counter for counter in many.COUNTED if any(process[counter] for process in self.members))
        return [self._spread(counter) for counter in counters]

    def _spread(self, counter: str) -> Spread:
        far = {id(process) for process in self.far(counter)}
        dots = [
            (process[counter], f"{name(process)}: {process[counter]:,}", id(process) in far) for process in self.members
        ]
        return Spread(counter, draw.strip(dots), sorted(process[counter] for process in self.members))

    def far(self, counter: str) -> list[Process]:
        if len(self.members) < many.LEAST:
            return []
        fence = many.fence([process[counter] for process in self.members])
        return [process for process in self.members if many.beyond(process[counter], *fence) > 0]


@dataclass(frozen=True)
class Processes:
    every: Sequence[Process]

    @property
    def are_few(self) -> bool:
        return len(self.every) <= many.FEW

    @property
    def kinds(self) -> list[Kind]:
        """Return the kinds of several processes, the most frequent first."""
        found: dict[tuple[str, str], list[Process]] = defaultdict(list)
        for process in self.every:
            found[program(process), process["policy"] or "none"].append(process)
        kinds = [Kind(*key, members) for key, members in found.items() if len(members) > 1]
        return sorted(kinds, key=lambda kind: -len(kind.members))

    @property
    def far(self) -> list[Process]:
        every = (process for kind in self.kinds for counter in many.COUNTED for process in kind.far(counter))
        return list({id(process): process for process in every}.values())


def name(process: Process) -> str:
    """Return node1:7, or with its rank: rank 3 (node1:7)."""
    place = f"{process['host']}:{process['pid']}"
    return place if process["rank"] is None else f"rank {process['rank']} ({place})"


def program(process: Process) -> str:
    return str(process["program"]).rpartition("/")[2] + (" (forked)" if process["forked"] else "")
