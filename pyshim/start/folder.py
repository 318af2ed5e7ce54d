"""The report folder: one subfolder for each run, which its ranks share, and a link `last` to the latest one.

A run is named by its launcher's job and step, the namespace of PMIx, torchelastic's run, or the process that starts the
ranks of a host; else by time and pid. run.json says how it was started; a rank that was started otherwise adds its own.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.start.environment import BUILT, GPU_MEANT

LAST = "last"
PAGE = re.compile(r".+\.[0-9]+\.[0-9]+\.page\Z")
FIRST = re.compile(r"([^@]+)\.json\Z")
OTHER = re.compile(r"([^@]+)@(.+\.[0-9]+)\.json\Z")
OUTERMOST = "run"
RAISE_SHARE = "raise_share"  # of a policy: "0" where it raises no stream
EXTENDS = "extends_"  # and a number: the file that so many `extends` lead to
WITHOUT = "the working directory has been deleted"
_LONGEST = 511  # bytes: a page carries the path
_LARGEST = 1 << 20
_LATEST = 253402300799.0  # the end of the year 9999, behind which Python's calendar has none

# What all ranks of one job step share and no other step does; the first row whose first variable is set.
STEPS = (
    ("pmix", "PMIX_NAMESPACE"),
    ("slurm", "SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("torchrun", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    ("pmi", "PMI_JOBID"),
)
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
_MOST = 100  # characters of a name


class Run(NamedTuple):
    """What run.json says."""

    id: str  # the name of its folder
    started: float = 0.0  # seconds since 1970
    command: tuple[str, ...] | None = None  # None: the environment was only printed
    policies: tuple[Mapping[str, str | None], ...] = ()  # name, hash, file, raise_share, extends_1, ...
    overlap_run: str = ""
    expected_world_size: int | None = None
    simulate: str | None = None
    environment: Mapping[str, str] = {}  # what policies set for the program
    host: str = ""
    pid: int | None = None  # of overlap-run, and of the program that it becomes
    table: str | None = None  # checksum of the policy table, as pages have it
    driver: bool | None = None  # whether the host has a driver of a GPU; None: not looked for
    obstacle: tuple[str, str] | None = None  # what keeps the library out of the program, and what to do
    version: int = 1


SEARCH = "tune.jsonl"  # in the folder of a search of overlap tune


def is_report(path: str) -> bool:
    """Return whether a folder holds reports, or is one of a run."""
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(name in (LAST, f"{OUTERMOST}.json") or PAGE.match(name) for name in names)


def search_of(path: str) -> str:
    """Return the folder of a search of `overlap tune` that is named, or whose file is; "" for anything else."""
    folder = os.path.dirname(path) if os.path.basename(path) == SEARCH else path
    return folder if os.path.isfile(os.path.join(folder, SEARCH)) else ""


# Names


@functools.cache
def rank_variables() -> tuple[tuple[str, str], ...]:
    """Return the launchers' variables for the rank and for how many there are: the library's own table.

    Empty where it was not built: then there are no pages that a rank could name."""
    try:
        with open(os.path.join(BUILT, "rank.def"), encoding="ascii") as file:
            return tuple(re.findall(r'^RANK\("(\w+)", "(\w+)"\)$', file.read(), re.MULTILINE))
    except (OSError, ValueError):
        return ()


def rank(environment: Mapping[str, str]) -> int | None:
    return _ranked(environment)[0]


def world_size(environment: Mapping[str, str]) -> int | None:
    return _ranked(environment)[1]


def name(environment: Mapping[str, str]) -> str:
    """Return the name of the run that starts in this environment: all ranks of a job step have the same."""
    return step(environment) or time.strftime("%Y%m%d-%H%M%S-") + str(os.getpid())


def step(environment: Mapping[str, str]) -> str | None:
    """Return a name that all ranks of a job step share and no other step has; None outside of one.

    Of launchers that have no such name, such as Hydra, it is that of the process that starts the ranks of this host."""
    number, size = _ranked(environment)
    if number is None:
        return None
    for kind, *variables in STEPS:
        values = [environment.get(variable, "") for variable in variables]
        if not values[0] or values[0].startswith("slurm.pmix."):  # Slurm's own PMIx names the step once more
            continue
        if kind == "slurm":
            if environment.get("SLURM_STEP_NUM_TASKS", "1") == "1":
                continue  # a batch script or a shell: one process, whose runs come one after the other
            restarts = environment.get("SLURM_RESTART_COUNT") or "0"
            return _safe(f"{kind}-{'.'.join(values)}" + (f".{restarts}" if restarts != "0" else ""))
        return _safe("-".join((kind, *values)))
    return _parent() if (size or 1) > 1 else None


def _safe(text: str) -> str:
    safe = _UNSAFE.sub("_", text)[:_MOST]
    if safe == text:
        return text
    import hashlib

    return f"{safe}-{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _parent() -> str | None:
    """Return HOST-PID-TICKS of the parent process: no other process has them."""
    try:
        with open(f"/proc/{os.getppid()}/stat", "rb") as file:
            started = file.read().rpartition(b")")[2].split()[19]
    except (OSError, IndexError):
        return None
    return _safe(f"{os.uname().nodename}-{os.getppid()}-{int(started)}")


def _ranked(environment: Mapping[str, str]) -> tuple[int | None, int | None]:
    for rank_name, world_name in rank_variables():
        found = environment.get(rank_name, "")
        if _is_number(found):
            world = environment.get(world_name, "")
            return int(found), (int(world) or None) if _is_number(world) else None
    return None, None


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 10 and int(value) < 1 << 31  # as in the library


# Folders

_ANOTHER = "--report DIR names another folder, which you can write to"


def absolute(path: str) -> str:
    """Return the absolute path. Raises OverlapError with 125 where the working directory is gone."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise _refuse(f"{path}: {WITHOUT}", "cd to a folder that exists, or give a path from / on") from None


