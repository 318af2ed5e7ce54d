"""Gathers the pages and traces of report folders, and those that still wait in /dev/shm for being copied there.

A job has one folder on a shared file system, or one on every node; then the folders are given together, or their files
are copied into one. Nobody need have made run-ID.json: the pages say what they belong to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyshim.errors import OverlapError
from pyshim.launch import folder
from pyshim.stats.file import Unreadable, read
from pyshim.stats.page import OtherLayout, Page, Stranger, read_page
from pyshim.stats.trace import Trace, read_trace

WAITING_ROOM = "/dev/shm"
_WAITING = re.compile(r"overlap-(?P<run>[0-9a-f]{16}|)-(?P<name>.+\.\d+\.\d+\.page)\Z")
_LARGEST = 1 << 24


@dataclass(frozen=True)
class Skipped:
    name: str  # of a file that counts for nothing
    reason: str
    stranger: Stranger | None = None


@dataclass(frozen=True)
class Collected:
    directories: tuple[str, ...]
    runs: tuple[folder.Run, ...]
    pages: tuple[Page, ...]  # by host, rank and process
    skipped: tuple[Skipped, ...]
    others: tuple[tuple[str, folder.Run], ...] = ()  # ranks that were started otherwise than the first of their run


def collect(*directories: str, waiting_room: str = WAITING_ROOM) -> Collected:
    """Raises OverlapError where there is no such folder."""
    runs: dict[str, folder.Run] = {}
    others: list[tuple[str, folder.Run]] = []
    skipped: list[Skipped] = []
    pages: dict[tuple[object, ...], Page] = {}
    for directory in directories:
        names = listed(directory)
        for run in folder.runs(directory, names):
            first = runs.setdefault(run.id, run)
            if not folder.alike(first, run):
                others.append((run.host or directory, run))
        others += folder.others(directory, names)
    for directory in directories:
        skipped += _fetch(directory, set(runs), waiting_room)
        for page in _pages(directory, skipped):
            # The same one may have been copied twice, the second time later.
            key = page.host, page.pid, page.start, page.run
            if key not in pages or page.launches >= pages[key].launches:
                pages[key] = page
    return Collected(
        directories,
        tuple(sorted(runs.values(), key=lambda run: (run.started, run.id))),
        tuple(sorted(pages.values(), key=_place)),
        tuple(skipped),
        tuple(others),
    )


def _place(page: Page) -> tuple[object, ...]:
    return page.host, -1 if page.rank is None else page.rank, page.start, page.pid


def _pages(directory: str, skipped: list[Skipped]) -> Iterator[Page]:
    for name in listed(directory):
        if name.endswith(".page"):
            try:
                yield read_page(os.path.join(directory, name))
            except OtherLayout as error:
                skipped.append(Skipped(name, str(error), error.stranger))
            except Unreadable as error:
                skipped.append(Skipped(name, str(error)))


def listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise OverlapError(f"the report folder {directory} cannot be read: {error.strerror}") from error


def _fetch(directory: str, runs: set[str], waiting_room: str) -> Iterator[Skipped]:
    """Copies the pages that wait on this machine for this folder: those of its runs, and those that name it. What
    cannot be copied is said."""
    try:
        names = sorted(os.listdir(waiting_room))
    except OSError:
        return
    for name in names:
        match = _WAITING.match(name)
        if not match:
            continue
        try:
            # Everybody may write there: only our own files are believed.
            path = os.path.join(waiting_room, name)
            data = read(path, _LARGEST, own=True)
            if match["run"] in runs or _names(path, directory):
                _replace(os.path.join(directory, match["name"]), data)
        except Unreadable as error:
            if match["run"] in runs:
                yield Skipped(f"{name} in {waiting_room}", str(error))
        except OSError as error:
            yield Skipped(f"{name} in {waiting_room}", f"it could not be copied: {error.strerror}")


def _names(path: str, directory: str) -> bool:
    """Whether a page was made for this folder."""
    return os.path.realpath(read_page(path, own=True).directory) == os.path.realpath(directory)


def _replace(target: str, data: bytes) -> None:
    scratch = f"{target}.{os.getpid()}"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(scratch, target)
    except OSError:
        os.unlink(scratch)
        raise


def traces(directories: Sequence[str]) -> Iterator[tuple[str, Trace | Unreadable]]:
    """The traces of the folders, one after the other: each may be large."""
    for directory in directories:
        for name in listed(directory):
            if name.endswith(".trace"):
                try:
                    yield name, read_trace(os.path.join(directory, name))
                except Unreadable as error:
                    yield name, error
