"""Runs programs bare, bare again and behind the library, and says what differs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tools.gpu.correctness.programs import AGGRESSIVE, POLICIES, Program
from tools.gpu.processes import LATE, ended

GPU = Path(__file__).resolve().parents[1]
BARE, AGAIN = "bare", "bare again"
COUNTS = ("launches", "shaped", "raised", "refused")


@dataclass
class Outcome:
    """Of one process."""

    status: int
    results: dict[str, Any]
    said: str = ""  # the end of stderr
    counts: dict[str, int] = field(default_factory=dict)  # by the library
    seen: int | None = None  # launches, by a profiler


def results(output: str) -> dict[str, Any]:
    """Return what a program printed, by name: keys of JSON objects, answers by their case, else lines.

    >>> results('{"a": 1}'), results("ab12")
    ({'a': 1}, {'line 1': 'ab12'})
    """
    found: dict[str, Any] = {}
    try:
        whole = [json.loads(output)]
    except ValueError:
        whole = []
    for number, line in enumerate(whole or output.splitlines(), 1):
        try:
            said = line if whole else json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            found[f"line {number}"] = line
        elif "case" in said:
            name = str(said["case"])
            found[f"{name} ({number})" if name in found else name] = said
        else:
            found.update(said)
    return found


def compare(program: Program, outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """Return a row for each policy. `itself`: what differs between two bare runs, and so is not compared."""
    bare, again = outcomes[BARE], outcomes.get(AGAIN, outcomes[BARE])
    itself = sorted(_differing(bare.results, again.results))
    rows = []
    for policy, one in outcomes.items():
        if policy in (BARE, AGAIN):
            continue
        different = sorted(_differing(bare.results, one.results) - set(itself))
        row: dict[str, Any] = {"program": program.name, "policy": policy}
        row["same"] = not different and one.status == bare.status
        row.update(exit_bare=bare.status, exit_shimmed=one.status)
        row.update({name: one.counts.get(name) for name in COUNTS})
        row["seen_by_profiler"] = one.seen
        row.update(compared=len(bare.results) - len(set(itself) & set(bare.results)))
        row["itself"] = itself
        if different:
            row["different"] = {name: [bare.results.get(name), one.results.get(name)] for name in different}
        row["faults"] = list(_faults(program, policy, row, bare, again, one))
        if row["faults"]:
            row["said"] = one.said or bare.said
        rows.append(row)
    return rows


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    nothing = object()
    return {name for name in {*one, *other} if one.get(name, nothing) != other.get(name, nothing)}


def _faults(
    program: Program, policy: str, row: Mapping[str, Any], bare: Outcome, again: Outcome, one: Outcome
) -> Iterator[str]:
    for name, outcome in ((BARE, bare), (AGAIN, again)):
        if outcome.status != program.status:
            yield f"{name}, it ends with {outcome.status} instead of {program.status}"
    if not bare.results:
        yield "bare, it says nothing"
    if one.status != bare.status:
        yield f"it ends with {one.status} instead of {bare.status}"
    if "different" in row:
        yield f"another result: {', '.join(row['different'])}"
    if program.launches and not one.counts.get("launches"):
        yield "the library saw no launch"
    if one.counts.get("refused"):
        yield f"{one.counts['refused']} changed launches were refused"
    launched = one.counts.get("launches", 0)
    if one.seen is not None and one.seen != launched:
        yield f"{launched} launches seen by the library, {one.seen} by the profiler"
    if policy == AGGRESSIVE:
        if one.seen is None and program.counted != "nobody":
            yield f"{program.counted} counted nothing"
        if program.shaped and not one.counts.get("shaped"):
            yield "nothing was shaped, so nothing was tried"


class Bench:
    """Runs programs. bin: built programs; folder: for what they leave; environment: has overlap-run in its PATH."""

    def __init__(self, built: Path, folder: Path, environment: Mapping[str, str], until: float = float("inf")) -> None:
        """until: by time.monotonic(), when no run begins and those that run are ended."""
        self.built, self.folder, self.ports, self.until = built, folder, count(23456), until
        self.not_run: list[str] = []
        self.environment = {
            **{name: value for name, value in environment.items() if not name.startswith("OVERLAP_")},
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "XLA_FLAGS": "--xla_gpu_autotune_level=0",  # which kernel is best is not to be found by a race
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }

    def words(self, program: Program, arm: str, work: Path) -> list[str]:
        places = {"bin": str(self.built), "gpu": str(GPU), "python": sys.executable, "work": str(work)}
        front = [word.format(**places) for word in shlex.split(program.wrap)]
        if arm in POLICIES:
            front += ["overlap-run", "--policy", POLICIES[arm], "--report", str(work / "report"), "--"]
        return front + [word.format(**places) for word in shlex.split(program.command)]

    def run(self, program: Program, arm: str) -> Outcome:
        outcome = self.run_in_time(program, arm)
        assert outcome
        return outcome

    def run_in_time(self, program: Program, arm: str) -> Outcome | None:
        """None: there was no time for it."""
        left = self.until - time.monotonic()
        if left <= 0:
            return None
        work = self.folder / re.sub(r"\W+", "-", f"{program.name} {arm}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        environment = {**self.environment, **dict(program.variables), "MASTER_PORT": str(next(self.ports))}
        counted = work / "launches.json"
        if arm == AGGRESSIVE and program.counted == "cupti":
            environment["CUDA_INJECTION64_PATH"] = str(self.built / "libinjection.so")
            environment["INJECTION_OUTPUT"] = str(counted)
        done = ended(self.words(program, arm, work), environment, min(program.limit, left), work)
        if done.status == LATE and left < program.limit:
            return None
        log = work / "sanitizer"
        said = done.errors + (log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")
        outcome = Outcome(done.status, results(done.output), said[-1500:])
        if arm in POLICIES:
            outcome.counts = self._counts(work / "report")
            outcome.seen = _seen(program, work)
        return outcome

    def _counts(self, report: Path) -> dict[str, int]:
        words = ["overlap", "report", str(report), "--json"]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        try:
            totals = json.loads(done.stdout)["totals"]
        except (ValueError, KeyError):
            return {}
        return {name: int(totals[name]) for name in COUNTS}

    def all(
        self, programs: Sequence[Program], jobs: int, finished: Callable[[list[dict[str, Any]]], None]
    ) -> list[dict[str, Any]]:
        """Rows of all; `finished` gets those of each program. First all bare: what compilers keep is then there.

        self.not_run: what there was no time for."""
        rows: list[dict[str, Any]] = []
        with ThreadPoolExecutor(jobs) as pool:
            bare = {program.name: pool.submit(self.run_in_time, program, BARE) for program in programs}
            other = {
                (program.name, arm): pool.submit(self.run_in_time, program, arm)
                for program in programs
                for arm in (AGAIN, *program.policies)
            }
            for program in programs:
                ran = {BARE: bare[program.name].result()}
                ran.update({arm: other[program.name, arm].result() for arm in (AGAIN, *program.policies)})
                outcomes = {arm: outcome for arm, outcome in ran.items() if outcome}
                whole = BARE in outcomes and AGAIN in outcomes
                lacks = [arm for arm in ran if not (whole and arm in outcomes)]
                if lacks:
                    self.not_run.append(f"{program.name}: {', '.join(lacks)}")
                if whole:
                    rows += compare(program, outcomes)
                finished(rows)
        return rows


def _seen(program: Program, work: Path) -> int | None:
    injected, kernels = work / "launches.json", work / "kernels.json"
    if kernels.exists():
        return int(json.loads(kernels.read_text(encoding="utf-8"))["kernels"])
    if injected.exists():  # a line of each process
        return sum(int(json.loads(line)["launches"]) for line in injected.read_text(encoding="utf-8").splitlines())
    return None
