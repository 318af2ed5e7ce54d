"""Opens files that another process, or another user, may have made."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection


class Unreadable(Exception):
    """One sentence without the file's name: why a file counts for nothing."""


# What file servers and user namespaces say of users whom they do not know, root among them: exports(5),
# user_namespaces(7).
NOBODY = 65534


def me() -> frozenset[int]:
    return frozenset({os.geteuid()})


def of_folder(directory: str) -> frozenset[int]:
    """Who is believed there: the folder's owner, who may be another user than the reader; the reader; root; nobody."""
    try:
        return me() | {0, NOBODY, os.stat(directory).st_uid}
    except OSError:
        return me()


def read(path: str, limit: int, owners: Collection[int] | None = None) -> bytes:
    """At most so many bytes of a regular file that is no link, and belongs to one of these users."""
    try:
        # Not blocking: a named pipe in the folder must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("not a regular file")
        if owners is not None and info.st_uid not in owners:
            raise Unreadable("it belongs to another user")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    finally:
        os.close(descriptor)
