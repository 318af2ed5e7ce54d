"""All runs of a selection, and one row for each program, GPU and policy, under the dispatch rule of an H200."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyshim.demo.arms import change
from pyshim.policy import files
from pyshim.policy.gpus import NVIDIA, known
from tools.bench.suites.arms import Bench, Outcome, built
from tools.bench.suites.programs import Program

LIMIT_PERCENT = 1.0  # what a default policy may lose
RULE = "hold"
GPUS = {
    gpu.key: gpu for gpu in known() if gpu.simulated and gpu.vendor == NVIDIA and gpu.key in files.names({})
}  # the programs are CUDA's


@dataclass(frozen=True)
class Row:
    """Per cent of virtual time against `plain`, the program as written; negative is faster."""

    gpu: str
    policy: str
    program: str
    change: float  # of the steps behind the first ones
    first: float  # of the first steps, in which the library asks the driver about each kernel
    priority: float  # priority of communication alone, without the library
    launches: int = 0
    shaped: int = 0
    raised: int = 0

    @property
    def shape(self) -> str:
        """Of the program: several programs have one."""
        return self.program.partition("/")[0]

    @property
    def default(self) -> bool:
        """Whether the policy is the default of this GPU."""
        return self.policy == self.gpu


Runs = dict[str, "Future[Outcome]"]


def policies_of(key: str) -> tuple[str, ...]:
    """Return the default policy of a GPU and its variants."""
    return (key, *(name for name in sorted(files.names({})) if name.startswith(f"{key}-")))


def measured(gpus: Iterable[str], programs: Sequence[Program], policies: Sequence[str] = ()) -> list[Row]:
    """Run all in a folder of their own. policies: of each GPU, instead of its own.

    Raises OverlapError if a run fails, or nothing is built."""
    built()
    with tempfile.TemporaryDirectory(prefix="overlap-suite-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        bench = Bench(Path(folder), os.environ)
        started = []
        for key in gpus:
            bench.prepare(GPUS[key])
            for policy in policies or policies_of(key):  # not side by side: the first mistake is the one that is said
                bench.settings(policy, GPUS[key], RULE)
            started += [
                (key, program.name, _start(pool, bench, key, program, policies or policies_of(key)))
                for program in programs
            ]
        try:
            return [row for key, program, runs in started for row in _rows(key, program, runs)]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _start(pool: ThreadPoolExecutor, bench: Bench, key: str, program: Program, policies: Sequence[str]) -> Runs:
    arms = {arm: pool.submit(bench.bare, program, GPUS[key], RULE, arm) for arm in ("plain", "priority")}
    return {**arms, **{policy: pool.submit(bench.under, policy, program, GPUS[key], RULE) for policy in policies}}


def _rows(gpu: str, program: str, runs: Runs) -> Iterable[Row]:
    plain = runs.pop("plain").result()
    priority = round(change(plain.steady_ms, runs.pop("priority").result().steady_ms), 3)
    for policy, future in runs.items():
        found = future.result()
        steady, first = change(plain.steady_ms, found.steady_ms), change(plain.first_ms, found.first_ms)
        counted = (found.launches, found.shaped, found.raised)
        yield Row(gpu, policy, program, round(steady, 3), round(first, 3), priority, *counted)
