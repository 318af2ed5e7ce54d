"""From the words of the command line, or of an earlier search, to what is searched; nothing has run yet."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyshim.errors import USAGE, OverlapError
from pyshim.start.folder import SEARCH, absolute, world_size
from pyshim.tune import arms, measure, observed
from pyshim.tune.arms import Stage
from pyshim.tune.measure import Metric, TimedRun
from pyshim.tune.search import Setup, append
from pyshim.tune.sets import SETS

VERSION = 3
WORDS = ("arm", "tries", "simulate", "metric", "higher", "skip", "same", "worth")  # command line
_RUN = {"stage", "round", "arm", "copy", "file", "choice", *TimedRun._fields}  # of the other lines
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}
_LONGEST = 30 * 24 * 3600  # seconds of --limit; a timer of Python's takes no more than about 300 years
_MANY = 1000  # folders
_PATIENCE = 60.0  # seconds for a run that shows what the program prints
_NEEDED = "--simulate needs --metric"
_HOST_TIME = "how long a run takes is the host's time, not the simulated GPU's"
_NAME_IT = "--metric REGEX names the number to compare, with ( ) around it"
# A variable that only this launcher sets for its tasks; the first that is set names it.
_LAUNCHERS = (
    ("TORCHELASTIC_RUN_ID", "torchrun"),
    ("OMPI_COMM_WORLD_RANK", "mpirun"),
    ("SLURM_STEP_ID", "srun"),
    ("PMI_RANK", "mpirun"),
)


def seconds(text: str) -> float:
    """Read a value of --limit. Raises OverlapError."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|m|min|h)?", text)
    if not found or not float(found[1]):
        raise OverlapError(f"--limit {text}: not a time", "90s, 30m or 2h", USAGE)
    if not found[2]:
        hint = f"{text}s, {text}m or {text}h: seconds, minutes or hours"
        raise OverlapError(f"--limit {text}: a time has a unit", hint, USAGE)
    limit = float(found[1]) * _UNITS[found[2]]
    if limit > _LONGEST:
        hint = f"{_LONGEST // 3600}h, which are 30 days, is the longest; --resume DIR goes on with an earlier search"
        raise OverlapError(f"--limit {text}: too long", hint, USAGE)
    return limit


def _worth(text: str, higher: bool) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%?", text)
    if not found or not 0 < float(found[1]) < 100:
        raise OverlapError(f"--worth {text}: not a percentage between 0 and 100", "--worth 0.5%", USAGE)
    part = float(found[1]) / 100
    return math.log1p(part) if higher else -math.log1p(-part)


