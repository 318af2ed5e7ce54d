"""The user's cache folder, for what one run finds out for later ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress


def folder(environment: Mapping[str, str], name: str) -> str | None:
    """Return the folder of this name for answers of one kind; None: the user has no cache folder."""
    base, home = environment.get("XDG_CACHE_HOME", ""), environment.get("HOME", "")
    if not base.startswith("/"):  # what the specification says of such a value
        if not home.startswith("/"):
            return None
        base = f"{home}/.cache"
    return os.path.join(base, "overlap-run", name)


def make(directory: str, *below: str) -> None:
    """Make the folder that folder() returns, and those in it. Raises OSError, also where one is not this user's."""
    around = os.path.dirname(directory)
    os.makedirs(os.path.dirname(around), mode=0o700, exist_ok=True)
    for own in (around, directory, *below):
        with suppress(FileExistsError):
            os.mkdir(own, 0o700)
        info = os.lstat(own)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise OSError(0, f"{own} is not a folder of yours")
