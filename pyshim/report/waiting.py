"""Copy the pages that wait in /dev/shm, because their report folder is on a network file system.

A page is removed once its process is surely over. Until then the process may count on, and at its end it brings the
page itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache

from pyshim.stats.file import Unreadable, me, read, write_whole
from pyshim.stats.page import OtherLayout, Page, Stranger, read_page

ROOM = "/dev/shm"
_NAME = re.compile(r"overlap-(?P<run>[0-9a-f]{16}|)-(?P<process>.+\.\d+\.\d+)\.page\Z")
_LARGEST = 1 << 24
_OF_THE_MACHINE = "pid:[4026531836]"  # the first namespace of process ids has this number in every Linux


def fetch(directory: str, runs: set[str], room: str) -> Iterator[tuple[str, str]]:
    """Copy the waiting pages of this folder's runs, or that name it; yield what cannot be copied: where, and why."""
    try:
        names = sorted(os.listdir(room))
    except OSError:
        return
    everybody = cache(living)
    for name in names:
        match = _NAME.match(name)
        if not match:
            continue
        try:
            # Everybody may write there: only our own files are believed.
            path = os.path.join(room, name)
            process = _whose(path)
            if match["run"] in runs or _is_for(process, directory):
                over = is_over(process, everybody)  # first: what it counts up to its end is read after that
                # Not by the name that the process itself will give it; `start` tells containers apart.
                target = f"waiting-{match['process']}.{process.start}.page"
                write_whole(os.path.join(directory, target), read(path, _LARGEST, owners=me()))
                if over:
                    os.unlink(path)
        except Unreadable as error:
            if match["run"] in runs and os.path.lexists(path):  # else its process, or another report, has brought it
                yield f"{name} in {room}", str(error)
        except OSError as error:
            yield f"{name} in {room}", f"it could not be copied: {error.strerror}"


def _whose(path: str) -> Page | Stranger:
    try:
        return read_page(path, owners=me())
    except OtherLayout as error:
        return error.stranger


def _is_for(process: Page | Stranger, directory: str) -> bool:
    return isinstance(process, Page) and os.path.realpath(process.directory) == os.path.realpath(directory)


def is_over(process: Page | Stranger, everybody: Callable[[], set[int] | None]) -> bool:
    """Return whether a process has ended. everybody: the function `living`, which may keep its answer."""
    if isinstance(process, Page) and process.ended:
        return True
    if process.host != os.uname().nodename[:63]:
        return False
    ids = everybody()
    return ids is not None and process.pid not in ids


def living() -> set[int] | None:
    """Return the ids of all processes of this machine, by every namespace; None where not all can be seen."""
    found: set[int] = set()
    try:
        if os.readlink("/proc/self/ns/pid") != _OF_THE_MACHINE:
            return None
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    ids = next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
                found.update(map(int, ids))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
    except OSError:
        return None
    return found if 1 in found else None  # else /proc hides processes (hidepid)
