"""What trials found out about programs: kept in the user's cache folder, and given to the next trial of the program.

    ~/.cache/overlap-run/trials/ID.json    (or below $XDG_CACHE_HOME)

One file for each program, arguments, GPUs, driver, number of ranks and policy. `overlap report` writes it, overlap-run
reads it, and every rank of a job reads the same. A file that is damaged, a link or another user's counts for nothing,
and nothing that is wrong with it keeps a program from running.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyshim.launch import cache, driver, rank
from pyshim.samples import Samples

if TYPE_CHECKING:
    from pyshim.launch.plan import Plan

_LARGEST = 1 << 18  # bytes of a file
_GIVEN = 8  # samples that a table may bring: OVERLAP_TRIAL_KNOWN
_NAME = 63  # bytes of an arm's name in a page
_RUNS = 64  # whose ids are kept, so that none counts twice
_LEVELS = 5  # OVERLAP_TRIAL_LEVELS
_ARMS = 16  # more than a policy has

Known = Mapping[str, Samples]  # by arm


class Program(NamedTuple):
    """What must be the same for a verdict to be about the same thing."""

    program: str  # the file that is executed
    arguments: tuple[str, ...]  # a script by its path; of other paths the last part
    gpus: tuple[str, ...]  # of the machine, as the kernel module calls them
    driver: str
    world_size: int
    policy: str
    hash: str  # of the policy; it covers the arms

    @property
    def id(self) -> str:
        import hashlib

        text = "\0".join(map(repr, self))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True)
class Memory:
    program: Program
    kept: str | None = None  # the arm, or the policy itself; None: no verdict yet
    levels: Mapping[int, Known] = field(default_factory=dict)
    runs: tuple[str, ...] = ()  # ids, the latest last
    number: int = 0  # of runs
    date: str = ""

    @property
    def level(self) -> int:
        """Return the level at which most is known, the longer blocks of equal ones."""
        return max(self.levels, key=lambda level: (_fewest(self.levels[level]), level), default=0)

    def at(self, level: int) -> Known:
        """Return the samples at a level; of an arm that was dropped at another one, those."""
        return {
            name: one for other in (*sorted(self.levels), level) for name, one in self.levels.get(other, {}).items()
        }


def _fewest(known: Known) -> int:
    return max((samples.count for samples in known.values()), default=0)


class Given(NamedTuple):
    """What a run was given for the trial of a policy, as run-ID.json has it."""

    program: Program
    level: int
    known: Known

    def as_json(self) -> dict[str, Any]:
        return {**self.program._asdict(), "given": {"level": self.level, "arms": _as_json(self.known)}}


def folder(environment: Mapping[str, str]) -> str | None:
    return cache.folder(environment, "trials")


# ---- At the start of a program ----


def begin(plan: Plan, path: str, command: Sequence[str], environment: Mapping[str, str], root: str = "/") -> None:
    """Put what is known of a program into its policy table, and note in the plan what that was."""
    from pyshim.policy import layout

    table = layout.decode(plan.settings.table or "")
    for index, names in layout.trials(table) if table else ():
        program = _program(path, command, plan.policies[index], environment, root)
        if program is None:
            continue
        arms = [name.encode("utf-8")[:_NAME].decode("utf-8", "replace") for name in names]
        found = _remembered(program, environment, plan)
        level = found.level if found else 0
        known = {name: one.at_most(_GIVEN) for name, one in (found.at(level) if found else {}).items()}
        first = arms.index(found.kept) + 1 if found and found.kept in arms else 0
        if found:
            samples = [known.get(name, Samples()) for name in arms]
            counted = [(one.count, one.sum, one.squares) for one in samples]
            table = layout.remembered(table, index, first, level, counted)
            plan.settings = plan.settings._replace(table=layout.encode(table))
            what = f"begins with {found.kept}" if first else "goes on with earlier samples"
            plan.dispatch.append(f"policy {program.policy}: its trial {what} (overlap trial, runs: {found.number})")
        plan.trials = (*plan.trials, Given(program, level, known).as_json())


def _remembered(program: Program, environment: Mapping[str, str], plan: Plan) -> Memory | None:
    directory = folder(environment)
    file = directory and os.path.join(directory, f"{program.id}.json")
    if not file or not os.path.lexists(file):
        return None
    found = _read(file)
    if found is None or found.program != program:
        plan.remarks.append(f"{file} is damaged, and left out: the trial begins anew (overlap trial --forget)")
        return None
    return found


def _program(
    path: str, command: Sequence[str], policy: Mapping[str, str | None], environment: Mapping[str, str], root: str
) -> Program | None:
    """Return what a verdict belongs to; None: the GPUs or the driver are not known without opening them."""
    identity = driver.identity(environment, root)
    if "SIMGPU" in environment:
        gpus: list[str] = [environment["SIMGPU"]]
    else:
        gpus = sorted((driver.models(environment, root) or {}).values())
    if not identity or not gpus or not path:
        return None
    return Program(
        program=os.path.realpath(path),
        arguments=tuple(_arguments(command[1:])),
        gpus=tuple(gpus),
        driver=identity,
        world_size=rank.world_size(environment) or 1,
        policy=policy["name"] or "",
        hash=policy["hash"] or "",
    )


def _arguments(words: Sequence[str]) -> Iterator[str]:
    script = next((word for word in words if not word.startswith("-") and os.path.isfile(word)), None)
    for word in words:
        head, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if word == script:
            yield os.path.realpath(word)
            script = None
        else:
            yield head + equals + (value.rstrip("/").rpartition("/")[2] or value)


# ---- After a run ----


def given(data: Mapping[str, Any]) -> Given | None:
    """Return what run-ID.json says of one policy; None: it is damaged."""
    try:
        held = data["given"]
        level = _number(held["level"], _LEVELS - 1)
        return Given(_program_of(data), level, _known(held["arms"]))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def keep(
    run: str,
    given: Given,
    level: int,
    samples: Known,
    kept: str | None,
    environment: Mapping[str, str],
    dropped: Mapping[int, Known] = {},
) -> Memory | None:
    """Add a run to what is known of its program, atomically. Raise OSError where it cannot be kept.

    samples: at this level, with those that the run was given. kept: the verdict; None: there is none, and an earlier
    one stands. dropped: by level, samples of arms that were dropped at another level.
    Return what is known then; None: the run had been added before."""
    import json
    import time

    from pyshim.stats.file import write_whole

    directory = folder(environment)
    if directory is None:
        raise OSError(0, "neither XDG_CACHE_HOME nor HOME names a folder")
    cache.make(directory)
    file = os.path.join(directory, f"{given.program.id}.json")
    with _alone(directory):
        found = _read(file)
        before = found if found and found.program == given.program else Memory(given.program)
        if run in before.runs:
            return None
        levels = dict(before.levels)
        for at, found_there in {**dropped, level: samples}.items():
            levels[at] = _sum(levels.get(at, {}), found_there, given.known if at == given.level else {})
        now = replace(
            before,
            kept=before.kept if kept is None else kept,
            levels=levels,
            runs=(*before.runs, run)[-_RUNS:],
            number=before.number + 1,
            date=time.strftime("%Y-%m-%d"),
        )
        write_whole(file, f"{json.dumps(_written(now), indent=1)}\n".encode("ascii"))
    return now


def _sum(old: Known, new: Known, given: Known) -> Known:
    """Return old samples and those of a run, less those that it was given. Arms without any are left out."""
    none = Samples()
    own = {name: one.plus(given.get(name, none), -1) for name, one in new.items()}
    both = {name: old.get(name, none).plus(own.get(name, none)) for name in {**old, **own}}
    return {name: one for name, one in both.items() if one.count}


@contextmanager
def _alone(directory: str) -> Iterator[None]:
    """Keep other reports from adding a run at the same time. Without locks on a file system the last report counts."""
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remembered(environment: Mapping[str, str]) -> tuple[list[Memory], list[str]]:
    """Return all that is known, by program, and the files that cannot be read."""
    directory = folder(environment)
    found, broken = [], []
    for name in driver.names(directory) if directory else []:
        if name.endswith(".json"):
            file = os.path.join(str(directory), name)
            one = _read(file)
            if one and f"{one.program.id}.json" == name:
                found.append(one)
            else:
                broken.append(file)
    return sorted(found, key=lambda one: one.program), broken


def forget(programs: Sequence[Program] | None, environment: Mapping[str, str]) -> int:
    """Remove what is known of these programs, or of all, and return how many there were. Raises OSError."""
    from pyshim.stats.file import SCRATCH

    directory, gone = folder(environment), 0
    wanted = None if programs is None else {f"{program.id}.json" for program in programs}
    for name in driver.names(directory) if directory else []:
        known = name.endswith(".json")
        if name in wanted if wanted is not None else known or SCRATCH.fullmatch(name):
            os.unlink(os.path.join(str(directory), name))
            gone += known
    return gone


# ---- The file ----


def _written(memory: Memory) -> dict[str, Any]:
    return {
        "version": 1,
        "program": memory.program._asdict(),
        "kept": memory.kept,
        "levels": {str(level): _as_json(known) for level, known in sorted(memory.levels.items())},
        "runs": memory.runs,
        "number": memory.number,
        "date": memory.date,
    }


def _read(file: str) -> Memory | None:
    import json

    from pyshim.stats.file import Unreadable, me, read

    try:
        data: Any = json.loads(read(file, _LARGEST, me()))
        if data["version"] != 1:
            return None
        return Memory(
            program=_program_of(data["program"]),
            kept=None if data["kept"] is None else _text(data["kept"]),
            levels={_number(int(level), _LEVELS - 1): _known(known) for level, known in data["levels"].items()},
            runs=tuple(map(_text, data["runs"])),
            number=_number(data["number"]),
            date=_text(data["date"]),
        )
    except (Unreadable, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _program_of(data: Mapping[str, Any]) -> Program:
    program, identity, policy, digest = (_text(data[name]) for name in ("program", "driver", "policy", "hash"))
    arguments, gpus = (tuple(map(_text, data[name])) for name in ("arguments", "gpus"))
    return Program(program, arguments, gpus, identity, _number(data["world_size"]), policy, digest)


def _as_json(known: Known) -> dict[str, list[float]]:
    return {name: [one.count, one.sum, one.squares] for name, one in known.items()}


def _known(data: Mapping[str, Any]) -> Known:
    made = {_text(name): Samples(_number(sums[0]), float(sums[1]), float(sums[2])) for name, sums in data.items()}
    if len(made) > _ARMS or not all(one.are_possible for one in made.values()):
        raise ValueError("impossible samples")
    return made


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: Any, most: int = 1 << 31) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(value)
    return value
