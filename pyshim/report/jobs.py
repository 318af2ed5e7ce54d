"""The runs of many users in a folder, one row for each user's program: who would gain from the default.

A TaskProlog lets every job write pages into such a folder, also those that are damaged, foreign or hostile. A page
counts for the user whom the file belongs to, whatever it says of itself. Nothing is written here, and no link followed.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from pyshim.errors import USAGE, OverlapError, printable
from pyshim.pages.judged import carried, judged
from pyshim.pages.page import Page, page_of, page_size
from pyshim.pages.untrusted import Unreadable, read_with_owner
from pyshim.start import folder

_DEEPEST = 8  # folders below the one that is named
_MOST_LOOKED_AT = 2000  # folders in which run_below() looks for runs
_MOST_PROGRAMS = 20_000  # rows; further programs are counted together
_LONGEST = 48  # characters of a program's name
_YEAR = 366 * 86400.0  # seconds; a process that says that it ran for longer is not believed
_HOUR = 3600.0
_DENIED = os.strerror(errno.EACCES)
OTHER = "(other)"
# Verdicts: what the rule did, or the commonest reason why it did nothing.
RAISED, WOULD, NO_LAUNCH, NOT_JUDGED = "raised", "would be raised", "no launch seen", "no stream judged"
# Behind `not raised`: by the first condition of the rule that did not hold.
WHY = {
    "not_waited": "nothing waits",
    "large": "large streams only",
    "graphs": "graphs",
    "programs": "own priorities",
    "default": "default streams only",
    "wide": "communication too wide",
    "together": "streams of equal work",
    "fixed": "refused by the driver",
}
# Programs that are named with what they run.
_INTERPRETER = re.compile(r"(?:python|perl|ruby|julia|lua|Rscript|node|java)[\d.]*\Z")


@dataclass
class Program:
    """A program of a user, over all its runs."""

    user: str
    program: str
    runs: int = 0
    ranks: int = 0  # the most of a run
    gpus: int = 0  # the most of a run
    seconds: float = 0.0  # of all GPUs
    seconds_raised: float = 0.0  # those of the runs in which a stream was raised, or would be
    launches: int = 0
    launches_raised: int = 0  # on streams that were raised, or would be
    streams: int = 0  # judged, of all processes
    streams_raised: int = 0
    last: float = 0.0  # the end of the latest run, in seconds since 1970
    verdicts: Counter[str] = field(default_factory=Counter)  # runs by verdict

    @property
    def verdict(self) -> str:
        """Return `raised` or `would be raised` if a run has it, else the commonest of its verdicts."""
        for verdict in (WOULD, RAISED):
            if self.verdicts[verdict]:
                return verdict
        return min(self.verdicts, key=lambda verdict: (-self.verdicts[verdict], verdict))

    @property
    def gains(self) -> bool:
        return self.verdict in (WOULD, RAISED)

    @property
    def share(self) -> float:
        """Return the part of the launches that streams carry that were raised, or would be: 0 to 1."""
        return self.launches_raised / self.launches if self.launches else 0.0


class Skipped(Counter[str]):
    """How many files and folders do not count, by the reason, and the first of each."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[str, str] = {}

    def note(self, reason: str, path: str) -> None:
        self[reason] += 1
        self.first.setdefault(reason, path)


@dataclass
class Jobs:
    programs: list[Program]  # those that would gain first, by GPU hours
    runs: int
    pages: int
    skipped: Skipped

    @property
    def denied(self) -> dict[str, int]:
        """Return how many folders and how many pages this user may not read; no zeros."""
        found = {what: self.skipped[f"{what}: {_DENIED}"] for what in ("folders", "pages")}
        return {what: count for what, count in found.items() if count}

    @property
    def users(self) -> int:
        return len({program.user for program in self.programs})


