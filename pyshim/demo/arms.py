"""Run the bundled program: four arms, on the simulated GPU under one dispatch rule, or on the real one.

The program is the same in all arms and knows nothing of us. `sequential` and `plain` run without the library;
`priority` and `policy` run under it, as overlap-run would start them.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyshim import _native
from pyshim.demo import timeline
from pyshim.demo.counters import read_counters
from pyshim.errors import OverlapError
from pyshim.launch.environment import Settings, environment
from pyshim.launch.preload import split
from pyshim.policy.model import Match, Policy, Priority, Range, Rule, Shape
from pyshim.policy.table import compile_table
from pyshim.stats.page import Page

RULES = ("hold", "drain", "backfill")
ARMS = ("sequential", "plain", "priority", "policy")
LAYERS = 4
BUCKETS = 4
# In the first step the library gets to know the kernels, and the clock of the simulated GPU counts that too. A real GPU
# is measured; the simulated one computes, and the same answer every time, so one more step will do.
SIMULATED = ("--warmup=1", "--steps=1")
REAL = ("--warmup=3", "--steps=15", "--check")
# Measured in turn, several times over, so that a GPU that warms up or slows down does so in every arm.
REAL_ROUNDS = 3
TIME_LIMIT = 300
# Nothing of an outer overlap-run or of the user's own simulation may reach the arms.
_OURS = ("OVERLAP_", "SIMGPU")

PRIORITY_ONLY = Policy(name="demo-priority", priority=Priority("highest"))
# The published method: half of the blocks that a multiprocessor would hold, for every grid of two or more waves.
PAPER = Policy(
    name="demo-policy",
    priority=Priority("highest"),
    rules=(
        Rule(
            match=Match(waves_percent=Range(minimum=200), resident_blocks=Range(minimum=2)),
            shape=Shape("percent", 50),
            when="always",
            keep_at_least=0,
            line=1,
        ),
    ),
)
POLICIES = {"priority": PRIORITY_ONLY, "policy": PAPER}


@dataclass(frozen=True)
class Kernel:
    name: str
    blocks: int
    threads: int
    registers: int
    static_shared: int
    dynamic_shared: int


@dataclass(frozen=True)
class Arm:
    name: str
    gpu: str  # as the driver says it
    milliseconds: float
    compute: Kernel
    communication: Kernel
    step: timeline.Step | None  # None on a real GPU: events tell the time of the whole alone
    counters: Page | None  # None without the library


@dataclass(frozen=True)
class Run:
    """The four arms under one dispatch rule; rule None: a real GPU."""

    rule: str | None
    sequential: Arm
    plain: Arm
    priority: Arm
    policy: Arm

    @property
    def arms(self) -> tuple[Arm, Arm, Arm, Arm]:
        return self.sequential, self.plain, self.priority, self.policy

    @property
    def change_percent(self) -> float:
        return change(self.plain.milliseconds, self.policy.milliseconds)


def change(before: float, after: float) -> float:
    """In per cent of `before`; negative is faster."""
    return 100.0 * (after - before) / before


def simulate(gpu: str, base: Mapping[str, str]) -> list[Run]:
    """All arms under every dispatch rule. Raises OverlapError where the program cannot run."""
    _check_built(_native.SIMULATED_DRIVER, _native.DEMO / "costs.yaml")
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        jobs = {(rule, arm): pool.submit(_simulated, gpu, rule, arm, base) for rule in RULES for arm in ARMS}
        return [Run(rule, *(jobs[rule, arm].result() for arm in ARMS)) for rule in RULES]


def measure(base: Mapping[str, str]) -> Run:
    """The arms on the real GPU, in turn, several times over. Raises OverlapError where there is none."""
    _check_built()
    rounds: dict[str, list[Arm]] = {arm: [] for arm in ARMS}
    for _ in range(REAL_ROUNDS):
        for arm in ARMS:
            rounds[arm].append(_run(arm, REAL, clean(base), None))
    return Run(None, *(sorted(rounds[arm], key=lambda one: one.milliseconds)[REAL_ROUNDS // 2] for arm in ARMS))


def real_gpu(base: Mapping[str, str]) -> str | None:
    """None where the program runs on a real GPU, else why it does not."""
    try:
        _check_built()
        _call(["--arm=sequential", "--layers=1", "--buckets=1"], clean(base))
    except OverlapError as error:
        return error.sentence
    return None


def clean(base: Mapping[str, str]) -> dict[str, str]:
    """The environment without anything of ours: a simulated GPU must not be taken for a real one."""
    kept = {name: value for name, value in base.items() if not name.startswith(_OURS)}
    preloaded = [entry for entry in split(base.get("LD_PRELOAD", "")) if Path(entry).name != _native.SHIM.name]
    kept.pop("LD_PRELOAD", None)
    if preloaded:
        kept["LD_PRELOAD"] = ":".join(preloaded)
    if "LD_LIBRARY_PATH" in kept:
        simulated = str(_native.SIMULATED_DRIVER.parent)
        kept["LD_LIBRARY_PATH"] = ":".join(
            entry
            for entry in kept["LD_LIBRARY_PATH"].split(":")
            if entry != simulated and not entry.startswith(f"{simulated}/")
        )
    return kept


def _check_built(*more: Path) -> None:
    for path in (_native.DEMO / "overlap-demo", _native.SHIM, *more):
        if not path.exists():
            raise OverlapError(f"{path.name} was not built", "install the package again: pip install .")


def _simulated(gpu: str, rule: str, arm: str, base: Mapping[str, str]) -> Arm:
    settings = Settings(
        simulated_driver=str(_native.SIMULATED_DRIVER.parent),
        simulated_gpu=f"{gpu}:{rule},1",
    )
    with tempfile.TemporaryDirectory(prefix="overlap-demo-") as folder:
        path = Path(folder) / "timeline"
        names = environment(clean(base), settings)
        names.update(SIMGPU_COSTS=str(_native.DEMO / "costs.yaml"), SIMGPU_TIMELINE=str(path))
        return _run(arm, SIMULATED, names, path)


def _run(arm: str, options: Sequence[str], names: Mapping[str, str], path: Path | None) -> Arm:
    kind = "sequential" if arm == "sequential" else "concurrent"
    words = [f"--arm={kind}", f"--layers={LAYERS}", f"--buckets={BUCKETS}", *options]
    counters = None
    if arm in POLICIES:
        with tempfile.TemporaryDirectory(prefix="overlap-demo-") as report:
            answer = _call(words, environment(names, _under(POLICIES[arm], report)))
            counters = read_counters(Path(report))
    else:
        answer = _call(words, names)
    compute = _kernel(answer["compute"])
    return Arm(
        name=arm,
        gpu=str(answer["gpu"]),
        milliseconds=float(str(answer["milliseconds"])),
        compute=compute,
        communication=_kernel(answer["communication"]),
        step=timeline.read(path, compute.name, LAYERS, BUCKETS) if path else None,
        counters=counters,
    )


def _under(policy: Policy, report: str) -> Settings:
    return Settings(
        library=str(_native.SHIM),
        table=base64.b64encode(compile_table([policy])).decode("ascii"),
        report=report,
        run_id=secrets.token_hex(8),
        quiet=True,
    )


def _call(words: list[str], names: Mapping[str, str]) -> dict[str, object]:
    try:
        done = subprocess.run(
            [str(_native.DEMO / "overlap-demo"), *words],
            env=dict(names),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OverlapError(f"the demo program did not end within {TIME_LIMIT} seconds") from error
    except OSError as error:
        raise OverlapError(f"the demo program cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise OverlapError(
            said[-1].removeprefix("overlap-demo: ") if said else f"the demo program ended with status {done.returncode}"
        )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def _kernel(fields: object) -> Kernel:
    assert isinstance(fields, dict)
    return Kernel(
        name=str(fields["kernel"]),
        blocks=int(fields["blocks"]),
        threads=int(fields["threads"]),
        registers=int(fields["registers"]),
        static_shared=int(fields["static_shared"]),
        dynamic_shared=int(fields["dynamic_shared"]),
    )
