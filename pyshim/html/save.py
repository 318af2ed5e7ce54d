"""A page or a picture becomes a file: whole, or not at all."""

from __future__ import annotations

import os
import stat

from pyshim.errors import USAGE, OverlapError
from pyshim.launch.folder import absolute
from pyshim.stats.file import write_whole

STDOUT = "-"


def check(path: str, force: bool = False) -> None:
    """Before anything is worked out: raises OverlapError where it could not be put. force: instead of a file."""
    real = os.path.realpath(absolute(path))
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        raise _refuse(
            f"the folder {folder} of {os.path.basename(real)} does not exist", "create it, or name another file"
        )
    try:
        is_file = stat.S_ISREG(os.stat(real).st_mode)
    except OSError:
        return
    if not is_file:
        raise _refuse(f"{path} is not a regular file", "name a file")
    if not force:
        raise _refuse(f"{path} already exists", "name another file, or replace it: --force")


def save(path: str, text: str, force: bool = False) -> None:
    """Write the file. Raises OverlapError, and leaves an existing file as it is, if that fails."""
    check(path, force)
    real = os.path.realpath(absolute(path))
    try:
        write_whole(real, text.encode(), mode=0o666)
    except OSError as error:
        raise _refuse(f"{path} cannot be written: {error.strerror}", None) from error


def _refuse(sentence: str, hint: str | None) -> OverlapError:
    return OverlapError(sentence, hint, USAGE)
