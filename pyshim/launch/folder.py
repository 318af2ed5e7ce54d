"""The report folder: made, checked that it is ours, and given its run-ID.json."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.stats.file import NOBODY, Unreadable, of_folder, read, write_whole

RUN = re.compile(r"run-([0-9a-f]{16})\.json\Z")
OTHER = re.compile(r"run-([0-9a-f]{16})\.(.+\.[0-9]+)\.json\Z")
PAGE = re.compile(r".+\.[0-9]+\.[0-9]+\.page\Z")
_UNFINISHED = ".run-"
EXTENDS = "extends_"  # and a number: the file that so many `extends` lead to
_LONGEST = 511  # bytes: a page carries the path
_LARGEST = 1 << 20
WITHOUT = "the working directory has been deleted"
_LATEST = 253402300799.0  # the end of the year 9999, behind which Python's calendar has none


class Run(NamedTuple):
    """What run-ID.json says: one overlap-run, or one job step in which every rank has its own."""

    id: str
    started: float = 0.0  # seconds since 1970
    command: tuple[str, ...] | None = None  # None: the environment was only printed
    policies: tuple[Mapping[str, str | None], ...] = ()  # name, hash, file, extends_1, ...
    overlap_run: str = ""
    expected_world_size: int | None = None
    simulate: str | None = None
    environment: Mapping[str, str] = {}  # what policies set for the program
    host: str = ""
    table: str | None = None  # checksum of the policy table, as pages have it
    outer: str | None = None  # the id of the run inside of which it was started, to the same folder
    version: int = 1


def absolute(path: str) -> str:
    """Return the absolute path. Raises OverlapError with 125 where the working directory is gone."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise _refuse(f"{path}: {WITHOUT}", "cd to a folder that exists, or give a path from / on") from None


def prepare(directory: str) -> str:
    """Make the folder, or check that it is empty or ours; return its absolute path. Raises OverlapError with 125."""
    path = absolute(directory)
    if not directory or len(os.fsencode(path)) > _LONGEST:
        raise _refuse(
            "the report folder needs a name" if not directory else "the name of the report folder is too long"
        )
    _check_way(path)
    try:
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with suppress(FileExistsError):  # another rank was faster
                os.mkdir(path, 0o700)
    except OSError as error:
        raise _refuse(f"the report folder {path} cannot be made: {error.strerror}") from error
    check(path)
    return path


