"""Opens files that another process, or another user, may have made."""

from __future__ import annotations

import os
import stat


class Unreadable(Exception):
    """One sentence without the file's name: why a file counts for nothing."""


def read(path: str, limit: int, own: bool = False) -> bytes:
    """At most so many bytes of a regular file that is no link; own: and that belongs to us."""
    try:
        # Not blocking: a named pipe in the folder must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("not a regular file")
        if own and info.st_uid != os.getuid():
            raise Unreadable("it belongs to another user")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    finally:
        os.close(descriptor)
