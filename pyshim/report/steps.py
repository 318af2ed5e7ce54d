"""Which processes of a report belong together: the ranks of one job step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyshim.launch.folder import Run
from pyshim.report.collect import Collected
from pyshim.stats.page import Page, Stranger


@dataclass
class Step:
    runs: list[Run] = field(default_factory=list)  # none: nobody wrote run-ID.json
    id: str = ""  # of the first of its runs; empty: the pages have none
    world: int | None = None
    pages: list[Page] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)  # whose pages cannot be read

    @property
    def processes(self) -> list[Page | Stranger]:
        return [*self.pages, *self.strangers]

    @property
    def ranks(self) -> set[int]:
        return {process.rank for process in self.processes if process.rank is not None}

    @property
    def missing(self) -> list[int]:
        """Nothing is said of a step in which nobody knows a rank."""
        return sorted(set(range(self.world)) - self.ranks) if self.world and self.ranks else []

    @property
    def title(self) -> str:
        return f"run {self.id}" if self.id else "the pages without a run"


def steps(collected: Collected) -> list[Step]:
    """By run id and by the number of ranks that the processes themselves know: a run may hold several job steps.

    Where ranks have runs of their own, those of one command, or of one Slurm job, are put together as long as no rank
    is in them twice: then they are one step whose ranks could not agree on a name."""
    runs = {run.id: run for run in collected.runs}
    found: list[Step] = []
    for step in _apart(collected, runs):
        like = [other for other in found if _key(other) and _key(other) == _key(step)]
        home = next((other for other in like if step.ranks and other.ranks.isdisjoint(step.ranks)), None)
        if home is None or not home.ranks:
            found.append(step)
        else:
            home.runs += step.runs
            home.pages += step.pages
            home.strangers += step.strangers
    return found


def _apart(collected: Collected, runs: dict[str, Run]) -> list[Step]:
    by_run: dict[str, list[Page | Stranger]] = {run.id: [] for run in collected.runs}
    for page in collected.pages:
        by_run.setdefault(page.run, []).append(page)
    for skipped in collected.skipped:
        if skipped.stranger:
            by_run.setdefault(skipped.stranger.run, []).append(skipped.stranger)
    result = []
    for identifier, processes in by_run.items():
        run = runs.get(identifier)
        by_world: dict[int | None, list[Page | Stranger]] = defaultdict(list)
        for process in processes:
            by_world[process.world if process.rank is not None else None].append(process)
        # Helpers that are no rank count for the first step of their run, and so do ranks that know no number.
        unknown = by_world.pop(None, [])
        expected = run.expected_world_size if run else None
        worlds: list[int | None] = sorted(by_world, key=lambda world: -(world or 0)) or [expected]
        for index, world in enumerate(worlds):
            members = by_world.get(world, []) + (unknown if index == 0 else [])
            result.append(_step(run, identifier, world, members))
    return result


def _step(run: Run | None, identifier: str, world: int | None, members: Sequence[Page | Stranger]) -> Step:
    return Step(
        [run] if run else [],
        identifier,
        world,
        [member for member in members if isinstance(member, Page)],
        [member for member in members if isinstance(member, Stranger)],
    )


def _key(step: Step) -> object:
    if not step.world:
        return None
    if step.runs:
        return step.world, step.runs[0].command
    return (step.world, step.id[:8]) if step.id else None
