"""Gathers the pages of a run, from its folder or from one on every node, and those that still wait in /dev/shm.

A report folder has a subfolder for each run and a link `last` to the latest one (pyshim/start/folder.py). A folder
with pages in it is a run itself. Nothing is written here: waiting pages are read where they are (pages/waiting.py).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Protocol

from pyshim.counts import counted
from pyshim.errors import USAGE, OverlapError
from pyshim.pages.page import OtherLayout, Page, Stranger, read_page
from pyshim.pages.untrusted import Unreadable, me, of_folder
from pyshim.pages.waiting import WAITING_ROOM, in_place, is_over, living
from pyshim.profiles import is_trace
from pyshim.start import folder

_CLOCK = 60  # seconds by which the machine's clock may have been set since
MOST_RANKS = 1 << 20  # of a job; a file that says more is damaged, or made to keep us busy
_SHOWN = 3
_RANGES = 6
_LOOKED_AT = 64  # files of a folder without pages


@dataclass(frozen=True)
class Skipped:
    name: str  # of a file that counts for nothing
    reason: str
    stranger: Stranger | None = None


@dataclass
class Step:
    """The processes of a job step: those that were told the same number of ranks."""

    world: int | None = None
    pages: list[Page] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)  # whose pages cannot be read

    @property
    def processes(self) -> list[Page | Stranger]:
        return [*self.pages, *self.strangers]

    @cached_property
    def ranks(self) -> set[int]:
        return {process.rank for process in self.processes if process.rank is not None}

    @property
    def missing(self) -> list[int]:
        """Nothing is said of a step in which no process knows a rank."""
        return sorted(set(range(self.world)) - self.ranks) if self.world and self.ranks else []

    @property
    def title(self) -> str:
        return counted(self.world, "rank") if self.world else "no ranks"


@dataclass(frozen=True)
class Collected:
    directories: tuple[str, ...]  # as they were named
    runs: tuple[folder.Run, ...]  # how it was started: by overlap-run in front, then by those inside of it
    pages: tuple[Page, ...]  # by host, rank and process
    skipped: tuple[Skipped, ...] = ()
    others: tuple[tuple[str, folder.Run, folder.Run], ...] = ()  # who was started otherwise, how, and how the first was
    left: tuple[Page, ...] = ()  # of pages: those on this machine alone, whose processes will not bring them any more
    named: bool = False  # an overlap-run or a prolog has made the folder for one run

    @cached_property
    def steps(self) -> list[Step]:
        """Return the steps of the run, the largest first: a script may hold several."""
        found: dict[int | None, Step] = {}
        strangers = (file.stranger for file in self.skipped if file.stranger)
        # Helpers that are no rank count for the first step, and so do ranks that know no number.
        every: list[Page | Stranger] = [*self.pages, *filter(None, strangers)]
        processes = sorted(every, key=lambda process: -(_world(process) or 0))
        for process in processes:
            world = _world(process) or next(
                iter(found), _believed(self.runs[0].expected_world_size if self.runs else 0)
            )
            step = found.setdefault(world, Step(world))
            (step.pages if isinstance(process, Page) else step.strangers).append(process)  # type: ignore[arg-type]
        return list(found.values())

    @property
    def without_driver(self) -> list[str]:
        """Return the hosts of the run, if none of them has a driver of a GPU."""
        looked = [run for run in self.runs if run.driver is not None]
        return [] if any(run.driver for run in looked) else sorted({run.host for run in looked if run.host})


def _world(process: Page | Stranger) -> int | None:
    return None if process.rank is None else _believed(process.world)


def _believed(world: int | None) -> int | None:
    return world if world and world <= MOST_RANKS else None


def collect(*directories: str, waiting_room: str = WAITING_ROOM) -> Collected:
    """Read the latest run of the folders, or the runs that they are. Raises OverlapError where there is no folder."""
    starts: dict[str, folder.Run] = {}  # by file: what the first rank says
    others: list[tuple[str, folder.Run, folder.Run]] = []
    skipped: list[Skipped] = []
    pages: dict[tuple[object, ...], Page] = {}
    places = [run_of(directory) for directory in directories]
    left: list[Page] = []
    everybody = cache(living)
    for directory in places:
        names = listed(directory)
        for name in sorted(names, key=lambda name: (name != f"{folder.OUTERMOST}.json", "@" in name, name)):
            other = folder.OTHER.match(name)
            if not other and not folder.FIRST.match(name):
                continue
            run = folder.read_run(os.path.join(directory, name))
            if run is None:
                skipped.append(Skipped(name, "damaged, or of another version"))
                continue
            first = starts.setdefault(f"{other[1]}.json" if other else name, run)
            if not folder.alike(first, run):
                others.append((other[2] if other else run.host or directory, run, first))
        here = list(in_place(directory, waiting_room))
        left += [page for page in here if is_over(page, everybody)]
        for page in (*_pages(directory, skipped), *here):
            key = page.host, page.pid, page.start
            if key not in pages or _latest(page) >= _latest(pages[key]):
                pages[key] = page
    runs = tuple(starts.values())
    return Collected(
        directories,
        runs,
        tuple(_with_files(page, runs) for page in sorted(pages.values(), key=_place)),
        tuple(skipped),
        tuple(others),
        tuple(left),
        bool(runs) or all(os.path.islink(os.path.join(os.path.dirname(place), folder.LAST)) for place in places),
    )


def run_of(directory: str) -> str:
    """Return the folder of the run: what `last` in a report folder leads to, or the folder itself.

    Raises OverlapError where there are runs, and none is the last."""
    names, last = listed(directory), os.path.join(directory, folder.LAST)
    if os.path.islink(last) and os.path.isdir(last):
        return os.path.realpath(last)  # it may lead to another run the next moment
    if _holds_ours(last):
        return last
    if any(map(_is_ours, names)):
        return directory
    runs = [path for path in (os.path.join(directory, name) for name in names) if path != last and _is_run(path)]
    if runs or os.path.islink(last):
        what = " is a link to what is gone" if os.path.islink(last) else " is no link to a run"
        if not os.path.lexists(last):
            what = ", the link to the latest run, is missing (copies often lose it)"
        newest = max(filter(_is_mine, runs), key=_changed, default=os.path.join(directory, "RUN"))
        raise OverlapError(f"{last}{what}", f"name the run: overlap report {shlex.quote(newest)}")
    return directory


def latest_of(directory: str) -> str:
    """Return a sentence that says which of several runs in a report folder is reported, or nothing."""
    run = run_of(directory)
    if os.path.realpath(run) == os.path.realpath(directory):
        return ""
    paths = (os.path.join(directory, name) for name in listed(directory) if name != folder.LAST)
    runs = sum(map(_is_run, paths))
    if runs < 2:
        return ""
    other = shlex.quote(os.path.join(directory, "RUN"))
    latest = os.path.basename(run)
    return f"{directory} holds {runs:,} runs; this is the latest, {latest}; of another: overlap report {other}"


def _is_ours(name: str) -> bool:
    return bool(folder.PAGE.match(name)) or name == f"{folder.OUTERMOST}.json"


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:  # removed meanwhile
        return 0.0


def _holds_ours(path: str) -> bool:
    try:
        return any(map(_is_ours, os.listdir(path)))
    except OSError:
        return False


def _is_run(path: str) -> bool:
    """Return whether a folder has a page, or a run.json that is one of ours."""
    try:
        if any(map(folder.PAGE.match, os.listdir(path))):
            return True
    except OSError:
        return False
    return folder.read_run(os.path.join(path, f"{folder.OUTERMOST}.json")) is not None


def _is_mine(path: str) -> bool:
    try:
        return os.stat(path).st_uid in me()
    except OSError:  # removed meanwhile
        return False


def _with_files(page: Page, runs: Sequence[folder.Run]) -> Page:
    """Name the files of rules that come from a policy that was extended, as the run tells them: a page has no room."""
    if not any(rule.depth for rule in page.rules):
        return page
    files = {
        (policy.get("name"), key): os.path.basename(file)
        for run in runs[::-1]
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
        if is_trace(directory):
            hint = f"for a profiler's trace: overlap explain {shlex.quote(directory)}"
        raise OverlapError(f"{directory} is a file, and a report is a folder of pages", hint, USAGE) from error
    except OSError as error:
        near = None
        if isinstance(error, FileNotFoundError):
            near = _nearby(directory) or f"make one: overlap-run --report {shlex.quote(directory)} PROGRAM"
        elif isinstance(error, PermissionError):
            near = "run it as a user who may read it"
        raise OverlapError(f"the report folder {directory} cannot be read: {error.strerror}", near, USAGE) from error


def has_traces(directory: str) -> bool:
    """Return whether one of the first files of a folder looks like a profiler's trace."""
    paths = (os.path.join(directory, name) for name in listed(directory)[:_LOOKED_AT])
    return any(is_trace(path) for path in paths if os.path.isfile(path))


