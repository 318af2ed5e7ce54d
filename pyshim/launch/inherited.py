"""The environment that this process was started with, for the program that it starts.

Python changes it before it runs a line of ours: in the C locale it sets LC_CTYPE (PEP 538). os.environ also has no
place for an entry without `=`, for a second entry of the same name, and for an entry that begins with `=`. Python also
ignores SIGPIPE and SIGXFSZ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

_PATH = "/proc/self/environ"  # the memory that the kernel filled when the process started
_COERCED = b"LC_CTYPE"
_entries: list[bytes] | None = None  # None: not read, or not to be trusted

# Bits as in SigIgn of /proc/self/status: which of Python's two signals were ignored before it started. Set by the
# installed commands (tools/launcher); without them neither is known, and the default is more likely.
ignored_signals = 0


def restore() -> None:
    """Undo in os.environ what the start of Python did. Without /proc, LC_CTYPE stays as Python set it."""
    global _entries
    try:
        with open(_PATH, "rb") as file:
            entries = file.read().split(b"\0")[:-1]
    except OSError:
        return
    before = _first(entries)
    now = dict(os.environb)
    if {**before, _COERCED: b""} != {**now, _COERCED: b""}:
        return  # a start-up file of this Python (sitecustomize) changed more, or wrote its title over the memory
    _entries = entries
    if _COERCED in before:
        os.environb[_COERCED] = before[_COERCED]
    else:
        os.environb.pop(_COERCED, None)


def restore_signals() -> None:
    """Undo what the start of Python did to signals; a program that ignores SIGPIPE sees failed writes, not its end."""
    import signal

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN if ignored_signals >> (number - 1) & 1 else signal.SIG_DFL)


def execve(path: str, command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Call os.execve() with os.environ, changed by `environment`, and the entries that os.environ cannot hold."""
    entries = _with_changes(_entries or [], {os.fsencode(name): os.fsencode(environment[name]) for name in environment})
    plain = dict(entry.split(b"=", 1) for entry in entries if entry.find(b"=") > 0)
    if len(plain) != len(entries):
        _execve(path, command, entries)
    os.execve(path, list(command), plain)


def _first(entries: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return what getenv() and os.environ find: the first entry of each name."""
    found: dict[bytes, bytes] = {}
    for entry in entries:
        name, equals, value = entry.partition(b"=")
        if equals:
            found.setdefault(name, value)
    return found


def _with_changes(entries: Sequence[bytes], wanted: Mapping[bytes, bytes]) -> list[bytes]:
    """`entries` in their order, of which a name that is changed keeps one; then the new names."""
    before, kept = _first(entries), []
    left = dict(wanted)
    for entry in entries:
        name, equals, _ = entry.partition(b"=")
        if not equals or before[name] == wanted.get(name):
            kept.append(entry)
            left.pop(name, None)
        elif name in left:
            kept.append(name + b"=" + left.pop(name))
    return kept + [name + b"=" + value for name, value in left.items()]


def _execve(path: str, command: Sequence[str], entries: Sequence[bytes]) -> None:
    """Raise OSError as os.execve() does; return where this Python has no ctypes."""
    try:
        import ctypes
    except ImportError:
        return
    execve = ctypes.CDLL(None, use_errno=True).execve
    words = [os.fsencode(word) for word in command]
    vectors = [(ctypes.c_char_p * (len(vector) + 1))(*vector, None) for vector in (words, entries)]
    execve(os.fsencode(path), *vectors)
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error), path)
