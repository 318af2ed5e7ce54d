"""What libraries.py runs: which processes, the arms that each serves, which cells, in which order; no GPU needed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.gpu.overlap.arms import shape
from tools.gpu.overlap.computations import ON_FEWER_SMS

POLICIES = Path(__file__).resolve().parent / "policies"
PRIMARY = ("cublas-4096", "cublas-8192", "llm-up", "simt", "triton", "attention", "norm-swiglu", "elementwise")
FURTHER = ("llm-qkv", "adam")
KINDS = (*PRIMARY, *FURTHER, "llama")
REPEATED = ("simt", "triton", "llm-up", "elementwise", "attention", "norm-swiglu", "cublas-4096", "cublas-8192")
# Numbers of blocks below what sits on a multiprocessor by itself: 5, 2 and 12 (`resident_blocks` in the results).
SHAPED = {"triton": (1, 2, 4), "attention": (1,), "elementwise": (1, 2, 4)}
SPREAD = ("cublas-4096", "triton")  # whose ratios go further
# Blocks of NCCL's kernel as it is: results/nccl-start.json (SendRecv), results/two-gpus.json (all-reduce).
COMMUNICATION = {1: ("SendRecv", 64), 2: ("all-reduce", 24)}
MIB = 1 << 20
TRIED = (64 * MIB, 512 * MIB)  # sizes from which the time of others is reckoned
LARGEST = 3 << 30


@dataclasses.dataclass(frozen=True)
class Cell:
    kind: str
    pattern: str
    ratio: float
    primary: bool = False

    def name(self, communication: str) -> str:
        beside = {"one": "once", "loop": "eight, each beside the next", "pairs": "eight pairs"}
        return f"{self.kind} + {communication} 1:{1 / self.ratio:g}, {beside.get(self.pattern, self.pattern)}"


@dataclasses.dataclass(frozen=True)
class Process:
    """One process (a rank on each GPU) and its arms: what the suite calls them -> how the rank runs them.

    policy: behind overlap-run with this one (name or file). kinds: cells of these only; gpus: with so many only.
    """

    name: str
    arms: Mapping[str, str]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    policy: str = ""
    kinds: tuple[str, ...] = KINDS
    gpus: tuple[int, ...] = (1, 2)

    def ways(self, cell: Cell) -> dict[str, str]:
        """Those of its arms that the cell can have. A copy to another GPU cannot be captured."""
        able = {"copy-engine": cell.pattern != "graph", "sm-target": cell.kind in ON_FEWER_SMS}
        return {arm: way for arm, way in self.arms.items() if cell.kind in self.kinds and able.get(way, True)}


def same(*arms: str) -> dict[str, str]:
    return {arm: arm for arm in arms}


def as_it_is(name: str, **environment: str) -> Process:
    """A process of its own, for what a process cannot change once it runs."""
    return Process(name, {name: "plain"}, environment)


def behind(policy: str, arm: str = "", kinds: tuple[str, ...] = KINDS) -> Process:
    """policy: shipped, or a file of POLICIES."""
    arm, file = arm or f"policy:{policy}", POLICIES / f"{policy}.yaml"
    return Process(arm, {arm: "plain"}, {}, str(file) if file.exists() else policy, kinds)


MAIN = Process(
    "main",
    same("computation", "communication", "sequential", "plain", "priority", "order", "order+priority")
    | same("sm-target", "copy-engine"),
)
# NCCL_CGA_CLUSTER_SIZE=0: no clusters at all. NCCL_NTHREADS counts for rings only, not for SendRecv.
RING = {"NCCL_ALGO": "Ring", "NCCL_NTHREADS": "256", "NCCL_LL128_NTHREADS": "256"}
PROCESSES = (
    MAIN,
    as_it_is("connections-1", CUDA_DEVICE_MAX_CONNECTIONS="1"),
    Process("cluster-1", {"cluster-1": "plain", "cluster-1+priority": "priority"}, {"NCCL_CGA_CLUSTER_SIZE": "0"}),
    *(as_it_is(f"ctas-{n}", NCCL_MIN_CTAS=str(n), NCCL_MAX_CTAS=str(n)) for n in (8, 16, 32)),
    Process("threads-288", {"threads-288": "plain", "threads-288+priority": "priority"}, RING, gpus=(2,)),
    behind("observe"),
    # One for each kind: what the rule judges in one program must not matter in another.
    *(dataclasses.replace(behind("h200"), name=f"policy:h200, {kind}", kinds=(kind,)) for kind in KINDS),
    behind("h200-paper"),
    behind("make-room"),
    *(
        behind(f"blocks-{k}", shape(k, priority=True), tuple(kind for kind, tried in SHAPED.items() if k in tried))
        for k in (1, 2, 4)
    ),
)


def cells() -> list[Cell]:
    """Return the cells, the most important first because time may run out, those of the same matrices together."""
    made = [Cell(kind, "one", ratio, True) for kind in PRIMARY for ratio in (0.25, 0.5, 1.0)]
    made += [Cell(kind, pattern, 0.5) for kind in REPEATED for pattern in ("loop", "pairs")]
    made += [Cell("llama", pattern, 0.5) for pattern in ("step", "graph")]
    made += [Cell(kind, "one", 0.5) for kind in FURTHER]
    made += [Cell(kind, "one", ratio) for kind in SPREAD for ratio in (0.1, 2.0)]
    return made


def chosen(only: Sequence[str]) -> list[Cell]:
    """only: kinds, patterns, `primary`, or several with commas that must all hold; a cell that fits any of them."""
    return [cell for cell in cells() if not only or any(fits(cell, words.split(",")) for words in only)]


def fits(cell: Cell, words: Sequence[str]) -> bool:
    return all(word in (cell.kind, cell.pattern) or (word == "primary" and cell.primary) for word in words)


def words_for_only() -> set[str]:
    return {"primary", *(cell.kind for cell in cells()), *(cell.pattern for cell in cells())}


def processes(gpus: int, wanted: Sequence[Cell], with_policies: bool) -> list[Process]:
    kinds = {cell.kind for cell in wanted}
    return [
        process
        for process in PROCESSES
        if gpus in process.gpus and kinds & set(process.kinds) and (with_policies or not process.policy)
    ]


def blocks(takers: Mapping[str, Sequence[str]], rounds: int, seed: str) -> Iterator[list[tuple[str, list[str]]]]:
    """For each round: the processes in an order of its own, each with its ways in an order of its own."""
    dice = random.Random(seed)
    for _ in range(rounds):
        order = [(name, dice.sample(list(ways), len(ways))) for name, ways in takers.items()]
        dice.shuffle(order)
        yield order


def size_for(wanted_ms: float, tried: Sequence[int], took_ms: Sequence[float]) -> int:
    """Bytes whose transfer takes about wanted_ms, on the line through two sizes; whole MiB, 1 MiB to LARGEST."""
    slope = (took_ms[1] - took_ms[0]) / (tried[1] - tried[0])
    if slope <= 0:
        return tried[0]
    count = tried[0] + (wanted_ms - took_ms[0]) / slope
    return max(MIB, min(LARGEST, round(count / MIB) * MIB))


def columns(kept: Mapping[str, Sequence[Mapping[str, float] | None]]) -> dict[str, dict[str, Any]]:
    """Return the samples of each arm, by key. Samples of arms pair by index, so an arm that lacks one is left out."""
    made: dict[str, dict[str, Any]] = {}
    for arm, samples in kept.items():
        rows = [sample for sample in samples if sample is not None]
        if rows and len(rows) == len(samples):
            made[arm] = {key: [row[key] for row in rows] for key in rows[0]}
    return made


def differences(digests: Mapping[str, Sequence[str]]) -> int | None:
    """Arms whose bits are not those of `plain`; None: plain itself does not always compute the same.

    Left out: arms that compute something else by intent (the parts alone, a copy, another kernel of cuBLASLt).
    """
    bare = set(digests.get("plain", ()))
    if len(bare) != 1:
        return None
    other = ("computation", "communication", "copy-engine", "sm-target")
    return sum(set(them) != bare for arm, them in digests.items() if arm not in other)
