"""A page or a picture becomes a file: whole, or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from pyshim.errors import USAGE, OverlapError
from pyshim.launch.folder import absolute

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
    """Raises OverlapError, and leaves what was there, where the file cannot be written."""
    check(path, force)
    real = os.path.realpath(absolute(path))
    scratch = os.path.join(os.path.dirname(real), f".{os.path.basename(real)[:40]}.{os.getpid()}")
    made = False
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        made = True
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(scratch, real)
    except OSError as error:
        raise _refuse(f"{path} cannot be written: {error.strerror}", None) from error
    finally:
        if made:
            with suppress(OSError):  # where it has become the page there is nothing any more
                os.unlink(scratch)


def _refuse(sentence: str, hint: str | None) -> OverlapError:
    return OverlapError(sentence, hint, USAGE)
