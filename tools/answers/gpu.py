"""What programs of tools/gpu found out about one H200: the block scheduler, room, costs, and checks."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.answers import planned, results, sweep
from tools.answers.table import Table, Value, rounded

GPU, LARGEST = "h200", 100
WAIT = "wait_first_after_launch_us"
SURELY = 0.99  # of the runs
CLOCKS_US = 10  # the clocks of GPU and host differ by no more
# Of dispatch-rule.json, of one run: the last lower start behind the marker, the marker behind the launch call.
WAITING = ("while_waiting.last_start_us", "marker_after_launch_us", "while_waiting.starts_on_its_sm")
RAISING = {
    "equal priority": "not raised",
    "launch priority": "launch attribute",
    "launch priority, legacy stream": "launch attribute, legacy default stream",
    "stream priority set while idle": "stream attribute, set while idle",
    "stream priority set while busy": "stream attribute, set while busy (1 ms of its own work)",
    "graph, captured priority": "captured launch attribute",
    "graph, captured priority, node priorities used": "captured, graph honours node priorities",
}


# ---- The block scheduler ----


def variants(root: Path) -> dict[str, dict[str, list[float]]]:
    """dispatch-rule.json: by variant, the numbers of all repetitions and processes."""
    found: dict[str, dict[str, list[float]]] = {}
    for sample in results.samples(root, "dispatch-rule"):
        into = found.setdefault(sample["variant"], {}) if "variant" in sample else {}
        for key, value in _flat(sample):
            into.setdefault(key, []).extend(value if isinstance(value, list) else [value])
    return found


def _flat(sample: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The program prints some numbers in groups; the kept file joins their names."""
    for key, value in sample.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", one) for inner, one in value.items())
        elif not isinstance(value, str):
            yield key, value


def raised(found: dict[str, list[float]]) -> bool:
    """Did the high kernel start before the last waves of the low grid?"""
    return statistics.median(found["marker_after_launch_us"]) < statistics.median(found["low_left_at_marker_us"]) / 2


@dataclass(frozen=True)
class Waiting:
    """Runs of dispatch-rule.json with raised priority and without clusters."""

    runs: int
    late: int  # a lower block started more than CLOCKS_US after the raised block was ready, while that waited
    own: int  # of these, on the multiprocessor that the raised block then got
    last_us: float  # the last lower start of all runs that are not late


def waiting(root: Path) -> Waiting:
    rows = [
        (start + min(launch, 0), own)  # ready: the marker has run, and the launch call has returned
        for name, found in variants(root).items()
        if raised(found) and "clusters" not in name
        for start, launch, own in zip(*(found[key] for key in WAITING))
    ]
    late = [own for last, own in rows if last > CLOCKS_US]
    return Waiting(
        len(rows),
        len(late),
        sum(own > 0 for own in late),
        max((last for last, _ in rows if last <= CLOCKS_US), default=0),
    )


def rule(root: Path) -> str:
    """hold, drain or backfill."""
    found = waiting(root)
    few = (1 - SURELY) * found.runs
    if found.late <= few:
        return "hold"
    return "drain" if found.own <= few else "backfill"


def scheduler(root: Path) -> Table:
    found = waiting(root)
    on_time = f"{found.runs - found.late:,} of {found.runs:,} runs"
    last = f"{found.last_us:.1f} us until the last lower block started"
    return Table(
        ("test", "rule", "agree", "longest wait"),
        [["`dispatch_rule.cu`, every block", f"**{rule(root)}**", on_time, last]],
        words=4,
    )


def raising(root: Path) -> Table:
    """Waits of the first block from the launch, us, medians."""
    by = variants(root)
    rows = [[words, rounded(statistics.median(by[name][WAIT]), 1)] for name, words in RAISING.items()]
    return Table(("raised_by", "first_block_starts_us"), rows)


# ---- Room: a long grid beside a block like NCCL's (room.cu) ----

