"""Gathers the pages of report folders, and those that still wait in /dev/shm for being copied there.

A job has one folder on a shared file system, or one on every node; then the folders are given together, or their files
are copied into one. Nobody need have made run-ID.json: the pages say what they belong to.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from pyshim.errors import OverlapError
from pyshim.launch import folder
from pyshim.report import waiting
from pyshim.report.steps import Step, steps
from pyshim.stats.file import Unreadable, of_folder
from pyshim.stats.page import OtherLayout, Page, Stranger, read_page


@dataclass(frozen=True)
class Skipped:
    name: str  # of a file that counts for nothing
    reason: str
    stranger: Stranger | None = None


@dataclass(frozen=True)
class Group:
    """Runs that are one start: nested overlap-runs, the ranks of one job, the steps of a Slurm job under a prolog."""

    ids: frozenset[str]  # of its runs; "" stands for the pages without one
    started: float  # seconds since 1970, of the first
    id: str  # of the first
    pages: int
    command: tuple[str, ...] | None
    expected: bool  # its processes should have left pages

    @property
    def title(self) -> str:
        """Return `0123456789abcdef (2026-11-22 09:46:03, python train.py)`."""
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started))
        said = shlex.join(self.command) if self.command else f"{self.pages:,} pages"
        return f"{self.id or 'without a run'} ({began}, {said if len(said) <= 60 else said[:57] + '...'})"


@dataclass(frozen=True)
class Collected:
    directories: tuple[str, ...]
    runs: tuple[folder.Run, ...]
    pages: tuple[Page, ...]  # by host, rank and process
    skipped: tuple[Skipped, ...]
    others: tuple[tuple[str, folder.Run], ...] = ()  # ranks that were started otherwise than the first of their run
    of: tuple[frozenset[str], ...] = ()  # the ids of the runs that each directory holds
    left: tuple[Group, ...] = ()  # runs of these directories that are left out
    summed: tuple[str, ...] = ()  # the titles of several runs that are added up

    @cached_property
    def steps(self) -> list[Step]:
        strangers = (file.stranger for file in self.skipped if file.stranger)
        return steps(self.runs, [*self.pages, *strangers])


def collect(*directories: str, waiting_room: str = waiting.ROOM) -> Collected:
    """Read the pages of the folders. Raises OverlapError where there is no such folder."""
    runs: dict[str, folder.Run] = {}
    others: list[tuple[str, folder.Run]] = []
    skipped: list[Skipped] = []
    pages: dict[tuple[object, ...], Page] = {}
    of: list[set[str]] = []  # the runs of each directory
    for directory in directories:
        names = listed(directory)
        its = folder.runs(directory, names)
        of.append({run.id for run in its})
        for run in its:
            first = runs.setdefault(run.id, run)
            if not folder.alike(first, run):
                others.append((run.host or directory, run))
        otherwise = folder.others(directory, names)
        others += otherwise
        skipped += (Skipped(name, "damaged, or of another version") for name in folder.damaged(names, its, otherwise))
    for directory, ids in zip(directories, of):
        skipped += (Skipped(*why) for why in waiting.fetch(directory, set(ids), waiting_room))
        before = len(skipped)
        for page in _pages(directory, skipped):
            ids.add(page.run)
            key = page.host, page.pid, page.start, page.run
            if key not in pages or _latest(page) >= _latest(pages[key]):
                pages[key] = page
        ids.update(file.stranger.run for file in skipped[before:] if file.stranger)
    return Collected(
        directories,
        tuple(sorted(runs.values(), key=lambda run: (run.started, run.id))),
        tuple(_with_files(page, runs.get(page.run)) for page in sorted(pages.values(), key=_place)),
        tuple(skipped),
        tuple(others),
        tuple(map(frozenset, of)),
    )


def _with_files(page: Page, run: folder.Run | None) -> Page:
    """Name the files of rules that come from a policy that was extended, as the run tells them: a page has no room."""
    if run is None or not any(rule.depth for rule in page.rules):
        return page
    files = {
        (policy.get("name"), key): os.path.basename(file)
        for policy in run.policies
        for key, file in policy.items()
        if file and key.startswith(folder.EXTENDS)
    }
    rules = (rule._replace(file=files.get((rule.policy, f"{folder.EXTENDS}{rule.depth}"), "")) for rule in page.rules)
    return replace(page, rules=tuple(rules))


def _latest(page: Page) -> tuple[bool, int]:
    """Order copies of one page, which are made while its process runs and at its end."""
    return page.ended, page.launches


def _place(page: Page) -> tuple[object, ...]:
    return page.host, -1 if page.rank is None else page.rank, page.start, page.pid


def _pages(directory: str, skipped: list[Skipped]) -> Iterator[Page]:
    believed = of_folder(directory)
    for name in listed(directory):
        if name.endswith(".page"):
            try:
                yield read_page(os.path.join(directory, name), believed)
            except OtherLayout as error:
                skipped.append(Skipped(name, str(error), error.stranger))
            except Unreadable as error:
                skipped.append(Skipped(name, str(error)))


def listed(directory: str) -> list[str]:
    """Return the sorted names in a report folder. Raises OverlapError where it cannot be read."""
    try:
        return sorted(os.listdir(directory))
    except NotADirectoryError as error:
        around = os.path.dirname(directory) or os.curdir
        hint = f"name the folder: overlap report {shlex.quote(around)}"
        raise OverlapError(f"{directory} is a file, and a report is a folder of pages", hint) from error
    except OSError as error:
        raise OverlapError(f"the report folder {directory} cannot be read: {error.strerror}") from error
