"""The patterns of tools/demo/stencil.c: who gains by raising what is waited for, and who does not.

The gains are those of two H200 in kind: 28 to 4 % where the boundary and the exchange share a stream, 17 to 6 % where
an event hands over, 40 to 17 % through the host.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyshim import _native
from tools.simgpu.simgpu_cubin import Kernel, cubin

STEPS = 6
# By at least how much percent raising the stream of the exchange must make an iteration shorter.
GAINS = {
    "stencil/style-0": 12,
    "stencil/style-1": 10,
    "stencil/style-2": 12,
    "stencil/graph": 12,
    "stencil/swapped": 5,
    "stencil/anew": 12,
    "host-staged/stream": 20,
    "host-staged/event": 20,
    "host-staged/poll": 20,
    "host-staged/poll-stream": 20,
    "host-staged/blocking": 15,
    "host-staged/function": 20,
    "trap/warm-up": 12,
    "trap/reset": 12,
}
# Raising changes nothing: one stream, a host that waits before it launches, work that nobody waits for.
NOTHING = ("stencil/one", "host-staged/pageable", "trap/synchronised", "trap/loader", "trap/logger")
EITHER = ("trap/equal",)  # two streams with the same work, of which one is raised
PATTERNS = (*GAINS, *NOTHING, *EITHER)

# Those of stencil.cu; the exchange with the footprint of NCCL 2.28's kernel.
KERNELS = (
    Kernel("stencil_interior", 32, parameters=(8, 8, 4, 4, 4)),
    Kernel("stencil_boundary", 32, parameters=(8, 8, 4, 4)),
    Kernel("ncclDevKernel_SendRecv", 96, 21568, parameters=(8, 4)),
)

Lines = list[dict[str, float]]
Run = Callable[..., Lines]


@pytest.fixture(scope="session")
def run(libcuda: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """run(pattern, arm) -> the lines of the program on a simulated H200."""
    program = _native.DEMO / "demo-stencil"
    if not program.exists():
        pytest.fail(f"{program} was not built: make setup")
    image = tmp_path_factory.mktemp("stencil") / "stencil.cubin"
    image.write_bytes(cubin(KERNELS, 90))
    base = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "SIMGPU", "LD_"))}

    def measure(pattern: str, arm: str = "plain", steps: int = STEPS, **more: str) -> Lines:
        environment = {
            **base,
            "LD_LIBRARY_PATH": str(libcuda.parent),
            "SIMGPU": "h200",
            "SIMGPU_COSTS": str(_native.DEMO / "costs.yaml"),
            **more,
        }
        command = [str(program), str(image), arm, str(steps), pattern]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return measure


Times = dict[tuple[str, str], float]


@pytest.fixture(scope="session")
def times(run: Run) -> Times:
    """Milliseconds of an iteration, once the first steps are over."""
    arms = [(pattern, arm) for pattern in PATTERNS for arm in ("plain", "raise")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda each: run(*each), arms)
        return {each: sum(line["milliseconds"] for line in lines[3:]) / 3 for each, lines in zip(arms, found)}


def change(times: Times, pattern: str) -> float:
    return 100 * (times[pattern, "raise"] / times[pattern, "plain"] - 1)


def test_every_pattern_of_the_program_is_judged_here() -> None:
    """Those that `demo-stencil --help` lists."""
    done = subprocess.run([str(_native.DEMO / "demo-stencil"), "--help"], capture_output=True, text=True, check=True)
    assert sorted(PATTERNS) == sorted(re.findall(r"^  (\S+/\S+)$", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("pattern", GAINS)
def test_raising_what_is_waited_for_gains(times: Times, pattern: str) -> None:
    assert change(times, pattern) < -GAINS[pattern]


@pytest.mark.parametrize("pattern", NOTHING)
def test_raising_what_nobody_waits_for_changes_nothing(times: Times, pattern: str) -> None:
    assert change(times, pattern) == pytest.approx(0, abs=0.5)


def test_raising_one_of_two_equal_streams_changes_little(times: Times) -> None:
    assert change(times, "trap/equal") == pytest.approx(0, abs=2.5)


@pytest.mark.parametrize("pattern", ["stencil/style-0", "host-staged/event", "trap/warm-up", "trap/reset"])
def test_raising_all_streams_gains_nothing(run: Run, times: Times, pattern: str) -> None:
    """What a rule would do that raised each stream that once carried communication, or that one of those waits for."""
    level = sum(line["milliseconds"] for line in run(pattern, "level")[3:]) / 3
    assert level == pytest.approx(times[pattern, "plain"], rel=0.005)


def test_the_exchange_is_hidden_whole_where_it_is_raised(run: Run, times: Times) -> None:
    """Measured on two H200, 256 points: 0.093 ms without an exchange, 0.097 by NCCL, 0.092 through the host."""
    for pattern in ("stencil/style-0", "host-staged/stream"):
        alone = run(pattern, "compute")[-1]["milliseconds"]
        assert times[pattern, "raise"] == pytest.approx(alone, rel=0.02)
        assert alone == pytest.approx(0.093, rel=0.1)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_launches_and_the_same_times_twice(run: Run, tmp_path: Path, pattern: str) -> None:
    log = tmp_path / "launches"
    first = run(pattern, steps=3, SIMGPU_LAUNCHES=str(log))
    assert run(pattern, steps=3) == first
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert len([row for row in rows if not row["captured"]]) == first[-1]["launches"]
    raised = run(pattern, "raise", steps=3)
    assert [line["launches"] for line in raised] == [line["launches"] for line in first]
