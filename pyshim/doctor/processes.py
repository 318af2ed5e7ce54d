"""Other processes of this machine, as far as this user may look at them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil

_DEVICES = re.compile(r"/dev/(nvidia(\d+|ctl|-uvm|-caps/.*)|kfd|dri/renderD\d+)\Z")
# They have devices open for good, and run nothing on them.
_MONITORS = frozenset((
    "nvidia-persistenced", "nv-hostengine", "dcgm-exporter", "nvidia-smi", "nvtop", "nv-fabricmanager", "Xorg",
    "amd-smi", "rocm-smi",
))  # fmt: skip


class User(NamedTuple):
    pid: int
    name: str
    memory: int  # bytes of host memory


def named(names: Iterable[str]) -> list[str]:
    """Return those of the names that run here."""
    wanted = set(names)
    return sorted({name for _, name in running() if name in wanted})


def parents() -> list[str]:
    """Return the names of the processes that started this one, the nearest first."""
    found = []
    for parent in _ancestors():
        with suppress(psutil.Error):
            found.append(parent.name())
    return found


def with_devices(root: str = "/") -> tuple[list[User], int]:
    """Return the processes that have a GPU open, and the number of those that cannot be looked at.

    This process and those that started it do not count: an overlap-run around this one, or a shell of a notebook."""
    own = {os.getpid(), *(parent.pid for parent in _ancestors())}
    found, hidden = [], 0
    for pid, name in running():
        if pid in own or name in _MONITORS:
            continue
        try:
            if _has_device(pid, root):
                found.append(User(pid, name, psutil.Process(pid).memory_info().rss))
        except PermissionError:
            hidden += _is_program(pid)
        except (OSError, psutil.Error):
            continue  # it has ended
    return sorted(found), hidden


def _has_device(pid: int, root: str) -> bool:
    prefix = root.rstrip("/")
    folder = f"/proc/{pid}/fd"
    for descriptor in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{descriptor}")
        except FileNotFoundError:
            continue  # closed since
        if target.startswith(f"{prefix}/dev/") and _DEVICES.match(target[len(prefix) :]):
            return True
    return False


def _is_program(pid: int) -> bool:
    """Threads of the kernel, which nobody may look into, have no command line."""
    try:
        return bool(psutil.Process(pid).cmdline())
    except (OSError, psutil.Error):
        return False


def running() -> Iterator[tuple[int, str]]:
    """Yield (pid, name) of all processes that this user may see; none without /proc."""
    with suppress(OSError):
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                yield process.pid, process.name()


def _ancestors() -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process().parents()
    return []
