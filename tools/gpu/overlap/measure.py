"""Cells, curves and tables of the stand-in suite, measured in interleaved blocks of random order."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tools.gpu import machine
from tools.gpu.overlap.cells import (
    BARE,
    COPY,
    KINDS,
    MULTIPROCESSORS,
    PRIMARY,
    STAND_INS,
    VARIANTS,
    Cell,
    Turn,
    copier,
    described,
    turns,
)
from tools.gpu.overlap.servers import Servers, overlap

CURVES = ("tensor128", "elementwise", "tiled")
STEP, SIMULATED_STEP = 2048, 8192  # bytes between two points of a curve
RESIDENT = range(0, 36, 4)  # blocks of communication that the persistent kernel meets
HOLDING_RATE = 10000  # bytes in a microsecond: such communication holds its places and takes next to no bandwidth
NAMES = {"ms": "ms", "computation_ms": "computation_ms", "communication_ms": "communication_ms"}
NAMES.update({"first_us": "wait_us", "last_us": "last_wait_us"})


def rounded(value: float) -> float:
    return float(f"{value:.5g}")


def median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def gpu_state() -> dict[str, str]:
    """Clocks, power and temperature, right behind a cell. Nothing is set."""
    fields = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "clocks_event_reasons.active")
    found = machine.said("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "--id=0")
    return dict(zip(fields, found[0].split(", "))) if found else {}


class Suite:
    """One run: of a real GPU, or of the simulated one under one rule."""

    def __init__(self, servers: Servers, rounds: int, warm: int, seed: int, limit: float) -> None:
        self.servers, self.rounds, self.warm = servers, rounds, warm
        self.random = random.Random(seed)
        self.end = time.monotonic() + limit
        self.executed = servers.simulated is None
        self.kernels: dict[str, dict[str, Any]] = {}
        self.alone_ms: dict[str, float] = {}
        self.calibrated: dict[tuple[str, str, float], int] = {}

    def late(self, what: str) -> bool:
        if time.monotonic() > self.end:
            print(f"standins: no time left for {what}", file=sys.stderr)
            return True
        return False

    # ---- what is launched ----

    def describe(self, kinds: Sequence[str]) -> dict[str, Any]:
        """Rows of `kernels`; alone times of the kinds are known afterwards."""
        for kernel in (*kinds, COPY):
            self.kernels[kernel] = self.servers.at(BARE, kernel, {"communication": 0}).ask(f"describe {kernel}")
        for kind in kinds:
            words = {"communication": 0, "warm": 3}
            times = [self.servers.sample(BARE, kind, words)["ms"] for _ in range(5)]
            self.alone_ms[kind] = median(times)
        rows = {kind: described(self.kernels[kind], "computation", KINDS[kind]) for kind in kinds}
        copy = self.kernels[COPY]
        return {**rows, **{name: described(copy, "communication", s.what) for name, s in STAND_INS.items()}}

    def sizes(self, kind: str) -> dict[int, int]:
        return {int(blocks): dynamic for blocks, dynamic in self.kernels[kind]["sizes"].items()}

    def bytes_for(self, kind: str, communication: str, ratio: float) -> int:
        """Return the bytes to copy so that communication alone takes `ratio` of the kernel's time."""
        key = (kind, communication, ratio)
        if key not in self.calibrated:
            target, bytes_ = ratio * self.alone_ms[kind], 1 << 24
            for _ in range(3):
                words = {"computation": 0, "bytes": bytes_, **STAND_INS[communication].words}
                took = [self.servers.sample(BARE, kind, words)["communication_ms"] for _ in range(3)]
                bytes_ = max(1 << 20, round(bytes_ * target / median(took) / 4096) * 4096)
            self.calibrated[key] = bytes_
        return self.calibrated[key]

    # ---- cells ----

    def turns(self, cell: Cell) -> dict[str, Turn]:
        kind = cell.computation
        bytes_ = self.bytes_for(kind, cell.communication, cell.ratio)
        sizes = self.sizes(kind)
        if not self.executed:  # each takes seconds there, and what is between them is between them
            sizes = {k: size for k, size in sizes.items() if k in (1, 2, (len(sizes) + 1) // 2, len(sizes))}
        return turns(cell, sizes, bytes_, self.alone_ms[kind] * 1e3, self.executed)

    def cell(self, cell: Cell, only: Sequence[str]) -> dict[str, Any]:
        """Measure a row of `cells`. only: arms; without any, all of the cell."""
        rounds = self.rounds if cell.primary else max(2, self.rounds // 3)
        chosen = {arm: turn for arm, turn in self.turns(cell).items() if not only or arm in only}
        arms: dict[str, dict[str, Any]] = {arm: dict(turn.about) for arm, turn in chosen.items()}
        for turn in chosen.values():
            self.servers.at(turn.process, cell.computation, turn.words)  # they start side by side
        for turn in chosen.values():
            for _ in range(self.warm):
                self.servers.sample(turn.process, cell.computation, {**turn.words, "warm": 0})
        for _ in range(rounds):
            order = list(chosen)
            self.random.shuffle(order)
            for arm in order:
                answer = self.servers.sample(chosen[arm].process, cell.computation, chosen[arm].words)
                for key, value in answer.items():
                    arms[arm].setdefault(NAMES[key], []).append(rounded(value))
        self.servers.end(only_policies=self.executed)
        return {
            "cell": cell.name,
            "computation": cell.computation,
            "communication": cell.communication,
            "pattern": cell.pattern,
            "ratio": cell.ratio,
            "primary": cell.primary,
            "bytes": self.bytes_for(cell.computation, cell.communication, cell.ratio),
            **({"state": gpu_state()} if self.executed else {}),
            "arms": arms,
        }

    # ---- curves and tables ----

    def interleaved(self, kind: str, points: Sequence[Mapping[str, int]], rounds: int) -> list[list[dict[str, Any]]]:
        """Answers by point, each asked `rounds` times."""
        found: list[list[dict[str, Any]]] = [[] for _ in points]
        for _ in range(rounds):
            for at in self.random.sample(range(len(points)), len(points)):
                found[at].append(self.servers.sample(BARE, kind, points[at]))
        return found

    def curve(self, kind: str) -> dict[str, Any]:
        """Alone, and beside communication of half its time with priority, over the whole window of sizes."""
        about = self.kernels[kind]
        dynamics = list(range(about["dynamic"], about["most_dynamic"] + 1, STEP if self.executed else SIMULATED_STEP))
        shaped = [{"dynamic": dynamic, "carveout": 100} for dynamic in dynamics]
        words = {"bytes": self.bytes_for(kind, PRIMARY, 0.5), **STAND_INS[PRIMARY].words, "priority": 1}
        rounds = max(2, self.rounds // 10)
        answers = self.interleaved(
            kind, [{**point, "communication": 0} for point in shaped] + [{**words, **point} for point in shaped], rounds
        )
        points = []
        for dynamic, alone, together in zip(dynamics, answers, answers[len(dynamics) :]):
            points.append(
                {
                    "dynamic": dynamic,
                    "resident": self.resident(kind, dynamic),
                    "alone_ms": [rounded(one["ms"]) for one in alone],
                    "together_ms": [rounded(one["ms"]) for one in together],
                    "communication_ms": [rounded(one["communication_ms"]) for one in together],
                    "wait_us": [rounded(one["first_us"]) for one in together if "first_us" in one],
                }
            )
        return {"kernel": kind, "communication": PRIMARY, "points": points, "planner": self.planner(kind)}

    def resident(self, kind: str, dynamic: int) -> int:
        fewer = [blocks for blocks, least in self.sizes(kind).items() if least <= dynamic]
        return min(fewer, default=self.kernels[kind]["resident_blocks"])

    def planner(self, kind: str) -> dict[str, Any]:
        """Return what `overlap explain` would do with the kernel beside this communication."""
        words = ["explain", "--gpu", "h200", "--json", "--blocks", str(self.kernels[kind]["blocks"])]
        for prefix, row in (("--", self.kernels[kind]), ("--comm-", self.kernels[COPY])):
            words += [f"{prefix}threads", str(row["threads"]), f"{prefix}registers", str(row["registers"])]
            words += [f"{prefix}static-smem", str(row["static"]), f"{prefix}dynamic-smem", str(row["dynamic"])]
        answer = overlap(*words, environment=os.environ)
        found = {key: answer[key] for key in ("control", "reason")}
        return {**found, "dynamic": answer["dynamic_shared_memory"]}

    def alone(self, kind: str) -> list[dict[str, Any]]:
        """T(k): alone, for every number of resident blocks, carve-out of the driver's choice and largest."""
        sizes = {self.kernels[kind]["resident_blocks"]: self.kernels[kind]["dynamic"], **self.sizes(kind)}
        made = [(k, dynamic, carveout) for k, dynamic in sizes.items() for carveout in (-1, 100)]
        points = [{"communication": 0, "dynamic": dynamic, "carveout": carveout} for _, dynamic, carveout in made]
        answers = self.interleaved(kind, points, max(2, self.rounds // 6))
        return [
            {
                "resident": k,
                "dynamic": dynamic,
                "carveout": "default" if carveout < 0 else "max",
                "ms": [rounded(one["ms"]) for one in answer],
            }
            for (k, dynamic, carveout), answer in zip(made, answers)
        ]

    def collectives(self, kind: str) -> list[dict[str, Any]]:
        """Communication alone, by stand-in, variant and two sizes: what a simulated run derives its costs from."""
        made, points = [], []
        for communication, stand_in in STAND_INS.items():
            for variant, words in {**VARIANTS, copier(communication): {"engine": 1}}.items():
                for ratio in (0.25, 1.0):
                    bytes_ = self.bytes_for(kind, communication, ratio)
                    made.append({"communication": communication, "variant": variant, "bytes": bytes_})
                    points.append({"computation": 0, "bytes": bytes_, **stand_in.words, **words})
        answers = self.interleaved(kind, points, max(2, self.rounds // 6))
        return [
            {**row, "ms": [rounded(one["communication_ms"]) for one in answer]} for row, answer in zip(made, answers)
        ]

    def quantisation(self, target: bool) -> list[dict[str, Any]]:
        """The persistent kernel beside c blocks of communication that are there before it and outlast it. target: its
        grid leaves them as many multiprocessors."""
        kind, rounds = "persistent", max(2, self.rounds // 3)
        bytes_ = round(3 * self.alone_ms[kind] * 1e3 * HOLDING_RATE / 2 / 4096) * 4096
        points: list[dict[str, int]] = []
        for blocks in RESIDENT:
            words = {
                "bytes": bytes_,
                "rate": HOLDING_RATE,
                "blocks": blocks,
                "first": 1,
                "offset_us": 50,
                "priority": 1,
            }
            words = words if blocks else {"communication": 0}
            points.append({**words, "grid": MULTIPROCESSORS - blocks} if target else words)
        answers = self.interleaved(kind, points, rounds)
        return [
            {
                "blocks": blocks,
                "sm_target": target,
                "computation_ms": [rounded(one["computation_ms"]) for one in answer],
            }
            for blocks, answer in zip(RESIDENT, answers)
        ]
