"""Which file a policy is in: a path, or a name that is looked up in OVERLAP_POLICY_PATH and among the shipped ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyshim
from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.policy.finding import did_you_mean, quote

PATH_VARIABLE = "OVERLAP_POLICY_PATH"
SUFFIX = ".yaml"
_REMOVED = dict.fromkeys(("b200", "l40s"), "`default`, which is for every GPU, does what this policy did")


def find(name: str, environment: Mapping[str, str], beside: Path | None = None) -> Path:
    """Return the file of a policy; a path need not exist. Raises OverlapError (125) for an unknown name.

    beside: the folder that is looked into first, and that a path starts from; without it, the working directory."""
    if "/" in name:
        return Path(name) if beside is None else beside / name
    if beside is None and name.endswith(SUFFIX) and os.path.isfile(name):
        return Path(name)
    for directory in _directories(environment, beside):
        for candidate in (directory / name, directory / (name + SUFFIX)):
            # Unlike pathlib's, this question has an answer for a name that is too long.
            if candidate.suffix == SUFFIX and os.path.isfile(candidate) and not _planted(candidate, beside):
                return candidate
    stem = name[: -len(SUFFIX)] if name.endswith(SUFFIX) else name
    close = did_you_mean(stem, names(environment, beside))
    hint = _REMOVED.get(stem) or close or names_hint(environment, beside)
    if beside is None:
        here = next((file for file in (name, stem + SUFFIX) if os.path.exists(file)), "")
        hint = f"a file of this folder is written with its path: ./{here}" if here else hint
    raise OverlapError(f"there is no policy {quote(name)}", hint, LAUNCHER_FAILED)


def _planted(candidate: Path, beside: Path | None) -> bool:
    """Return whether this is another user's file under a shipped policy's name, in a world-writable policy folder."""
    if candidate.parent != beside:
        return False
    return os.stat(candidate).st_uid not in (os.geteuid(), 0, os.stat(beside).st_uid)


def names(environment: Mapping[str, str], beside: Path | None = None) -> tuple[str, ...]:
    """Return every name that find() knows, in alphabetical order."""
    found = {
        path.stem
        for directory in _directories(environment, beside)
        for path in directory.glob("*" + SUFFIX)
        if path.is_file()
    }
    return tuple(sorted(found))


def names_hint(environment: Mapping[str, str], beside: Path | None = None) -> str:
    return f"write a file or one of: {', '.join(names(environment, beside))}"


def shipped_directory() -> Path:
    """Return the folder of shipped policies: in the installed package, or beside it in a checkout."""
    package = Path(pyshim.__file__).resolve().parent
    inside = package / "policies"
    return inside if inside.is_dir() else package.parent / "policies"


def _directories(environment: Mapping[str, str], beside: Path | None) -> list[Path]:
    own = [Path(part) for part in environment.get(PATH_VARIABLE, "").split(os.pathsep) if part]
    return [*([beside] if beside else []), *own, shipped_directory()]
