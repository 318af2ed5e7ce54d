"""Gathers the pages and traces of a report folder, and those that still wait in /dev/shm for being copied there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyshim.errors import OverlapError
from pyshim.launch import folder
from pyshim.stats.file import Unreadable, read
from pyshim.stats.page import Page, read_page
from pyshim.stats.trace import Trace, read_trace

WAITING_ROOM = "/dev/shm"
_WAITING = re.compile(r"overlap-(?P<run>[0-9a-f]{16})-(?P<name>.+\.\d+\.\d+\.page)\Z")
_LARGEST = 1 << 24


@dataclass(frozen=True)
class Collected:
    directory: str
    runs: tuple[folder.Run, ...]
    pages: tuple[Page, ...]  # by host, rank and process
    skipped: tuple[str, ...]  # one sentence per file that counts for nothing
    others: tuple[tuple[str, folder.Run], ...] = ()  # ranks that were started otherwise than the first of their run


def collect(directory: str, waiting_room: str = WAITING_ROOM) -> Collected:
    """Raises OverlapError where there is no such folder."""
    listed(directory)
    runs = tuple(folder.runs(directory))
    skipped = list(_fetch(directory, {run.id for run in runs}, waiting_room))
    pages = []
    for name in listed(directory):
        if name.endswith(".page"):
            try:
                pages.append(read_page(os.path.join(directory, name)))
            except Unreadable as error:
                skipped.append(f"{name} was passed over: {error}")
    pages.sort(key=lambda page: (page.host, -1 if page.rank is None else page.rank, page.start, page.pid))
    return Collected(directory, runs, tuple(pages), tuple(skipped), tuple(folder.others(directory)))


def listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise OverlapError(f"the report folder {directory} cannot be read: {error.strerror}") from error


def _fetch(directory: str, runs: set[str], waiting_room: str) -> Iterator[str]:
    """Copies the pages of these runs that wait on this machine; what cannot be copied is said."""
    try:
        names = sorted(os.listdir(waiting_room)) if runs else []
    except OSError:
        return
    for name in names:
        match = _WAITING.match(name)
        if match and match["run"] in runs:
            try:
                # Everybody may write there: only our own files are believed.
                data = read(os.path.join(waiting_room, name), _LARGEST, own=True)
                _replace(os.path.join(directory, match["name"]), data)
            except Unreadable as error:
                yield f"{name} in {waiting_room} was passed over: {error}"
            except OSError as error:
                yield f"{name} in {waiting_room} could not be copied: {error.strerror}"


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


def traces(directory: str) -> Iterator[tuple[str, Trace | Unreadable]]:
    """The traces of a folder, one after the other: each may be large."""
    for name in listed(directory):
        if name.endswith(".trace"):
            try:
                yield name, read_trace(os.path.join(directory, name))
            except Unreadable as error:
                yield name, error