def words(options: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
    """Return what a search is, as its first line keeps it. options: of the command line."""
    unknown = [name for name in options["sets"] if name not in SETS]
    if unknown:
        from pyshim.policy.finding import did_you_mean

        hint = f"{did_you_mean(unknown[0], SETS)} sets: {', '.join(SETS)}".strip()
        raise OverlapError(f"no set is called {unknown[0]}", hint, USAGE)
    tries = [*options["tries"], *(word for name in options["sets"] for word in arms.of_set(name))]
    kept = {name: options[name] for name in WORDS}
    kept["worth"] = kept["worth"] or "0.5%"
    return {**kept, "version": VERSION, "tries": tries, "command": command, "directory": absolute(os.curdir)}


def refuse_tasks(command: Sequence[str], base: Mapping[str, str]) -> None:
    """Raise OverlapError where this process is one of several tasks of a launcher: each would search on its own."""
    tasks = world_size(base) or 1
    if tasks == 1:
        return
    launcher = next((name for variable, name in _LAUNCHERS if variable in base), "LAUNCHER")
    if launcher == "torchrun" and os.path.basename(command[0] if command else "").startswith("python"):
        command = command[1:]  # torchrun starts Python itself
    program = shlex.join(command) or "PROGRAM"
    raise OverlapError(
        f"this is one of {tasks} tasks of a launcher: each would search on its own, and slow the others down",
        f"overlap tune starts the launcher itself: overlap tune ... -- {launcher} ... {program}",
        USAGE,
    )


def read(folder: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a search is, and its runs, from the folder of an earlier one. Raises OverlapError."""
    _hold(folder)
    path = os.path.join(folder, SEARCH)
    try:
        with open(path, "rb+") as file:
            data = file.read()
            whole = data.rfind(b"\n") + 1
            file.truncate(whole)  # of a line that was being written
        lines = [json.loads(line) for line in data[:whole].splitlines()]
        if not lines or lines[0]["version"] != VERSION:
            raise ValueError("it was written by another version")
        for number, line in enumerate(lines, 1):
            if not (_RUN if number > 1 else {"command", "directory", "gpu", *WORDS}) <= line.keys():
                raise ValueError(f"line {number} is not whole")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = getattr(error, "strerror", None) or error
        hint = "--resume takes the folder of an earlier search"
        raise OverlapError(f"{path} cannot be read: {why}", hint, USAGE) from error
    if lines[0]["directory"] != absolute(os.curdir):
        raise OverlapError(f"{folder} was begun in another folder", f"cd {lines[0]['directory']}", USAGE)
    return lines[0], lines[1:]


def make(
    kept: Mapping[str, Any], base: Mapping[str, str], folder: str, tell: Callable[[str], object]
) -> tuple[Setup, arms.Platform, list[str]]:
    """Return the search, the machine, and what is to be said. Raises OverlapError for everything that is wrong.

    tell: gets what is to be said before the program runs here, which may take a while."""
    metric = Metric(kept["metric"], kept["higher"], kept["skip"], kept["same"])
    metric.check()
    own = arms.own_environment(base)
    here = arms.machine(kept["simulate"], own)
    if kept.get("gpu", here.name) != here.name:
        sentence = f"{folder} was begun on {kept['gpu']}, and this is {here.name}"
        raise OverlapError(sentence, "begin anew without --resume: times of two GPUs cannot be compared", USAGE)
    started = arms.TunedProgram(tuple(kept["command"]), own, kept["simulate"])
    path = started.path()
    if kept["simulate"] and metric.pattern is None:
        tell(f"{_NEEDED}; runs the program once, for at most {_PATIENCE:.0f} s, to see what it prints")
        raise OverlapError(f"{_NEEDED}: {_HOST_TIME}", _offered(started), USAGE)
    options = arms.ArmOptions(tuple(kept["arm"]), tuple(kept["tries"]))
    why = arms.useless(started, path, here)
    stages, said = arms.stages(options, here, own, why)
    if why:
        said.insert(0, f"{why}: no policy is compared")
    for stage in stages:
        for arm in stage.on(arms.BARE):
            arms.environment_of(arm, started)

    def choose(names: Sequence[str]) -> Sequence[Stage]:
        tries = [word for name in names for word in arms.of_set(name)]
        return arms.stages(options._replace(tries=tuple(tries)), here, own)[0]

    is_open = not options.arms and not options.tries
    observe = not why and (is_open or metric.pattern is None)
    made = Setup(started, stages, metric, _worth(kept["worth"], metric.higher), folder, observe)
    return made._replace(choose=choose if is_open else None), here, said


def _offered(started: arms.TunedProgram) -> str:
    """Run the program once, and return a --metric that fits what it prints. Raises OverlapError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "output.txt")
        run = measure.run(started.command, arms.environment_of(arms.BARE, started), file, _PATIENCE, Metric())
        if run.wrong:
            last = measure.last_line(file)
            said = f'it ended with "{last}"' if last else "it printed nothing"
            why = f"took more than {_PATIENCE:.0f} s" if run.late else run.wrong
            sentence = f"{_NEEDED}; a run of the program to offer one failed: {why}"
            raise OverlapError(sentence, f"{said}; {_NAME_IT}", USAGE)
        return observed.offer(measure.text(file))


def folder_for(wanted: str | None) -> tuple[str, bool]:
    """Return the folder of a search, the wanted one or tune-1, tune-2, and whether it is new. Raises OverlapError."""
    names = [wanted] if wanted else [f"tune-{number}" for number in range(1, _MANY)]
    for name in names:
        try:
            is_new = not os.path.isdir(name)
            os.makedirs(name, exist_ok=wanted is not None)
            if not os.listdir(name):
                return name, is_new
        except FileExistsError:
            if wanted:
                raise OverlapError(f"{name} is not a folder", "--output DIR names another", USAGE) from None
        except OSError as error:
            hint = "--output DIR names a folder that can be written"
            raise OverlapError(f"{name} cannot be made: {error.strerror}", hint) from error
    raise OverlapError(f"{names[-1]} is not empty", "--output DIR names another, --resume DIR goes on with it", USAGE)


def begin(kept: dict[str, Any], folder: str, is_new: bool) -> None:
    """Write the first line. Raises OverlapError, and leaves nothing behind then."""
    _hold(folder, os.O_CREAT | os.O_EXCL)
    try:
        append(folder, kept)
    except OverlapError as error:
        error.hint = "--output DIR names a folder on a disk with room"
        with suppress(OSError):
            os.unlink(os.path.join(folder, SEARCH))
            if is_new:
                os.rmdir(folder)
        raise


def _hold(folder: str, flags: int = 0) -> None:
    """Keep other searches out of a folder until this process ends. Raises OverlapError where one runs in it."""
    try:
        fcntl.flock(os.open(os.path.join(folder, SEARCH), os.O_RDWR | flags, 0o666), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileExistsError):
        raise OverlapError(f"{folder} is in use by another overlap tune", "wait until it ends", USAGE) from None
    except OSError:
        pass  # no search, which is said elsewhere, or a file system without locks
