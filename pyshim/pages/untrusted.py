"""Read files that another process, or another user, may have made; write files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from contextlib import suppress


class Unreadable(Exception):
    """One sentence without the file's name: why a file counts for nothing."""


# What file servers and user namespaces say of users whom they do not know, root among them: exports(5),
# user_namespaces(7).
NOBODY = 65534


def me() -> frozenset[int]:
    return frozenset({os.geteuid()})


def of_folder(directory: str) -> frozenset[int]:
    """Return the users whose files in a folder are read: its owner, the reader, root and nobody."""
    try:
        return me() | {0, NOBODY, os.stat(directory).st_uid}
    except OSError:
        return me()


def read(path: str, limit: int, owners: Collection[int] | None = None) -> bytes:
    """Return at most so many bytes of a regular file of one of these users. Raises Unreadable, also for links."""
    return read_with_owner(path, limit, owners)[0]


def read_with_owner(
    path: str, limit: int, owners: Collection[int] | None = None, folder: int | None = None
) -> tuple[bytes, os.stat_result]:
    """As read(), with what the system says of the file. folder: the descriptor of an open folder that `path` is in."""
    try:
        # Not blocking: a named pipe in the folder must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise Unreadable("a symlink" if error.errno == errno.ELOOP else error.strerror or str(error)) from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("not a regular file")
        if owners is not None and info.st_uid not in owners:
            raise Unreadable("it belongs to another user")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit), info
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    finally:
        os.close(descriptor)


def write_whole(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file, whole or not at all: until then what was there stays. Raises OSError."""
    scratch = os.path.join(os.path.dirname(path), f".{os.getpid()}.{os.urandom(4).hex()}")
    # Others may write in the folder: nothing of theirs is opened, and no name that they could know is ours.
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(scratch, path)
    finally:
        with suppress(OSError):  # usually it is in place, and no longer there
            os.unlink(scratch)