COMMUNICATION = (96, 20832, 82240)  # registers, static and dynamic bytes of the block that stands for NCCL's
# Threads, registers, and what bounds the grid.
GRIDS = {
    "arithmetic": (128, 32, "bound by arithmetic"),
    "copy": (128, 32, "copies memory"),
    "hold 128": (128, 16, "blocks take constant time"),
}
AS_LAUNCHED, HALF = "bare", "h100-paper for this GPU"
POLICIES = {
    AS_LAUNCHED: "bare",
    "priority: highest": "priority alone",
    HALF: "half of the blocks, priority",
    "make_room, priority: highest": "make_room, priority",
    "make_room, priority: inherit": "make_room, no priority",
}
SMALL_RING, USUAL_RING = 288, 640  # threads of a block of communication


@dataclass(frozen=True)
class Room:
    """A long grid under a policy; medians of the repetitions."""

    threads: int
    grid: str
    policy: str
    size: int  # dynamic bytes, by the planner
    resident: int
    alone_us: float
    factor: float  # alone_us over that of the bare grid
    wait_us: float  # from the launch of communication until its last block starts
    beside: float  # of its 32 blocks: shared a multiprocessor with the grid


def rooms(root: Path) -> list[Room]:
    """Raises SystemExit if the GPU kept another number of blocks resident than the planner says."""
    found = results.read(root, "room")
    by: dict[tuple[int, str, str], dict[str, dict[str, Any]]] = {}
    for one in found["samples"]:
        current = one["commit"] == found["repository_commit"] and not one.get("own_carveout")
        if current and one["way"] in ("alone", "launched"):
            by.setdefault((one["communication_threads"], one["low"], one["arm"]), {})[one["way"]] = one
    made = []
    for threads in (SMALL_RING, USUAL_RING):
        for grid in GRIDS:
            for policy, (resident, size) in _sizes(grid, threads).items():
                ways = by.get((threads, grid, policy), {})
                if len(ways) < 2:
                    continue
                if size and int(ways["alone"]["low_resident"]) != resident:
                    raise SystemExit(f"answers: room.json: {policy} left another number than {resident} of {grid}")
                bare, alone = (_median(one["alone"]["low_us"]) for one in (by[threads, grid, AS_LAUNCHED], ways))
                waits = (_median(ways["launched"][key]) for key in ("last_us", "beside"))
                made.append(Room(threads, grid, POLICIES[policy], size, resident, alone, alone / bare, *waits))
    return made


def _sizes(grid: str, threads: int) -> dict[str, tuple[int, int]]:
    """Resident blocks and dynamic bytes by policy, by the planner."""
    own, registers, _ = GRIDS[grid]
    kernel = planned.Kernel(grid, own, registers, 0, 0)
    answer = planned.answer(planned.known_gpu(GPU), kernel, planned.Kernel("", threads, *COMMUNICATION))
    half, room = answer.native // 2, answer.rooms[0]
    sizes = [(answer.native, 0)] * 2 + [(half, sweep.size_for_blocks(GPU, kernel, half))]
    return dict(zip(POLICIES, [*sizes, *[(room.blocks, room.minimum)] * 2]))


def _median(value: Any) -> float:
    return float(statistics.median(value) if isinstance(value, list) else value)


def room_costs(root: Path) -> Table:
    """Communication of 288 threads: wait of its last block / time of the grid alone over bare."""
    found = [one for one in rooms(root) if one.threads == SMALL_RING]
    rows: list[list[Value]] = []
    for policy in POLICIES.values():
        own = {one.grid: one for one in found if one.policy == policy}
        rows.append([policy, *(f"{own[grid].wait_us:,.0f} us / {own[grid].factor:.2f}" for grid in GRIDS)])
    return Table(("policy", *(words for *_, words in GRIDS.values())), rows)


def every_room(root: Path) -> Table:
    heads = ("communication_threads", "grid", "policy", "dynamic_bytes", "resident", "alone_us", "alone_over_bare")
    rows: list[list[Value]] = [
        [
            *(one.threads, one.grid, one.policy, one.size, one.resident),
            *(rounded(one.alone_us, 1), rounded(one.factor), rounded(one.wait_us, 1), one.beside),
        ]
        for one in rooms(root)
    ]
    return Table((*heads, "last_block_starts_us", "blocks_beside_of_32"), rows)


# ---- Waits of communication by control ----


