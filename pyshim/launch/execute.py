"""Becomes the program: same process, same signals, same terminal."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from pyshim.errors import NOT_EXECUTABLE, NOT_FOUND, OverlapError
from pyshim.launch import inherited


class TooLong(Exception):
    """Arguments and environment together are more than the system takes."""


def execute(path: str, command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Start the program. Raises OverlapError with 126 or 127, or TooLong where less environment may help."""
    inherited.restore_signals()
    try:
        _execve(path, command, environment)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise TooLong from error
        status = NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE
        reason = error.strerror
        if error.errno == errno.ENOENT and os.path.exists(path):
            reason = "the interpreter or loader that it names does not exist"
        raise OverlapError(f"{command[0]}: {reason}", None, status) from error


def _execve(path: str, command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        inherited.execve(path, command, environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # As execvp and every shell do with a text file that has no #! line.
    inherited.execve("/bin/sh", ["/bin/sh", path, *command[1:]], environment)
