"""Run the bundled stencil bare and under overlap-run, on the simulated GPU or on the real one.

The program is the same in both arms and knows nothing of us. The second arm runs as overlap-run without options would
start it.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.pages.page import Page, read_page
from pyshim.pages.untrusted import Unreadable, me
from pyshim.profiles import open_trace
from pyshim.profiles.record import TracedLaunch
from pyshim.start import plan
from pyshim.start.environment import environment, preloaded

_DOCTOR = "overlap doctor; overlap demo --gpu h100 simulates a GPU"
PROGRAM = "demo-stencil"
ITERATIONS = 2  # of a step
# A simulated GPU gives the same answer every time; in the first steps the library gets to know the streams.
SIMULATED_STEPS, REAL_STEPS = 4, 200
REAL_ROUNDS = 3  # bare and default in turn, so that a GPU that slows down does so in both
TIME_LIMIT = 120
NO_GPU = 3  # exit status of the program (tools/demo/driver.h)
# Nothing of an outer overlap-run or of the user's own simulation may reach the arms.
_OURS = ("OVERLAP_", "SIMGPU")

Lines = list[dict[str, Any]]


class NoGpu(Exception):
    """There is no driver of NVIDIA on this machine, or no GPU that it knows."""


@dataclass(frozen=True)
class Span:
    """One piece of work of an iteration, in microseconds since the step began."""

    what: str  # interior, boundary, exchange
    ready_us: float  # what it needs is there
    start_us: float  # of its first block; on a real GPU, which does not tell, the same as ready_us
    end_us: float

    @property
    def wait_us(self) -> float:
        return max(0.0, self.start_us - self.ready_us)


@dataclass(frozen=True)
class DemoArm:
    milliseconds: float  # of an iteration
    spans: tuple[Span, ...]  # of the last step
    counters: Page | None = None  # None without the library


@dataclass(frozen=True)
class DemoResult:
    gpu: str  # its name, as the driver says it
    simulated: str | None  # the value of --simulate; None: a real GPU
    bare: DemoArm
    default: DemoArm
    noise_percent: float = 0.0  # by how much the bare runs differ

    @property
    def change_percent(self) -> float:
        return change(self.bare.milliseconds, self.default.milliseconds)


def change(before: float, after: float) -> float:
    """Return the change in per cent of `before`; negative is faster."""
    return 100.0 * (after - before) / before


def simulate(value: str, base: Mapping[str, str]) -> DemoResult:
    """Run both arms on a simulated GPU. value: of --simulate. Raises OverlapError if the program cannot run."""
    _check_built(_native.SIMULATED_DRIVER)
    own = clean(base)
    gpu, names = plan.simulated(value, own)
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(_simulated, gpu.value, names, own if default else None) for default in (False, True)]
        bare, default = (job.result() for job in jobs)
    return DemoResult(gpu.name, gpu.value, bare, default)


def _simulated(value: str, names: Mapping[str, str], base: Mapping[str, str] | None) -> DemoArm:
    """Run one arm. base: the environment of the arm with the library; None: the bare arm."""
    with tempfile.TemporaryDirectory(prefix="overlap-demo-") as folder:
        path = Path(folder) / "trace"
        words = ["-", "plain", str(SIMULATED_STEPS), "stencil/style-0"]
        more = {"SIMGPU_COSTS": str(_native.DEMO / "costs.yaml"), "SIMGPU_TRACE": str(path)}
        if base is None:
            steps, counters = _call(words, {**names, **more}), None
        else:
            steps, counters = _under_overlap_run(words, {**base, **more}, value)
        return DemoArm(float(steps[-1]["milliseconds"]), _of_trace(path), counters)


def measure(base: Mapping[str, str]) -> DemoResult:
    """Run both arms on the real GPU, several times in turn; medians count.

    Raises NoGpu without one, and OverlapError where the program fails."""
    _check_built()
    own = clean(base)
    rounds: tuple[list[DemoArm], list[DemoArm]] = ([], [])
    words = ["-", "plain", str(REAL_STEPS), "stencil/style-0", "256", "spans"]
    for _ in range(REAL_ROUNDS):
        rounds[0].append(_measured(_call(words, own)))
        rounds[1].append(_measured(*_under_overlap_run(words, own)))
    bare, default = (sorted(arms, key=lambda arm: arm.milliseconds) for arms in rounds)
    counters = default[0].counters
    name = counters.devices[0].name if counters and counters.devices else "the GPU of this machine"
    middle = REAL_ROUNDS // 2
    noise = change(bare[0].milliseconds, bare[-1].milliseconds)
    return DemoResult(name, None, bare[middle], default[middle], noise)


def _measured(lines: Lines, counters: Page | None = None) -> DemoArm:
    """Return the median of the second half of the steps, and the spans of the last. The last line has its moments."""
    times = [float(line["milliseconds"]) for line in lines[:-1]]
    late = sorted(times[len(times) // 2 :])
    spans: list[Span] = []
    for ready, edge, exchanged, begin, end in lines[-1]["spans"]:
        spans += [Span("boundary", ready, ready, edge), Span("exchange", edge, edge, exchanged)]
        spans.append(Span("interior", begin, begin, end))
    return DemoArm(late[len(late) // 2], tuple(spans), counters)


def _of_trace(path: Path) -> tuple[Span, ...]:
    """Return the spans of the last step in a trace of the simulated GPU."""
    rows = [record for record in open_trace(str(path)).activity() if isinstance(record, TracedLaunch)]
    rows.sort(key=lambda row: (row.start_us, row.end_us))
    exchanges = [row for row in rows if row.communication][-ITERATIONS - 1 :]
    interiors = [row for row in rows if row.kernel == "stencil_interior"][-ITERATIONS - 1 :]
    planes = [row for row in rows if row.kernel == "stencil_boundary"][-2 * ITERATIONS :]
    spans: list[Span] = []
    begin = before = max(exchanges[0].end_us, interiors[0].end_us)
    for index in range(1, ITERATIONS + 1):
        first, last = planes[2 * index - 2], planes[2 * index - 1]
        exchange, interior = exchanges[index], interiors[index]
        found = [
            ("boundary", before, first.start_us, last.end_us),
            ("exchange", last.end_us, exchange.start_us, exchange.end_us),
            ("interior", before, interior.start_us, interior.end_us),
        ]
        spans += [Span(what, *(moment - begin for moment in moments)) for what, *moments in found]
        before = max(exchange.end_us, interior.end_us)
    return tuple(spans)


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


def read_counters(report: Path) -> Page:
    """Return the page of the one process that ran. Raises OverlapError where it left none."""
    pages = sorted(report.glob("*.page"))
    try:
        if len(pages) == 1:
            return read_page(str(pages[0]), me())
        problem = "the library did not load into the demo program"
    except Unreadable as error:
        problem = f"the page of the demo program cannot be read: {error}"
    raise OverlapError(problem, "overlap doctor says what is in the way")


def _check_built(*more: Path) -> None:
    for path in (_native.DEMO / PROGRAM, _native.SHIM, *more):
        if not path.exists():
            raise OverlapError(f"{path.name} was not built", _native.AGAIN)


def _under_overlap_run(
    words: Sequence[str], base: Mapping[str, str], simulate: str | None = None
) -> tuple[Lines, Page]:
    with tempfile.TemporaryDirectory(prefix="overlap-demo-") as report:
        settings = plan.make(plan.Request(simulate=simulate), base).settings._replace(
            library=str(_native.SHIM), report=report, quiet=True
        )
        return _call(words, environment(base, settings)), read_counters(Path(report))


def _call(words: Sequence[str], names: Mapping[str, str]) -> Lines:
    """Run the program and return its lines of JSON. Raises NoGpu, and OverlapError where it fails otherwise."""
    try:
        done = subprocess.run(
            [str(_native.DEMO / PROGRAM), *words],
            env=dict(names),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OverlapError(f"{PROGRAM} did not end within {TIME_LIMIT} seconds", _DOCTOR) from error
    except OSError as error:
        raise OverlapError(f"{PROGRAM} cannot be started: {error.strerror}", _DOCTOR) from error
    said = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
    if done.returncode == NO_GPU:
        raise NoGpu(said)
    if done.returncode != 0:
        raise OverlapError(said.removeprefix(f"{PROGRAM}: "), _DOCTOR)
    return [json.loads(line) for line in done.stdout.splitlines()]