def nccl_starts(root: Path) -> Table:
    """NCCL's own kernel behind a long one, medians in us. Several commits: the one in which it was soonest alone."""
    rows: list[list[Value]] = []
    for file in ("nccl-start-matrix", "nccl-start"):
        by: dict[str, dict[str, dict[str, float]]] = {}
        for sample in results.samples(root, file):
            if "samples_us" in sample:
                several = sample["samples_us"] if "case" not in sample else {sample["case"]: sample["samples_us"]}
                of_commit = by.setdefault(_setting(sample), {}).setdefault(sample.get("commit", ""), {})
                of_commit.update({case: statistics.median(found) for case, found in several.items()})
        for setting, commits in by.items():
            cases = min(commits.values(), key=lambda one: one.get("graph, alone", 0))
            rows += [[file, setting, case, rounded(us, 1)] for case, us in cases.items()]
    return Table(("file", "setting", "case", "start_us"), rows)


SHOWN_SETTINGS = {
    "as it is": "as it is",
    "raised by the library": "raised by the library",
    "priority + no clusters": "priority, clusters off",
    "priority + make_room": "priority, make_room",
}
SHOWN_CASES = {
    "graph, behind 8 blocks": "eight blocks a multiprocessor",
    "graph, behind cuBLAS, bf16": "cuBLAS, bf16 (one wave)",
    "graph, behind cuBLAS, fp32": "cuBLAS, fp32",
    "graph, behind Triton, bf16": "Triton, bf16",
}


def nccl(root: Path) -> Table:
    found = {
        (str(setting).partition(" (")[0], case): us
        for file, setting, case, us in nccl_starts(root).rows
        if file == "nccl-start-matrix"
    }
    rows = [
        [words, *(f"{found[setting, case]:,.0f}" for case in SHOWN_CASES)] for setting, words in SHOWN_SETTINGS.items()
    ]
    return Table(("NCCL starts after, us, behind", *SHOWN_CASES.values()), rows)


def _setting(sample: dict[str, Any]) -> str:
    variables = sample.get("environment", sample.get("settings", {}))
    settings = " ".join(f"{name}={value}" for name, value in sorted(variables.items()))
    policy = re.search(r"--policy (\S+)", sample.get("step", ""))
    name = sample.get("setting") or sample.get("arm") or (policy[1] if policy else "bare")
    return f"{name} ({settings})" if settings else str(name)


def controls(root: Path) -> Table:
    """raised.json: until the last of 32 blocks starts, us, and the grid's time over its time alone; medians."""
    last: dict[tuple[str, int], list[float]] = {}
    grid: dict[tuple[str, int], list[float]] = {}
    for one in results.samples(root, "raised"):
        if one.get("mode") == "controls" and one["limit"] == "shared memory":
            arm = f"{one['arm']}, bound by {one['work']}" if one["shaped"] else str(one["arm"])
            grid.setdefault((arm, one["k"]), []).append(one["grid_us"])
            if one["c"] == 32 and "last_us" in one:
                last.setdefault((arm, one["k"]), []).append(one["last_us"])
    rows = [
        [arm, k, rounded(statistics.median(waits), 1), rounded(statistics.median(grid[arm, k]) / _alone(grid, k), 3)]
        for (arm, k), waits in last.items()
    ]
    return Table(("control", "blocks_per_multiprocessor", "last_block_starts_us", "grid_over_alone"), rows)


def _alone(grid: dict[tuple[str, int], list[float]], k: int) -> float:
    return statistics.median(grid["alone", k])


# ---- What the library costs, and what was checked ----


def launch_costs(root: Path) -> Table:
    """cuLaunchKernel: runs of launch-latency.json that have two bare arms, from the quietest."""
    found = results.read(root, "launch-latency")
    by: dict[tuple[str, int], dict[str, list[float]]] = {}
    for part in ("samples", "with_windows"):
        for one in found[part]:
            if one["case"] == "cuLaunchKernel":
                packed = one.get("p10_median_p90_ns")
                medians = [median for _, median, _ in packed] if packed else [one["median_ns"]]
                by.setdefault((part, one["run"]), {}).setdefault(one["arm"], []).extend(medians)
    runs = [{arm: statistics.median(ns) for arm, ns in arms.items()} for arms in by.values()]
    twice = [one for one in runs if {"bare", "bare, again", "h200"} <= one.keys()]
    rows = [(abs(one["bare, again"] - one["bare"]), one["bare"], one["h200"] - one["bare"]) for one in twice]
    shown = [[f"{noise:.0f}", f"{bare:,.0f}", f"{more:+.0f}"] for noise, bare, more in sorted(rows)]
    return Table(("two bare arms differ by, ns", "launch, bare, ns", "default policy adds, ns"), shown, words=0)