def of_run(directory: str, environment: Mapping[str, str]) -> str:
    """Return the absolute path of the folder that a run will have. Raises OverlapError with 125 for what cannot be."""
    first = path = os.path.join(absolute(directory), name(environment))
    if step(environment):  # which may hold several runs, one after the other; torchrun's steps have all one name
        number = 1
        while os.path.lexists(_began(path, environment)):
            number += 1
            path = f"{first}.{number}"
    if not directory or len(os.fsencode(path)) > _LONGEST:
        sentence = "the report folder needs a name" if not directory else "the name of the report folder is too long"
        raise _refuse(sentence, "--report DIR names a folder, which is made")
    return path


def _began(path: str, environment: Mapping[str, str]) -> str:
    """Return the file that says that this rank has begun here: what it starts next is another run."""
    return os.path.join(path, f".{rank(environment)}.began")


def begin(path: str, environment: Mapping[str, str]) -> None:
    """Say that this rank has begun a run there."""
    with suppress(OSError):
        os.close(os.open(_began(path, environment), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))


def make(path: str) -> None:
    """Make the folder of a run, and the one around it; or check the one that another rank has made.

    Raises OverlapError with 125."""
    around = os.path.dirname(path)
    _check_way(around)
    first = os.path.join(around, f"{OUTERMOST}.json")
    if os.path.lexists(first) and read_run(first):  # `overlap report` would show only one of the two
        hint = f"name the folder around it: {os.path.dirname(around)}"
        raise _refuse(f"{around} is a run, not a report folder", hint)
    for folder in (around, path):
        try:
            if folder == around and not os.path.lexists(folder):
                with suppress(FileExistsError):  # a file, to which mkdir says so
                    os.makedirs(os.path.dirname(folder))
            with suppress(FileExistsError):  # another rank was faster, or an earlier run
                os.mkdir(folder, 0o700)
        except OSError as error:
            raise _refuse(f"the report folder {folder} cannot be made: {error.strerror}", _ANOTHER) from error
        if not os.path.isdir(folder) or (folder == path and os.path.islink(folder)):
            raise _refuse(f"the report folder {folder} is not a folder", _ANOTHER)
        _check(folder)
    _check_way(around)  # once more: somebody may have put a link there meanwhile


def _check(path: str) -> None:
    """Raise OverlapError with 125 unless pages may be written there."""
    owner, user = os.stat(path).st_uid, os.geteuid()
    # As the library sees it (shim/sys/folder.c). Root may use everybody's: as in containers, where it is a user.
    if owner not in (user, 0) and user != 0:
        from pyshim.pages.untrusted import NOBODY

        if owner != NOBODY:
            raise _refuse(
                f"the report folder {path} belongs to another user, who could exchange what is in it",
                "name a folder of your own",
            )
    if not os.access(path, os.W_OK | os.X_OK):
        raise _refuse(f"the report folder {path} cannot be written to", _ANOTHER)


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


