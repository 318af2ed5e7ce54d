"""Scripts in front of a program of the same name: those of pyenv and asdf, and wrappers that end in exec."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from pyshim.doctor import child
from pyshim.launch import driver, elf

# As `pyenv rehash` and `asdf reshim` write them.
_MANAGER = re.compile(r'^exec "?((?:/[^"\s$]*/)?(?:pyenv|asdf))"? exec "?(?:\$program|[\w.-]+)"? "\$@"', re.M)
_WRAPPER = re.compile(r'^exec "?(/[^"\s$]+)"? "\$@"\s*\Z', re.M)
_SHELLS = re.compile(r"(?:ba|da|z|k|a)?sh\Z")
_MOST = 4  # scripts, one in front of the other


class Behind(NamedTuple):
    """What a script starts. path: empty where its version manager does not say."""

    path: str
    by: str  # the manager; empty: the script itself names the path


def behind(path: str, environment: Mapping[str, str], seconds: float) -> Behind | None:
    """Return what a script starts in the end; None where it is no such script."""
    found = None
    for _ in range(_MOST):
        following = _behind(path, environment, seconds)
        if following is None:
            break
        found = Behind(following.path, following.by or (found.by if found else ""))
        path = following.path
    return found


def _behind(path: str, environment: Mapping[str, str], seconds: float) -> Behind | None:
    program = elf.inspect(path)
    if program.kind != elf.SCRIPT:
        return None
    shell = program.argument if os.path.basename(program.interpreter) == "env" else program.interpreter
    if not _SHELLS.match(os.path.basename(shell)):
        return None
    text = driver.text(path)
    manager = _MANAGER.search(text)
    if manager:
        return Behind(_which(manager[1], os.path.basename(path), environment, seconds), os.path.basename(manager[1]))
    wrapper = _WRAPPER.search(text)
    return Behind(wrapper[1], "") if wrapper and os.path.exists(wrapper[1]) else None


def _which(manager: str, name: str, environment: Mapping[str, str], seconds: float) -> str:
    """Ask the manager itself, because files of folders, variables and plugins decide."""
    command = ["/bin/sh", "-c", 'exec "$0" which "$1" >/proc/self/fd/{answer}', manager, name]
    try:
        outcome = child.run(command, environment, seconds)
    except OSError:
        return ""
    path = outcome.answer.decode("utf-8", "replace").strip()
    return path if outcome.status == 0 and os.path.isfile(path) else ""