def check(path: str) -> None:
    """Raise OverlapError with 125 unless pages may be written there."""
    if not os.path.isdir(path):
        raise _refuse(f"the report folder {path} is not a folder")
    owner, user = os.stat(path).st_uid, os.geteuid()
    # As the library sees it (shim/sys/identity.c). Root may use everybody's: as in containers, where it is a user.
    if owner not in (user, 0, NOBODY) and user != 0:
        raise _refuse(
            f"the report folder {path} belongs to another user, who could exchange what is in it",
            "name a folder of your own",
        )
    try:
        names = os.listdir(path)
    except OSError as error:
        raise _refuse(f"the report folder {path} cannot be read: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _refuse(f"the report folder {path} cannot be written to")
    # A rank that comes first may be writing its file right now. Where a prolog took our place there are only pages.
    ours = any(name.startswith(_UNFINISHED) or PAGE.match(name) for name in names)
    if names and not ours and not runs(path, names):
        raise _refuse(
            f"the report folder {path} holds other files", "name a new or an empty folder, or an earlier report"
        )


def _check_way(path: str) -> None:
    """Raise OverlapError with 125 for another user's symlink in a world-writable directory (protected_symlinks)."""
    here = os.sep
    for part in filter(None, path.split(os.sep)):
        try:
            around, here = os.stat(here), os.path.join(here, part)
            link = os.lstat(here)
        except OSError:
            return  # said by whoever needs it
        everybodys = around.st_mode & stat.S_ISVTX and around.st_mode & stat.S_IWOTH
        if stat.S_ISLNK(link.st_mode) and everybodys and link.st_uid not in (os.geteuid(), around.st_uid):
            raise _refuse(
                f"{here}, on the way to the report folder, is another user's link in a folder of everybody's",
                "name a folder of your own",
            )


def open_to_everybody(path: str) -> bool:
    """Return whether every user may remove and exchange what is in this folder of ours."""
    info = os.stat(path)
    return bool(info.st_uid == os.geteuid() and info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX)


def write(path: str, run: Run, strict: bool = False) -> None:
    """Write the file of a run atomically.

    The ranks of one job step share a file: the first one writes it, and a rank that was started otherwise writes one of
    its own. strict: raises OverlapError with 125 instead."""
    import json

    who = f"{os.uname().nodename}.{os.getpid()}"
    first, own = (os.path.join(path, f"run-{run.id}{more}.json") for more in ("", f".{who}"))
    scratch = os.path.join(path, f"{_UNFINISHED}{run.id}.{who}.{os.urandom(4).hex()}")

    def place(scratch: str, target: str) -> None:
        try:
            os.link(scratch, target)
        except FileExistsError:  # another rank was faster
            if not _tells(target, run, strict):
                os.replace(scratch, own)
        except OSError:  # no hard links here
            os.replace(scratch, target)

    try:
        if os.path.exists(first) and _tells(first, run, strict):
            return
        target = own if os.path.exists(first) else first
        text = json.dumps(run._asdict(), indent=1)
        write_whole(target, f"{text}\n".encode("ascii"), scratch, place=place)
    except OSError as error:
        raise _refuse(f"the report folder {path} cannot be written to: {error.strerror}") from error


def _tells(path: str, run: Run, strict: bool) -> bool:
    """Return whether the file is right about this rank, or damaged. strict: raises OverlapError where it is wrong."""
    first = _read(path, run.id)
    if first is None or alike(first, run):
        return True
    if strict:
        raise _refuse(
            f"the ranks of this step differ: on {run.host or 'this host'} {_start(run)}; on {first.host or 'the host'} "
            f"that came first {_start(first)}",
            "start all ranks with one version, policy and set of variables, or leave --strict out; if this is another "
            "run, name another folder",
        )
    return False


def _start(run: Run) -> str:
    return f"{under(run)}, which sets {setting(run)}"


def alike(some: Run, other: Run) -> bool:
    """Return whether two ranks have the same policies, variables and version."""

    def start(run: Run) -> object:
        return run.table, [policy.get("hash") for policy in run.policies], run.environment, run.overlap_run

    return start(some) == start(other)


def under(run: Run) -> str:
    """Return policies and version, in words."""
    policies = ", ".join(f"{policy.get('name')} ({policy.get('hash')})" for policy in run.policies)
    return f"{policies or f'the policy table {run.table} that was there'}, overlap-run {run.overlap_run}"


def setting(run: Run) -> str:
    """Return the variables, in words."""
    return ", ".join(f"{name}={value}" for name, value in sorted(run.environment.items())) or "nothing"


def others(path: str, names: list[str] | None = None) -> list[tuple[str, Run]]:
    """Return HOST.PID and the run of the ranks that were started otherwise than the first one of their run."""
    found = []
    for name in sorted(os.listdir(path) if names is None else names):
        match = OTHER.match(name)
        run = _read(os.path.join(path, name), match.group(1)) if match else None
        if match and run is not None:
            found.append((match.group(2), run))
    return found


def damaged(names: list[str], its: list[Run], otherwise: list[tuple[str, Run]]) -> list[str]:
    """Return the files of runs, among these names, that runs() and others() could not read."""
    read_ones = {f"run-{run.id}.json" for run in its} | {f"run-{run.id}.{who}.json" for who, run in otherwise}
    return [name for name in names if (RUN.match(name) or OTHER.match(name)) and name not in read_ones]


def now() -> float:
    return round(time.time(), 3)


def runs(path: str, names: list[str] | None = None) -> list[Run]:
    """Return the runs that the folder belongs to, in the order of their start; other files are passed over."""
    found = []
    for name in sorted(os.listdir(path) if names is None else names):
        match = RUN.match(name)
        run = _read(os.path.join(path, name), match.group(1)) if match else None
        if run is not None:
            found.append(run)
    return sorted(found, key=lambda run: (run.started, run.id))


def earlier(path: str, identifier: str) -> int:
    """Return how many other runs the folder holds. Raises nothing: it is for a note."""
    with suppress(OSError):
        return sum((match := RUN.match(name)) is not None and match[1] != identifier for name in os.listdir(path))
    return 0


def _read(path: str, identifier: str) -> Run | None:
    import json

    try:
        data: Any = json.loads(read(path, _LARGEST, of_folder(os.path.dirname(path))))
        if not isinstance(data, dict) or data.get("id") != identifier or data.get("version") != 1:
            return None
        command, world, policies = data.get("command"), data.get("expected_world_size"), data.get("policies")
        return Run(
            id=identifier,
            started=_time(data.get("started")),
            command=tuple(map(str, command)) if isinstance(command, list) else None,
            policies=tuple(_policy(item) for item in policies if isinstance(item, dict))
            if isinstance(policies, list)
            else (),
            overlap_run=str(data.get("overlap_run", "")),
            expected_world_size=world if isinstance(world, int) and world > 0 else None,
            simulate=_text(data.get("simulate")),
            environment=_strings(data.get("environment")),
            host=str(data.get("host", "")),
            table=_text(data.get("table")),
            outer=_text(data.get("outer")),
        )
    except (Unreadable, ValueError, TypeError, OverflowError, RecursionError):
        return None


def _time(value: Any) -> float:
    """Seconds since 1970; 0 for what no calendar has. Raises ValueError, TypeError and OverflowError."""
    seconds = float(value or 0)
    return seconds if 0 <= seconds <= _LATEST else 0.0


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _strings(values: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()} if isinstance(values, dict) else {}


def _policy(item: Mapping[str, Any]) -> dict[str, str | None]:
    names = ["name", "hash", "file", *(name for name in item if name.startswith(EXTENDS))]
    return {name: _text(item.get(name)) for name in names}


def _refuse(sentence: str, hint: str | None = None) -> OverlapError:
    return OverlapError(sentence, hint, LAUNCHER_FAILED)