def checks(root: Path) -> Table:
    """How often was a promise of the product tested on a GPU, and how often was it broken?"""
    correctness, occupancy = (results.read(root, name) for name in ("correctness", "occupancy"))
    rows, planner = correctness["rows"], correctness["occupancy"]["planner"]
    beside = neighbours(root)
    launches = sum(row["launches"] or 0 for row in rows)
    samples, different = (sum(occupancy[key].get(name, 0) for name in CARVEOUTS) for key in ("samples", "different"))
    promises, broken = (sum(planner[key].values()) for key in ("promises", "broken"))
    made: list[list[Value]] = [
        [
            f"{len({row['program'] for row in rows})} programs give the same results as without the library",
            f"{len(rows)} runs, {launches:,} launches",
            sum(bool(row["faults"]) for row in rows),
        ],
        ["computed occupancy is the driver's", f"{samples:,} samples", different],
        ["sizes leave as many blocks as the planner says", f"{promises:,} answers", broken],
        [
            "blocks share a multiprocessor only if their sum fits",
            f"{len(beside):,} runs",
            sum(one.shared and not one.sum_fits for one in beside),
        ],
    ]
    return Table(("promise", "tested", "broken"), made, words=2)


CARVEOUTS = ("carveout -1", "carveout 100")  # preferred: the driver's choice, the largest


@dataclass(frozen=True)
class Neighbours:
    """One run of neighbours.cu: a block of communication beside a wave of n blocks of computation."""

    fits: bool  # beside all n by the library's arithmetic, which rounds warps up to the four parts of a multiprocessor
    sum_fits: bool  # registers, warps, shared memory and blocks, summed
    carveout: tuple[int, int]  # preferred, per cent, of computation and communication; -1: the driver's choice
    shared: bool


def neighbours(root: Path) -> list[Neighbours]:
    struct = planned.known_gpu(GPU)
    made = []
    for one in (sample for sample in results.samples(root, "neighbours") if "beside" in sample):
        low, high = (
            planned.Kernel("", side["threads"], side["registers"], 0, side["dynamic"])
            for side in (one["low"], one["high"])
        )
        blocks = one["low"]["blocks"]
        _, beside = sweep.fits(struct, low, high, one["low"]["dynamic"])
        first, second = one["carveout"]
        sums = _sum_fits(struct, low, blocks, high)
        made.append(Neighbours(beside >= blocks, sums, (first, second), one["beside"] > 0))
    return made


def _sum_fits(struct: Any, low: planned.Kernel, blocks: int, high: planned.Kernel) -> bool:
    def needs(kernel: planned.Kernel) -> tuple[int, ...]:
        warps = _up(kernel.threads, struct.warp_size) // struct.warp_size
        registers = warps * _up(kernel.registers * struct.warp_size, struct.register_unit)
        memory = _up(kernel.static + (kernel.dynamic or 0) + struct.shared_reserved, struct.shared_unit)
        return warps * struct.warp_size, registers, memory, 1

    has = (struct.threads, struct.registers, struct.shared, struct.blocks)
    return all(blocks * one + other <= most for one, other, most in zip(needs(low), needs(high), has))


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def sharing(root: Path) -> Table:
    """Runs that shared a multiprocessor, of those that fit by the library's arithmetic, by carve-out."""
    found = neighbours(root)
    names = {
        "the driver's": (-1, -1),
        "largest for computation": (LARGEST, -1),
        "largest for both": (LARGEST, LARGEST),
    }
    rows: list[list[Value]] = []
    for words, wanted in names.items():
        own = [one for one in found if one.carveout == wanted]
        rows.append([words, *(_counted(one for one in own if one.fits is fits) for fits in (True, False))])
    return Table(("preferred_carve_out", "shared_where_it_fits", "shared_where_it_does_not"), rows)


def _counted(found: Iterable[Neighbours]) -> str:
    own: Sequence[Neighbours] = list(found)
    return f"{sum(one.shared for one in own)} of {len(own)}"
