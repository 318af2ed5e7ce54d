"""Run a bundled program in three arms, on the simulated GPU under every dispatch rule, or on the real one.

The program is the same in all arms and knows nothing of us. `sequential` and `plain` run without the library;
`default` runs under it, as overlap-run without options would start it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from pyshim import _native
from pyshim.demo import timeline
from pyshim.demo.counters import read_counters
from pyshim.enums import DISPATCH_RULES
from pyshim.errors import OverlapError
from pyshim.launch import plan
from pyshim.launch.environment import Settings, environment, preloaded
from pyshim.stats.page import Page

ARMS = ("sequential", "plain", "default")
BARE = ("sequential", "plain")  # without the library all streams have one priority, and no dispatch rule ever acts
# Measured in turn, several times over, so that a GPU that warms up or slows down does so in every arm.
REAL_ROUNDS = 3
TIME_LIMIT = 300
# Nothing of an outer overlap-run or of the user's own simulation may reach the arms.
_OURS = ("OVERLAP_", "SIMGPU")


@dataclass(frozen=True)
class Outcome:
    """What the program printed, and what the simulated GPU recorded."""

    milliseconds: float
    step: timeline.Step | None = None  # None on a real GPU: events tell the time of the whole alone


@dataclass(frozen=True)
class Scene:
    """A bundled program, the texts that describe it, and how it is run and read.

    `words` makes the program's arguments from an arm and whether the GPU is simulated; `read` makes the outcome from
    the arm, what the program printed, and the timeline file or None."""

    name: str
    about: str
    lower: str  # what the lower lane of the pictures shows, in one word
    legend: str  # {0} is a bar, {1} the mark of waiting
    program: str
    words: Callable[[str, bool], list[str]]
    read: Callable[[str, str, Path | None], Outcome]


@dataclass(frozen=True)
class Arm:
    name: str
    outcome: Outcome
    counters: Page | None  # None without the library

    @property
    def milliseconds(self) -> float:
        return self.outcome.milliseconds

    @property
    def step(self) -> timeline.Step | None:
        return self.outcome.step


@dataclass(frozen=True)
class Run:
    """The arms of a scene under one dispatch rule; rule None: a real GPU."""

    scene: Scene
    gpu: str
    rule: str | None
    sequential: Arm
    plain: Arm
    default: Arm

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.sequential, self.plain, self.default

    @property
    def change_percent(self) -> float:
        return change(self.plain.milliseconds, self.default.milliseconds)


def change(before: float, after: float) -> float:
    """Return the change in per cent of `before`; negative is faster."""
    return 100.0 * (after - before) / before


Ran = Callable[[], None]  # called after each run of a program


def count(scenes: Sequence[Scene], simulated: bool) -> int:
    """Return how many runs of programs `simulate` or `measure` make of these scenes."""
    each = len(BARE) + len(DISPATCH_RULES) * (len(ARMS) - len(BARE)) if simulated else REAL_ROUNDS * len(ARMS)
    return each * len(scenes)


def simulate(scene: Scene, gpu: str, name: str, base: Mapping[str, str], ran: Ran = lambda: None) -> list[Run]:
    """Run all arms under every dispatch rule on the simulated GPU. Raises OverlapError if the program cannot run.

    gpu: its key; name: as the driver says it; ran: called after each run of a program."""
    _check_built(scene.program, _native.SIMULATED_DRIVER, _native.DEMO / "costs.yaml")
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        jobs: dict[tuple[str, str], Future[Arm]] = {}
        for rule in DISPATCH_RULES:
            for arm in ARMS:
                bare = jobs.get((DISPATCH_RULES[0], arm)) if arm in BARE else None
                jobs[rule, arm] = bare or pool.submit(_simulated, scene, gpu, rule, arm, base)
        for _ in as_completed(set(jobs.values())):
            ran()
        return [Run(scene, name, rule, *(jobs[rule, arm].result() for arm in ARMS)) for rule in DISPATCH_RULES]


def measure(scene: Scene, name: str, base: Mapping[str, str], ran: Ran = lambda: None) -> Run:
    """Run the arms on the real GPU in turn, several times over; medians count. Raises OverlapError without a GPU."""
    _check_built(scene.program)
    rounds: dict[str, list[Arm]] = {arm: [] for arm in ARMS}
    for _ in range(REAL_ROUNDS):
        for arm in ARMS:
            rounds[arm].append(_run(scene, arm, None, clean(base), None))
            ran()
    middle = (sorted(rounds[arm], key=lambda one: one.milliseconds)[REAL_ROUNDS // 2] for arm in ARMS)
    return Run(scene, name, None, *middle)


def real_gpu(base: Mapping[str, str]) -> str:
    """Return the name of the real GPU that programs run on. Raises OverlapError where they run on none."""
    program = "demo-step"
    _check_built(program)
    answer = json.loads(_call(program, ["--arm=sequential", "--layers=1", "--buckets=1"], clean(base)))
    return str(answer["gpu"])


def clean(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without anything of ours: a simulated GPU must not be taken for a real one."""
    kept = {name: value for name, value in base.items() if not name.startswith(_OURS)}
    others = [entry for entry in preloaded(base.get("LD_PRELOAD", "")) if Path(entry).name != _native.SHIM.name]
    kept.pop("LD_PRELOAD", None)
    if others:
        kept["LD_PRELOAD"] = ":".join(others)
    if "LD_LIBRARY_PATH" in kept:
        simulated = str(_native.SIMULATED_DRIVER.parent)
        kept["LD_LIBRARY_PATH"] = ":".join(
            entry
            for entry in kept["LD_LIBRARY_PATH"].split(":")
            if entry != simulated and not entry.startswith(f"{simulated}/")
        )
    return kept


def _check_built(program: str, *more: Path) -> None:
    for path in (_native.DEMO / program, _native.SHIM, *more):
        if not path.exists():
            raise OverlapError(f"{path.name} was not built", "install the package again: pip install .")


def _simulated(scene: Scene, gpu: str, rule: str, arm: str, base: Mapping[str, str]) -> Arm:
    simulated = f"{gpu}:{rule},1"
    settings = Settings(simulated_driver=str(_native.SIMULATED_DRIVER.parent), simulated_gpu=simulated)
    with tempfile.TemporaryDirectory(prefix="overlap-demo-") as folder:
        path = Path(folder) / "timeline"
        names = environment(clean(base), settings)
        names.update(SIMGPU_COSTS=str(_native.DEMO / "costs.yaml"), SIMGPU_TIMELINE=str(path))
        return _run(scene, arm, simulated, names, path)


def _run(scene: Scene, arm: str, simulated: str | None, names: Mapping[str, str], path: Path | None) -> Arm:
    words = scene.words(arm, simulated is not None)
    if arm in BARE:
        return Arm(arm, scene.read(arm, _call(scene.program, words, names), path), None)
    with tempfile.TemporaryDirectory(prefix="overlap-demo-") as report:
        settings = plan.make(plan.Request(simulate=simulated), names).settings._replace(
            library=str(_native.SHIM), report=report, quiet=True
        )
        printed = _call(scene.program, words, environment(names, settings))
        return Arm(arm, scene.read(arm, printed, path), read_counters(Path(report)))


def _call(program: str, words: list[str], names: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [str(_native.DEMO / program), *words],
            env=dict(names),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OverlapError(f"{program} did not end within {TIME_LIMIT} seconds") from error
    except OSError as error:
        raise OverlapError(f"{program} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise OverlapError(
            said[-1].removeprefix(f"{program}: ") if said else f"{program} ended with status {done.returncode}"
        )
    return done.stdout
