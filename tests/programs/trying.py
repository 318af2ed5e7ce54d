"""Trials of policies in real processes on the simulated GPU, and what their pages say (struct overlap_page_trial)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from interposing import Build, Done, Runner

from pyshim import _native
from pyshim.launch import plan

ROOT = Path(__file__).resolve().parents[2]
RUNNING, KEPT, NOTHING, NOISY = range(4)
CONTEXT, TIMES, CAPTURES = range(1, 4)  # enum overlap_trial_obstacle
REFERENCE = "critical: off\ncommunication: {priority: inherit}\n"
# The interior on stream 1, the boundary and its exchange on stream 2: a step is shorter if stream 2 is raised.
JOIN = "r:1:1 w:2:1 r:2:2 w:1:2"
STEP = f"j:1:{{}} k:2:8 c:2 {JOIN}"


WARM_UP = 64  # communication launches before a trial


def costs(exchange: float, gain: float = 1.5, spread: float = 0.05) -> str:
    """Return what kernels cost. exchange: microseconds of a block."""
    return f"""- {{kernel: "j", block_us: 50, spread: {spread}, gain: {gain}}}
- {{kernel: "k", block_us: 20}}
- {{kernel: "nccl*", block_us: {exchange}}}
"""


def policy(*arms: str, worth: str = "0.5%") -> str:
    """Return the policy that tries these arms. arms: names of shipped policies, or files."""
    return f"{REFERENCE}trial: {{arms: [{', '.join(arms)}], worth: {worth}}}\n"


def one_block(folder: Path) -> str:
    """Return the file of an arm, `one`: one block of kernel j on a multiprocessor."""
    rules = 'when: always\ncompute: [{match: {kernel: "j"}, shape: {blocks_per_sm: 1}}]\n'
    (folder / "one.yaml").write_text(f'policy: 1\nname: one\ngpu: ["NVIDIA *"]\n{REFERENCE}{rules}')
    return str(folder / "one.yaml")


class Samples(NamedTuple):
    samples: int
    mean: float
    harmful: bool
    level: int


class Verdict(NamedTuple):
    """The trial of a page."""

    arms: Mapping[str, Samples]
    status: int
    kept: str
    mark: int
    early: tuple[int, int]
    marks: int
    settled: bool
    blocks: Sequence[tuple[int, int, int]]  # arm, marks and microseconds of the latest
    obstacle: int


def verdict(page: Path) -> Verdict:
    _native.header()
    data = page.read_bytes().ljust(_native.ffi.sizeof("struct overlap_page"), b"\0")
    trial: Any = _native.ffi.from_buffer("struct overlap_page *", data).trial
    arms = {}
    for i in range(trial.arms):
        arm = trial.arm[i]
        mean = arm.samples.sum / arm.samples.count if arm.samples.count else 0.0
        arms[_native.text(arm.policy)] = Samples(arm.samples.count, mean, arm.status == 1, arm.level)
    kept = list(arms)[trial.kept] if arms else ""
    first = max(0, trial.blocks - len(trial.block))
    blocks = [trial.block[i % len(trial.block)] for i in range(first, trial.blocks)]
    return Verdict(
        arms,
        trial.status,
        kept,
        trial.mark,
        tuple(trial.early),
        trial.marks,
        trial.settled != 0,
        [(block.arm, block.marks, block.took) for block in blocks],
        trial.obstacle,
    )


class Tried(NamedTuple):
    done: Done
    program: Path
    verdicts: list[Verdict]  # of each process
    pages: Path  # the report's folder

    @property
    def verdict(self) -> Verdict:
        (one,) = self.verdicts
        return one

    @property
    def said(self) -> str:
        """Return what `overlap report` says first."""
        command = [sys.executable, "-m", "pyshim", "report", str(self.pages)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
        return done.stdout.splitlines()[0]


Trials = Callable[..., Tried]


@pytest.fixture
def trials(build: Build, preloaded: Runner, tmp_path: Path) -> Trials:
    """trials(words, policy, costs): the process on a GPU of two multiprocessors. costs: of simgpu, a line each."""
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])
    numbers = iter(range(1000))

    def run(words: str, asked: str, costs: str, env: Mapping[str, str] | None = None, **more: Any) -> Tried:
        number = next(numbers)
        file, pages = tmp_path / f"costs{number}.yaml", tmp_path / f"pages{number}"
        file.write_text(costs)
        pages.mkdir()
        env = {"SIMGPU_MULTIPROCESSORS": "2", "SIMGPU_COSTS": str(file), **(env or {})}
        done = preloaded(words, asked, **{"program": program, "env": env, "report": pages, **more})
        return Tried(done, program, [verdict(page) for page in sorted(pages.glob("*.page"))], pages)

    return run
