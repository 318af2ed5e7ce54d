"""The log of a mistake in overlap-run itself: where it happened, with versions, ready for a report of the bug.

It is a file of its own, because stderr is that of the user's job."""

from __future__ import annotations

import os
import sys


def write(error: BaseException) -> str:
    """Write the log into the folder for temporary files, and return its path; "" where that is not possible."""
    import tempfile

    try:
        descriptor, path = tempfile.mkstemp(prefix="overlap-run-", suffix=".log")
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_text(error))
    except OSError:
        return ""
    return path


def said(error: BaseException) -> str:
    """Return the error on one line."""
    return f"{type(error).__name__}: {error}"


def _text(error: BaseException) -> str:
    import platform
    import shlex
    import traceback

    from pyshim import __version__

    lines = [
        f"overlap-run {__version__}, {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}",
        f"command: {shlex.join(sys.argv)}",
        f"Python {platform.python_version()}, {sys.executable}",
        f"system: {platform.platform()}, {' '.join(platform.libc_ver())}",
        f"modules: {', '.join(_versions())}",
        "",
        *traceback.format_exception(type(error), error, error.__traceback__),
    ]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def _versions() -> list[str]:
    from importlib import metadata

    found = []
    for name in ("cffi", "psutil", "PyYAML", "rich"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} missing")
    return found
