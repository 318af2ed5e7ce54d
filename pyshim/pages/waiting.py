"""Pages that wait in /dev/shm, because the report folder is on a network file system.

A process moves its page into the folder when it ends. A killed process cannot: its page is read here where it is, and
`overlap report --fetch`, on the node, moves it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from pyshim.pages.page import Page, read_page
from pyshim.pages.untrusted import Unreadable, me, read, write_whole

WAITING_ROOM = "/dev/shm"
_WAITING = re.compile(r"overlap-(.+\.\d+\.\d+)\.page\Z")
_LARGEST = 1 << 24
_OF_THE_MACHINE = "pid:[4026531836]"  # the first namespace of process ids has this number in every Linux


def in_place(directory: str, room: str = WAITING_ROOM) -> Iterator[Page]:
    """Yield the waiting pages that name this folder."""
    return (page for _, page in _waiting(directory, room))


def fetch(directory: str, room: str = WAITING_ROOM) -> Iterator[tuple[str, str]]:
    """Copy the waiting pages that name this folder into it; yield what cannot be copied: where, and why.

    A page is removed once its process is surely over. Until then the process may count on."""
    everybody = cache(living)
    for name, seen in _waiting(directory, room):
        path = os.path.join(room, name)
        over = is_over(seen, everybody)  # first: what it counts up to its end is read after that
        # Not by the name that the process itself will give it; `start` tells containers apart.
        target = f"waiting-{name[len('overlap-') : -len('.page')]}.{seen.start}.page"
        try:
            write_whole(os.path.join(directory, target), read(path, _LARGEST, owners=me()))
            if over:
                os.unlink(path)
        except (Unreadable, FileNotFoundError):
            continue  # its process, or another report, has brought it
        except OSError as error:
            yield f"{name} in {room}", f"it could not be copied: {error.strerror}"


def _waiting(directory: str, room: str) -> Iterator[tuple[str, Page]]:
    """Yield name and page of every file of ours in the room that names this folder."""
    try:
        names = sorted(filter(_WAITING.match, os.listdir(room)))
    except OSError:
        return
    for name in names:
        try:
            # Everybody may write there: only our own files are believed.
            page = read_page(os.path.join(room, name), owners=me())
        except Unreadable:
            continue  # its process has brought it, or nothing tells whose it is
        if os.path.realpath(page.directory) == os.path.realpath(directory):
            yield name, page


def is_over(process: Page, everybody: Callable[[], Mapping[int, float] | None]) -> bool:
    """Return whether a process has ended. everybody: the function `living`, which may keep its answer."""
    if process.ended:
        return True
    if process.host != os.uname().nodename[:63]:
        return False
    ids = everybody()
    return ids is not None and process.pid not in ids


def living() -> dict[int, float] | None:
    """Return the ids of all processes of this machine, by every namespace, and when the first of each id began.

    In seconds since 1970. None where not all can be seen."""
    found: dict[int, float] = {}
    try:
        if os.readlink("/proc/self/ns/pid") != _OF_THE_MACHINE:
            return None
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    ids = next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
                began = _began(name)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            for number in map(int, ids):
                found[number] = min(began, found.get(number, began))
    except OSError:
        return None
    return found if 1 in found else None  # else /proc hides processes (hidepid)


def _began(pid: str) -> float:
    with open(f"/proc/{pid}/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    return _booted() + ticks / os.sysconf("SC_CLK_TCK")


@cache
def _booted() -> float:
    with open("/proc/stat", "rb") as file:
        return next(float(line.split()[1]) for line in file if line.startswith(b"btime "))