def jobs(*directories: str) -> Jobs:
    """Read all runs below these folders. Raises OverlapError where one of them cannot be read."""
    sums = _Sums()
    for directory in directories:
        for run in _runs(directory, sums.skipped):
            sums.add(run)
    order = sorted(sums.programs.values(), key=lambda one: (-one.seconds_raised, -one.seconds, one.user, one.program))
    return Jobs(order, sums.runs, sums.pages, sums.skipped)


# Folders


@dataclass
class _Process:
    page: Page
    owner: int  # the user id that the system has for the file
    end: float  # seconds since 1970
    path: str


@dataclass
class _Run:
    """The processes of a folder, the latest copy of each page."""

    processes: dict[tuple[int, str, int, int], _Process] = field(default_factory=dict)
    command: tuple[str, ...] = ()


def run_below(directory: str) -> tuple[str, str]:
    """Return the first folder with pages below this one, as deep as jobs() looks.

    If there is none: "", and the first folder that this user may not read."""
    closed: list[str] = []

    def note(error: OSError) -> None:
        if isinstance(error, PermissionError):  # others end while one looks, as in /proc
            closed.append(str(error.filename))

    below = os.walk(directory, onerror=note)
    for path, folders, names in islice(below, _MOST_LOOKED_AT):
        if any(map(folder.PAGE.match, names)):
            return path, ""
        depth = os.path.relpath(path, directory).count(os.sep) + (path != directory)
        folders[:] = sorted(folders) if depth < _DEEPEST else []
    return "", next(iter(closed), "")


def _runs(directory: str, skipped: Skipped) -> Iterator[_Run]:
    try:
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        hint = "name the folder of all runs: that of OVERLAP_REPORT, or of overlap-run --report DIR"
        if isinstance(error, PermissionError):
            hint = "run it as a user who may read the folder"
        raise OverlapError(f"the folder {directory} cannot be read: {error.strerror}", hint, USAGE) from error
    yield from _walk(top, directory, _DEEPEST, skipped)


def _walk(descriptor: int, path: str, depth: int, skipped: Skipped) -> Iterator[_Run]:
    """Yield the runs of an open folder and of those below it, and close it. path: for messages.

    Folders are opened one from the other, without links: other users may exchange names meanwhile."""
    try:
        with os.scandir(descriptor) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        pages = sorted(name for name, is_folder in names if not is_folder and name.endswith(".page"))
        if pages:
            has_start = f"{folder.OUTERMOST}.json" in {name for name, _ in names}
            yield _run(descriptor, path, pages, has_start, skipped)
        for name in sorted(name for name, is_folder in names if is_folder):
            below = os.path.join(path, name)
            if depth == 0:
                skipped.note("folders too deep", below)
                continue
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            except OSError as error:
                skipped.note(f"folders: {error.strerror}", below)
                continue
            yield from _walk(inner, below, depth - 1, skipped)
    except OSError as error:
        skipped.note(f"folders: {error.strerror}", path)
    finally:
        os.close(descriptor)


def _run(descriptor: int, path: str, names: Sequence[str], has_start: bool, skipped: Skipped) -> _Run:
    run = _Run()
    for name in names:
        try:
            data, info = read_with_owner(name, page_size(), folder=descriptor)
            page = page_of(data, whole=False)
        except Unreadable as error:
            skipped.note(f"pages: {error}", os.path.join(path, name))
            continue
        process = _Process(page, info.st_uid, min(info.st_mtime, time.time()), os.path.join(path, name))
        key = info.st_uid, page.host, page.pid, page.start
        before = run.processes.get(key)
        if before is None or (page.ended, page.launches) >= (before.page.ended, before.page.launches):
            run.processes[key] = process
    if has_start and any(_INTERPRETER.match(_basename(process.page)) for process in run.processes.values()):
        run.command = _command(descriptor)
    return run


def _command(descriptor: int) -> tuple[str, ...]:
    with suppress(Unreadable):
        data, _ = read_with_owner(f"{folder.OUTERMOST}.json", 1 << 20, folder=descriptor)
        found = folder.run_of(data)
        return found.command or () if found else ()
    return ()


# Sums