def _nearby(directory: str) -> str | None:
    """Return a hint that names the report folder whose name is closest to a missing one."""
    from pyshim.policy.finding import closest  # which an answer does not need
    from pyshim.start.driver import names as names_in

    around, name = os.path.split(os.path.normpath(directory))
    reports = [one for one in names_in(around or os.curdir) if folder.is_report(os.path.join(around, one))]
    close = closest(name, reports)
    return f"did you mean {shlex.quote(os.path.join(around, close))}?" if close else None


# What is still going on


def running(pages: Sequence[Page]) -> list[Page]:
    """Return the processes that are surely still running: those of this machine."""
    here = [page for page in pages if not page.ended and page.host == os.uname().nodename[:63]]
    begun = (living() or {}) if here else {}
    # A process that began after the page was made only has the id of the one that made it.
    return [page for page in here if page.pid in begun and begun[page.pid] <= page.start / 1e9 + _CLOCK]


def is_running(run: folder.Run) -> bool:
    """Return whether the process that overlap-run has become is still running on this machine."""
    if run.pid is None or run.host != os.uname().nodename:
        return False
    import psutil

    try:
        return bool(psutil.Process(run.pid).create_time() <= run.started + 1)
    except psutil.Error:
        return False


# Processes in few words: by rank where they have one, and by host


