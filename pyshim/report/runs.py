"""Tell apart the runs in one report folder: the latest is reported, older ones only if they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from pyshim.errors import USAGE, OverlapError
from pyshim.report.collect import Collected, Group
from pyshim.report.who import some

if TYPE_CHECKING:
    from pyshim.launch.folder import Run
    from pyshim.stats.page import Page

ALL = "all"
_JOB = 8  # digits of an id that all steps of a Slurm job share
_NAMED = 6


def groups(collected: Collected) -> list[Group]:
    """Return the runs of all folders together, the first one started first."""
    known = {run.id: run for run in collected.runs}
    by_run: dict[str, list[Page]] = defaultdict(list)
    for page in collected.pages:
        by_run[page.run].append(page)
    strangers = [skipped.stranger for skipped in collected.skipped if skipped.stranger]
    ids = [*dict.fromkeys((*known, *by_run, *(stranger.run for stranger in strangers)))]
    head = {one: one for one in ids}

    def find(one: str) -> str:
        while head[one] != one:
            head[one] = head[head[one]]
            one = head[one]
        return one

    def join(some_ids: Iterable[str]) -> None:
        first, *rest = [find(one) for one in some_ids if one in head] or [""]
        for one in rest:
            head[one] = first

    for run in collected.runs:
        if run.outer:
            join((run.outer, run.id))
    jobs: dict[str, list[str]] = defaultdict(list)
    for one in ids:
        if one and one not in known:
            jobs[one[:_JOB]].append(one)
    for members in jobs.values():
        join(members)
    for step in collected.steps:
        if len(step.runs) > 1 or step.pages:
            join(dict.fromkeys((*(run.id for run in step.runs), *(page.run for page in step.pages))))
    found: dict[str, list[str]] = defaultdict(list)
    for one in ids:
        found[find(one)].append(one)
    starts = {stranger.run: stranger.start / 1e9 for stranger in strangers}
    for page in collected.pages[::-1]:
        starts[page.run] = min(page.start / 1e9, starts.get(page.run, inf))
    starts.update((run.id, run.started) for run in collected.runs if run.started)
    made = [
        _group(
            sorted(members, key=lambda one: (starts.get(one, 0.0), one)),
            starts,
            [known[one] for one in members if one in known],
            sum(len(by_run[one]) for one in members),
        )
        for members in found.values()
    ]
    return sorted(made, key=lambda group: (group.started, group.id))


def _group(ids: Sequence[str], starts: Mapping[str, float], runs: Sequence[Run], pages: int) -> Group:
    commands = [run.command for run in runs if run.command]
    # Of ranks that start one by one some may use no GPU; an environment that was printed may never be used.
    alone = any(run.command and (run.expected_world_size or 1) == 1 for run in runs)
    expected = bool(pages or alone or len(runs) < len(ids))
    return Group(frozenset(ids), starts.get(ids[0], 0.0), ids[0], pages, commands[0] if commands else None, expected)


def chosen(collected: Collected, wanted: str | None = None) -> Collected:
    """Return what belongs to one start. Raises OverlapError where no run, or more than one, is called so.

    wanted: ALL, or the id of a run or how it begins; None: of each folder the latest."""
    every = groups(collected)
    if wanted == ALL:
        return replace(collected, summed=tuple(group.title for group in every) if len(every) > 1 else ())
    if wanted is not None:
        keep = _named(every, wanted, collected.directories)
    elif len(every) < 2:
        return collected
    else:
        keep = {}
        for ids in collected.of or (frozenset().union(*(group.ids for group in every)),):
            its = [group for group in every if group.ids & ids]
            last = ([group for group in its if group.expected] or its)[-1:]
            keep.update((group.id, group) for group in last)
    kept = frozenset().union(*(group.ids for group in keep.values()))
    left = tuple(group for group in every if group.id not in keep)
    return replace(
        collected,
        runs=tuple(run for run in collected.runs if run.id in kept),
        pages=tuple(page for page in collected.pages if page.run in kept),
        skipped=tuple(
            skipped for skipped in collected.skipped if skipped.stranger is None or skipped.stranger.run in kept
        ),
        others=tuple((who, run) for who, run in collected.others if run.id in kept),
        left=left,
    )


def _named(every: list[Group], wanted: str, directories: Iterable[str]) -> dict[str, Group]:
    found = [group for group in every if any(one.startswith(wanted) for one in group.ids if one)]
    if len(found) == 1 and wanted:
        return {found[0].id: found[0]}
    what = "no run" if not found else f"{len(found)} runs"
    raise OverlapError(
        f"--run {wanted}: {what} of {some(directories)} {'begins' if len(found) < 2 else 'begin'} so",
        f"there {'is' if len(every) == 1 else 'are'} {some([group.title for group in every[-_NAMED:]])}",
        USAGE,
    )


def remark(collected: Collected, command: str = "") -> list[str]:
    """Return what is not shown, or what was added up, as a sentence. command: the one that has the options for it."""
    if collected.summed:
        return [f"{len(collected.summed):,} runs are added up: {some(collected.summed)}"]
    if not collected.left:
        return []
    which = "another run that is" if len(collected.left) == 1 else f"{len(collected.left):,} other runs that are"
    holds = "holds" if len(collected.directories) == 1 else "hold"
    named = some([group.title for group in collected.left[::-1]])
    where = some(collected.directories)
    return [f"{where} {holds} {which} not shown: {named}. {command}--run ID shows one of them, --all adds all up"]