class _Sums:
    def __init__(self) -> None:
        self.programs: dict[tuple[int, str], Program] = {}
        self.skipped = Skipped()
        self.runs = self.pages = 0
        self._seen: set[int] = set()  # processes, by hash: a folder may have been copied into another

    def add(self, run: _Run) -> None:
        """Add a run; its processes count by user and program."""
        parts: dict[tuple[int, str], list[_Process]] = {}
        for key, process in run.processes.items():
            number = hash(key)
            if number in self._seen:
                self.skipped.note("pages: another copy is in the folder", process.path)
                continue
            self._seen.add(number)
            self.pages += 1
            parts.setdefault((process.owner, named(process.page, run.command)), []).append(process)
        self.runs += bool(parts)
        for (owner, name), processes in parts.items():
            if (owner, name) not in self.programs and len(self.programs) >= _MOST_PROGRAMS:
                name = OTHER
            row = self.programs.setdefault((owner, name), Program(user_name(owner), name))
            _add(row, processes)


def _add(row: Program, processes: Sequence[_Process]) -> None:
    pages = [process.page for process in processes]
    seconds, gpus = _gpu_time(processes)
    verdict = _verdict(pages)
    ranks = {page.rank for page in pages if page.rank is not None}
    row.runs += 1
    row.ranks = max(row.ranks, len(ranks) or 1)
    row.gpus = max(row.gpus, gpus)
    row.seconds += seconds
    row.last = max(row.last, *(process.end for process in processes))
    row.verdicts[verdict] += 1
    row.launches += sum(page.launches + page.graph_launches for page in pages)
    row.streams += sum(len(page.streams) for page in pages)
    if verdict in (RAISED, WOULD):
        row.seconds_raised += seconds
        row.launches_raised += sum(map(carried, pages))
        row.streams_raised += sum(
            judged(page, stream).outcome != "not raised" for page in pages for stream in page.streams
        )


def _gpu_time(processes: Sequence[_Process]) -> tuple[float, int]:
    """Return the seconds of all GPUs, and how many there are. A GPU that processes share counts once.

    A process had its GPUs from the start of its page to the last time that the system wrote the file."""
    spans: dict[tuple[str, str], tuple[float, float]] = {}
    for process in processes:
        start, end = process.page.start / 1e9, process.end
        if not 0 <= end - start <= _YEAR:
            start = end
        for device in process.page.devices:
            key = process.page.host, device.uuid
            first, last = spans.get(key, (start, end))
            spans[key] = min(first, start), max(last, end)
    return sum(last - first for first, last in spans.values()), len(spans)


def _verdict(pages: Sequence[Page]) -> str:
    """Return what the rule did in a run, or the commonest reason why it did nothing."""
    found: Counter[str] = Counter()
    for page in pages:
        for stream in page.streams:
            outcome, why = judged(page, stream)
            found[WHY.get(why, why) if outcome == "not raised" else outcome] += 1
    for verdict in (RAISED, WOULD):
        if found[verdict]:
            return verdict
    if found:
        return min(found, key=lambda verdict: (-found[verdict], verdict))
    return NOT_JUDGED if any(page.launches for page in pages) else NO_LAUNCH


# Names


def named(page: Page, command: Sequence[str] = ()) -> str:
    """Return the file name of the program; of an interpreter with that of the script, where the run says it.

    Of a command line nothing else is taken: it may hold what is nobody's business."""
    name = _basename(page)
    if _INTERPRETER.match(name):
        words = iter(command)
        for word in words:
            if _INTERPRETER.match(os.path.basename(word)):
                script = next((after for after in words if not after.startswith("-")), "")
                return printable(f"{name} {os.path.basename(script)}".strip())[:_LONGEST]
    return printable(name)[:_LONGEST]


def _basename(page: Page) -> str:
    return os.path.basename(page.program) or "(not known)"


@cache
def user_name(owner: int) -> str:
    """Return the name of a user id; the number where the machine knows none."""
    import pwd

    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def hours(seconds: float) -> float:
    return seconds / _HOUR
