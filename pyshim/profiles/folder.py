"""Traces of a folder: one a rank, in it or in subfolders, in the order of the numbers in their names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pyshim.errors import USAGE, OverlapError
from pyshim.unreadable import unreadable

_DEEPEST = 3  # folders below the one that is named: run/node/rank
_MOST = 10_000  # files


def files(path: str, passed_over: list[OverlapError]) -> list[str]:
    """Return all files of a folder. Raises OverlapError where it cannot be read.

    passed_over: gets an error for each subfolder that cannot be read."""
    found: list[str] = []
    top = len(Path(path).parts)

    def note(error: OSError) -> None:
        folder = error.filename or path
        unread = unreadable(folder, error)
        if Path(folder) == Path(path):
            raise unread
        passed_over.append(unread)

    for folder, names, own in os.walk(path, onerror=note):
        names[:] = [name for name in names if not name.startswith(".")]
        if len(Path(folder).parts) - top >= _DEEPEST:
            names.clear()
        found += [str(Path(folder) / name) for name in own if not name.startswith(".")]
        if len(found) > _MOST:
            raise OverlapError(f"{path} holds more than {_MOST:,} files", "name a folder of traces alone", USAGE)
    return sorted((name for name in found if os.path.isfile(name)), key=_in_order)


def _in_order(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(len(part), part) if part.isdigit() else (0, part) for part in parts]