class Somebody(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def rank(self) -> int | None: ...


def who(processes: Sequence[Somebody]) -> str:
    """Return "process node1:7", "rank 3 on node1" or "ranks 0-7 on node1 and node2"."""
    numbers = sorted({process.rank for process in processes if process.rank is not None})
    if not numbers or any(process.rank is None for process in processes):
        return which(processes)
    return f"{ranks(numbers)} on {some(sorted({process.host for process in processes}))}"


def which(processes: Sequence[Somebody]) -> str:
    """Return the process, by its id: "process node1:7 (rank 3)"."""
    named = [
        f"{process.host}:{process.pid}" + ("" if process.rank is None else f" (rank {process.rank})")
        for process in processes
    ]
    return f"{'processes' if len(named) > 1 else 'process'} {some(named)}"


def ranks(numbers: Sequence[int]) -> str:
    """Return "rank 3" or "ranks 0-7, 9"; numbers: in order."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_RANGES]]
    rest = sum(last - first + 1 for first, last in ranges[_RANGES:])
    return f"{'ranks' if len(numbers) > 1 else 'rank'} {', '.join(words)}" + (f" and {rest:,} more" if rest else "")


def some(names: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b, c and 4 more"; nothing of nothing."""
    names = list(names)
    if len(names) > _SHOWN + 1:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
