"""Count how often a trial keeps the right arm, on the simulated GPU.

Each run is a pair of ranks: real processes with the library preloaded, whose
steps have an interior, a boundary and an exchange. Raising the boundary's
stream changes the time of a step by a known share, which depends on what the
kernels cost. Costs of a run's ranks differ by a few per cent, and so does the
spread of their blocks. A run is right if both ranks keep the arm that is
faster by at least `worth`, or the reference where none is.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import functools
import io
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]

try:
    from pyshim import _native
    from pyshim.launch import plan
    from pyshim.launch.environment import environment
except ModuleNotFoundError as error:
    print(f"trials.py: error: {error.name} is not installed: make setup, then .venv/bin/python", file=sys.stderr)
    sys.exit(2)

END = """examples: docs/data/simulated-trials.csv, 20 minutes of two processors each
  python -m tools.verify.trials --runs 200 --csv
  python -m tools.verify.trials --runs 200 --csv --clock real --jobs 4 --effect equal

columns: effect (change of a step's time, in separate runs under each arm),
runs, right, wrong (an arm was kept that must not be), undecided (no verdict in
so many iterations), apart (ranks that settled differently), communication
launches to the verdict (median, longest), measured change (median, range).

exit status: 0 no run is wrong; 1 some are; 2 the options are wrong, or no make setup"""
FOREIGN = ("OVERLAP_", "SIMGPU", "LD_")
LIMIT = 600  # seconds of a run
KEPT, NOTHING = 1, 2  # enum overlap_trial_status
REFERENCE = "policy: 1\nname: reference\ncritical: off\ncommunication: {priority: inherit}\n"


class Effect(NamedTuple):
    """A program, by what its kernels cost (microseconds of a block), and an arm of its trial."""

    interior: int  # blocks
    exchange: float
    gain: float
    arm: str
    kept: bool


EFFECTS = {
    "-30 %": Effect(64, 400, 1.1, "critical-streams", True),
    "-10 %": Effect(64, 100, 1.5, "critical-streams", True),
    "-3 %": Effect(400, 150, 1.5, "critical-streams", True),
    "-1 %": Effect(400, 60, 1.5, "critical-streams", True),
    "equal": Effect(64, 100, 1.5, "raised-communication", False),
    "+9 %": Effect(64, 50, 8, "critical-streams", False),
}


@dataclass
class Rank:
    status: int  # enum overlap_trial_status
    kept: bool
    marks: int
    change: float  # of the arm, per cent


class World:
    """The program, and environments of its processes."""

    def __init__(self, folder: Path, clock: str) -> None:
        self.folder, self.clock = folder, clock
        self.clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.program = folder / "waiting"
        compiler = shlex.split(os.environ.get("CC", "cc"))
        source = ROOT / "tests" / "programs" / "waiting.c"
        flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", str(source), "-o", str(self.program)]
        subprocess.run([*compiler, *flags, plan.SIMULATED_DRIVER, "-ldl", "-pthread"], check=True)
        self.settings = plan.make(plan.Request(policy="observe", simulate="h100"), self.clean).settings
        self.tables = {arm: self.table(arm) for arm in sorted({effect.arm for effect in EFFECTS.values()})}

    def table(self, arm: str) -> Mapping[str, str]:
        path = self.folder / f"trial-{arm}.yaml"
        path.write_text(f"{REFERENCE}trial: {{arms: {arm}}}\n", encoding="ascii")
        return self.environment(str(path))

    def environment(self, policy: str) -> Mapping[str, str]:
        table = plan.make(plan.Request(policy=policy), self.clean).settings.table
        return environment(self.clean, self.settings._replace(table=table))

    def start(
        self, env: Mapping[str, str], effect: Effect, iterations: int, chance: random.Random | None, folder: Path
    ) -> subprocess.Popen[bytes]:
        """chance: of the costs; None: they are the effect's, and time is virtual."""
        folder.mkdir()
        few = [chance.uniform(0.98, 1.02) for _ in range(3)] if chance else [1.0] * 3
        spread = chance.uniform(0.02, 0.3) if chance else 0.05
        costs = folder / "costs"
        costs.write_text(
            f'- {{kernel: "j", block_us: {50 * few[0]:.3f}, spread: {spread:.3f}, gain: {effect.gain}}}\n'
            f'- {{kernel: "k", block_us: {20 * few[1]:.3f}}}\n'
            f'- {{kernel: "nccl*", block_us: {effect.exchange * few[2]:.3f}}}\n'
        )
        own = {"OVERLAP_REPORT": str(folder), "OVERLAP_QUIET": "1", "LD_PRELOAD": plan.LIBRARY}
        own |= {"SIMGPU_MULTIPROCESSORS": "2", "SIMGPU_COSTS": str(costs)}
        if chance is None:
            own["SIMGPU_TIMELINE"] = str(folder / "timeline")
        elif self.clock == "real":
            own["SIMGPU_CLOCK"] = "real"
        words = f"{iterations} begin j:1:{effect.interior} k:2:8 c:2 r:1:1 w:2:1 r:2:2 w:1:2 end x"
        return subprocess.Popen([self.program, *words.split()], env={**env, **own}, stdin=subprocess.DEVNULL)

    def alone(self, name: str, iterations: int = 300) -> float:
        """Return the change of a step's time by separate runs under the arm and the reference, in per cent."""
        effect = EFFECTS[name]
        times: list[float] = []
        reference = self.folder / "reference.yaml"
        reference.write_text(REFERENCE, encoding="ascii")
        for policy in (str(reference), effect.arm):
            folder = self.folder / f"alone-{list(EFFECTS).index(name)}-{len(times)}"
            self.start(self.environment(policy), effect, iterations, None, folder).wait()
            last = (folder / "timeline").read_text().splitlines()[-1]
            times.append(float(json.loads(last)["end_us"]))
        return 100 * (times[1] / times[0] - 1)

    def pair(self, name: str, seed: int, *, iterations: int) -> list[Rank]:
        chance, effect = random.Random(f"{name} {seed}"), EFFECTS[name]
        started = []
        for rank in ("0", "1"):
            folder = self.folder / f"run-{list(EFFECTS).index(name)}-{seed}-{rank}"
            env = {**self.tables[effect.arm], "RANK": rank, "WORLD_SIZE": "2"}
            started.append((folder, self.start(env, effect, iterations, chance, folder)))
        try:
            for _, process in started:
                if process.wait(LIMIT):
                    raise RuntimeError(f"{name}, seed {seed}: the program ended with {process.returncode}")
        finally:
            for _, process in started:
                process.kill()
                process.wait()
        return [rank_of(next(folder.glob("*.page"))) for folder, _ in started]


def rank_of(page: Path) -> Rank:
    data = page.read_bytes().ljust(_native.ffi.sizeof("struct overlap_page"), b"\0")
    trial: Any = _native.ffi.from_buffer("struct overlap_page *", data).trial
    samples = trial.arm[1].samples
    mean = samples.sum / samples.count if samples.count else 0.0
    return Rank(trial.status, trial.status == KEPT, trial.marks, 100 * 2 * mean / (2 - mean))


@dataclass
class Row:
    effect: str
    alone: float
    runs: int
    right: int
    wrong: int
    undecided: int
    apart: int
    marks: tuple[int, int]
    change: tuple[float, float, float]


def row(name: str, alone: float, pairs: Sequence[Sequence[Rank]]) -> Row:
    kept = EFFECTS[name].kept
    decided = [all(rank.status in (KEPT, NOTHING) for rank in pair) for pair in pairs]
    right = [done and all(rank.kept == kept for rank in pair) for done, pair in zip(decided, pairs)]
    wrong = [any(rank.status in (KEPT, NOTHING) and rank.kept != kept for rank in pair) for pair in pairs]
    ranks = [rank for pair in pairs for rank in pair]
    marks, changes = [rank.marks for rank in ranks], [rank.change for rank in ranks]
    return Row(
        name,
        round(alone, 2),
        len(pairs),
        sum(right),
        sum(wrong),
        len(pairs) - sum(decided),
        sum(len({rank.kept for rank in pair}) > 1 for pair in pairs),
        (round(statistics.median(marks)), max(marks)),
        (round(statistics.median(changes), 2), round(min(changes), 2), round(max(changes), 2)),
    )


COLUMNS = (
    *("clock", "effect", "separate_runs_percent", "runs", "right", "wrong", "undecided", "apart"),
    *("launches_median", "launches_most", "measured_median_percent", "measured_low_percent", "measured_high_percent"),
)


def as_csv(rows: Sequence[Row], clock: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in rows:
        counts = (one.runs, one.right, one.wrong, one.undecided, one.apart)
        writer.writerow([clock, one.effect, one.alone, *counts, *one.marks, *one.change])
    return text.getvalue().rstrip("\n")


def as_text(rows: Sequence[Row]) -> str:
    lines = ["effect  alone     runs right wrong undecided apart  launches (longest)  measured"]
    for one in rows:
        measured = f"{one.change[0]:+.2f} % [{one.change[1]:+.2f}, {one.change[2]:+.2f}]"
        lines.append(
            f"{one.effect:7} {one.alone:+6.2f} % {one.runs:6} {one.right:5} {one.wrong:5} {one.undecided:9}"
            f" {one.apart:5}  {one.marks[0]:6} ({one.marks[1]})".ljust(70)
            + measured
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="trials.py", description=__doc__, epilog=END, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=20, metavar="N", help="pairs of ranks for each effect (default: 20)"
    )
    parser.add_argument("--effect", choices=sorted(EFFECTS), action="append", help="only this one; may be repeated")
    parser.add_argument("--iterations", type=int, default=10000, metavar="N", help="of each rank (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the costs (default: 0)")
    parser.add_argument("--clock", choices=("virtual", "real"), default="virtual", help="of the GPU (default: virtual)")
    parser.add_argument(
        "--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), metavar="N", help="pairs at the same time"
    )
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--json", action="store_true", help="an array of objects on stdout")
    answer.add_argument("--csv", action="store_true", help="a table for other programs on stdout")
    asked = parser.parse_args()
    if not (_native.SHIM.exists() and Path(plan.SIMULATED_DRIVER).exists()):
        parser.exit(2, "trials.py: error: the library was not built: make setup\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        _native.header()
        world = World(Path(folder), asked.clock)
        for name in asked.effect or EFFECTS:
            seeds = range(asked.seed, asked.seed + asked.runs)
            pairs = list(pool.map(functools.partial(world.pair, name, iterations=asked.iterations), seeds))
            rows.append(row(name, world.alone(name), pairs))
    if asked.json:
        print(json.dumps([asdict(one) for one in rows]))
    else:
        print(as_csv(rows, asked.clock) if asked.csv else as_text(rows))
    return 1 if any(one.wrong for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
