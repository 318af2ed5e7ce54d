"""Which processes of a report belong together: the ranks of one job step."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyshim.launch.folder import Run
from pyshim.stats.page import Page, Stranger

MOST_RANKS = 1 << 20  # of a job; a file that says more is damaged, or made to keep us busy


@dataclass
class Step:
    runs: list[Run] = field(default_factory=list)  # none: nobody wrote run-ID.json
    id: str = ""  # of the first of its runs; empty: the pages have none
    world: int | None = None
    pages: list[Page] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)  # whose pages cannot be read
    ranks: set[int] = field(init=False)
    inside: set[int] = field(default_factory=set)  # of runs inside of this one

    def __post_init__(self) -> None:
        self.ranks = {process.rank for process in self.processes if process.rank is not None}

    @property
    def processes(self) -> list[Page | Stranger]:
        return [*self.pages, *self.strangers]

    @property
    def missing(self) -> list[int]:
        """Nothing is said of a step in which nobody knows a rank."""
        return sorted(set(range(self.world)) - self.ranks - self.inside) if self.world and self.ranks else []

    @property
    def title(self) -> str:
        return f"run {self.id}" if self.id else "the pages without a run"

    def add(self, other: Step) -> None:
        self.runs += other.runs
        self.pages += other.pages
        self.strangers += other.strangers
        self.ranks |= other.ranks


def steps(every_run: Sequence[Run], processes: Iterable[Page | Stranger]) -> list[Step]:
    """By run id and by the number of ranks that the processes themselves know: a run may hold several job steps.

    Where ranks have runs of their own, those of one command, of one Slurm job, or of one run around them, are put
    together as long as no rank is in them twice: then they are one step whose ranks did not agree on a name."""
    runs = {run.id: run for run in every_run}
    found: list[Step] = []
    homes: dict[object, list[Step]] = defaultdict(list)
    for step in _apart(runs, processes):
        keys = _keys(step)
        home = next((other for key in keys for other in homes[key] if _fits(other, step)), None)
        if home:
            home.add(step)
            continue
        found.append(step)
        for key in keys:
            homes[key].append(step)
    inside: dict[str, set[int]] = defaultdict(set)
    for step in found:
        for run in step.runs:
            inside[run.outer or ""] |= step.ranks
    for step in found:
        step.inside = inside[step.id] if step.id else set()
    return found


def _fits(home: Step, step: Step) -> bool:
    """Return whether no rank would be there twice; an mpirun has the script's run here, and steps on other hosts."""
    if step.runs or home.ranks.isdisjoint(step.ranks):
        return home.ranks.isdisjoint(step.ranks)
    script = {one.rank for one in home.processes if one.run[:8] == step.id[:8] and one.run[10:] == "fffffb"}
    return set(step.missing) <= script


def _apart(runs: dict[str, Run], every_process: Iterable[Page | Stranger]) -> list[Step]:
    by_run: dict[str, list[Page | Stranger]] = {identifier: [] for identifier in runs}
    for process in every_process:
        by_run.setdefault(process.run, []).append(process)
    result = []
    for identifier, processes in by_run.items():
        run = runs.get(identifier)
        by_world: dict[int | None, list[Page | Stranger]] = defaultdict(list)
        for process in processes:
            by_world[_believed(process.world) if process.rank is not None else None].append(process)
        # Helpers that are no rank count for the first step of their run, and so do ranks that know no number.
        unknown = by_world.pop(None, [])
        expected = _believed(run.expected_world_size) if run else None
        worlds: list[int | None] = sorted(by_world, key=lambda world: -(world or 0)) or [expected]
        for index, world in enumerate(worlds):
            members = by_world.get(world, []) + (unknown if index == 0 else [])
            result.append(_step(run, identifier, world, members))
    return result


def _believed(world: int | None) -> int | None:
    return world if world and world <= MOST_RANKS else None


def _step(run: Run | None, identifier: str, world: int | None, members: Sequence[Page | Stranger]) -> Step:
    return Step(
        [run] if run else [],
        identifier,
        world,
        [member for member in members if isinstance(member, Page)],
        [member for member in members if isinstance(member, Stranger)],
    )


# Of torchrun and accelerate, which are started on each host by itself.
_HOST = re.compile(r"(--(?:node|machine)[-_]rank)[=\0][^\0]*")


def _everywhere(command: Sequence[str] | None) -> str:
    """Return a command without what says on which host it was started."""
    return _HOST.sub(r"\1", "\0".join(command or ()))


def _keys(step: Step) -> list[object]:
    """Return keys: steps that share one may be parts of one. None of a whole one: a folder may hold thousands."""
    if not step.world or not 0 < len(step.ranks) < step.world:
        return []
    if step.runs:
        (run,) = step.runs
        return [("command", step.world, _everywhere(run.command)), ("run", step.world, run.outer or run.id)]
    return [("job", step.world, step.id[:8]), ("run", step.world, step.id)] if step.id else []
