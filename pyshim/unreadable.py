"""A file or folder that cannot be read: the error of a trace, and which permission is missing for any file."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path

from pyshim.errors import USAGE, OverlapError

_DAMAGED = "copy it again, or record it again"


def unreadable(path: str, error: OSError) -> OverlapError:
    """Return the error for a path that cannot be read. It has no help where nothing is at that path."""
    hint = None if isinstance(error, (FileNotFoundError, NotADirectoryError)) else _DAMAGED
    hint = permission(path, error) or hint
    return OverlapError(f"{path} cannot be read: {error.strerror or error}", hint, USAGE)


def permission(path: str, error: Exception) -> str:
    """Return which permission is missing, and the command that gives it; the empty string for another error."""
    if not isinstance(error, OSError) or error.errno not in (errno.EACCES, errno.EPERM):
        return ""
    for folder in reversed(Path(os.path.abspath(path)).parents):
        if not os.access(folder, os.X_OK):
            return f"this user may not enter the folder {folder}: {_command(str(folder), 'x')}"
    if os.path.isdir(path):
        return f"this user may not list the folder: {_command(path, 'rx')}"
    return f"this user may not read the file: {_command(path, 'r')}"


def _command(path: str, right: str) -> str:
    is_owner = os.stat(path).st_uid == os.geteuid()
    command = f"chmod {'u' if is_owner else 'a'}+{right} {shlex.quote(path)}"
    return command if is_owner else f"its owner can allow it by {command}"