def now() -> float:
    return round(time.time(), 3)


def link(path: str) -> str:
    """Make `last` beside the folder of a run the link to it, atomically. Return why not, as a sentence; or nothing."""
    around, run = os.path.split(path)
    last = os.path.join(around, LAST)
    read_by = f"this run is read by: overlap report {shlex.quote(path)}"
    try:
        pointed = os.readlink(last)
    except FileNotFoundError:
        pointed = ""
    except OSError:
        pointed = os.sep  # a file or a folder
    if pointed == run:
        return ""
    if os.sep in pointed:
        return f"{last} is no link of overlap-run and stays as it is; {read_by}"
    scratch = os.path.join(around, f".{LAST}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        os.symlink(run, scratch)
        os.rename(scratch, last)
    except OSError as error:
        with suppress(OSError):
            os.unlink(scratch)
        return f"the link {last} cannot be made ({error.strerror}); {read_by}"
    return ""


# How a run was started


def write(path: str, run: Run, strict: bool = False, inner: str = OUTERMOST) -> None:
    """Write how a run was started, atomically.

    The first rank of a step writes the file that all share, and a rank that was started otherwise one of its own.
    strict: raises OverlapError with 125 instead. inner: the name of a step inside of the run."""
    import json

    first, own = (os.path.join(path, f"{inner}{who}.json") for who in ("", f"@{os.uname().nodename}.{os.getpid()}"))
    scratch = f"{own}.{os.urandom(4).hex()}"  # no name that others could know: they may write in the folder
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if os.path.lexists(first) and _tells(first, run, strict):
            return
        descriptor = os.open(scratch, flags, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(f"{json.dumps(run._asdict(), indent=1)}\n".encode("ascii"))
            try:
                os.link(scratch, first)
            except FileExistsError:  # another rank was faster
                if not _tells(first, run, strict):
                    os.replace(scratch, own)
            except OSError:  # no hard links here
                os.replace(scratch, own if os.path.lexists(first) else first)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(scratch)
    except OSError as error:
        with suppress(OSError):  # other ranks may have written something
            os.rmdir(path)
        raise _refuse(f"the report folder {path} cannot be written to: {error.strerror}", _ANOTHER) from error


def _tells(path: str, run: Run, strict: bool) -> bool:
    """Return whether the file is right about this rank, or damaged. strict: raises OverlapError where it is wrong."""
    first = read_run(path)
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


def read_run(path: str) -> Run | None:
    """Return what a file says of a run; None if it is damaged, or is not to be believed."""
    from pyshim.pages.untrusted import Unreadable, of_folder, read

    try:
        return run_of(read(path, _LARGEST, of_folder(os.path.dirname(path))))
    except Unreadable:
        return None


def run_of(text: bytes) -> Run | None:
    """Return what the text of a file says of a run; None if it is damaged."""
    import json

    try:
        data: Any = json.loads(text)
        if not isinstance(data, dict) or data.get("version") != 1:
            return None
        command, world, policies = data.get("command"), data.get("expected_world_size"), data.get("policies")
        pid, driver = data.get("pid"), data.get("driver")
        return Run(
            id=str(data["id"]),
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
            pid=pid if isinstance(pid, int) and 0 < pid < 1 << 31 else None,
            table=_text(data.get("table")),
            driver=driver if isinstance(driver, bool) else None,
            obstacle=_pair(data.get("obstacle")),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _time(value: Any) -> float:
    """Seconds since 1970; 0 for what no calendar has. Raises ValueError, TypeError and OverflowError."""
    seconds = float(value or 0)
    return seconds if 0 <= seconds <= _LATEST else 0.0


def _pair(value: Any) -> tuple[str, str] | None:
    return (str(value[0]), str(value[1])) if isinstance(value, list) and len(value) == 2 else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _strings(values: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()} if isinstance(values, dict) else {}


def _policy(item: Mapping[str, Any]) -> dict[str, str | None]:
    names = [
        "name",
        "hash",
        "file",
        *(name for name in item if name in (RAISE_SHARE, GPU_MEANT) or name.startswith(EXTENDS)),
    ]
    return {name: _text(item.get(name)) for name in names}


def _refuse(sentence: str, hint: str) -> OverlapError:
    return OverlapError(sentence, hint, LAUNCHER_FAILED)
