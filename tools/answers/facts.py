"""What programs of tools/gpu found out about the GPU itself, in numbers: results of questions, not of suites."""

from __future__ import annotations

import functools
import json
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tables

from answers import sweep
from answers.predictions import Neighbours
from answers.suite import FOLDER

LARGEST = 100
AGAIN = "bare, again"  # the bare arm once more: the noise
WAIT = "wait_first_after_launch_us"
# Of queue-order.json: what the second kernel is that a third, which would fit, is launched behind.
LAYOUTS = {"nowhere, many waves": "fits nowhere before a long grid ends", "in part": "is placed in part"}
SURELY = 0.99  # of the runs
CLOCKS_US = 10  # the GPU's and the host's differ by no more
# Of dispatch-rule.json, of one run: the last lower start behind the marker, the marker behind the launch call.
WAITING = ("while_waiting.last_start_us", "marker_after_launch_us", "while_waiting.starts_on_its_sm")
GPU = "h200"
SINGLE, FOURS = "stream priority, 64 blocks like NCCL's", "stream priority, 64 blocks like NCCL's, clusters of 4"


@functools.cache
def results(root: Path, name: str) -> dict[str, Any] | None:
    """None: nobody has measured it."""
    path = root / FOLDER / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def rows(root: Path, name: str) -> list[Any]:
    """The samples of a file, a row for each repetition where repetitions were packed into one; of a file that
    tools/gpu/run wrote the lines of its steps, each with the step's name."""
    found = results(root, name)
    if found is None:
        return []
    if "rows" in found:
        return list(found["rows"])
    if "samples" in found:
        return [row for sample in found["samples"] for row in _unpacked(sample)]
    lines = ((step["step"], line) for step in found["steps"] for line in step["lines"])
    return [{"step": step, **line} for step, line in lines if isinstance(line, dict)]


def _unpacked(sample: Any) -> Iterator[Any]:
    """What is behind "repetitions" was measured: a list with an element for each, or a number that all have."""
    if not isinstance(sample, dict) or "repetitions" not in sample:
        yield sample
        return
    keys = list(sample)
    measured = set(keys[keys.index("repetitions") + 1 :])
    for at in range(sample["repetitions"]):
        row = {
            key: value[at] if key in measured and isinstance(value, list) else value for key, value in sample.items()
        }
        yield {"repetition": at, **{key: value for key, value in row.items() if value is not None}}


def variants(root: Path) -> dict[str, dict[str, list[float]]]:
    """dispatch-rule.json: by variant, the numbers of all repetitions and processes."""
    found: dict[str, dict[str, list[float]]] = {}
    for sample in rows(root, "dispatch-rule"):
        into = found.setdefault(sample["variant"], {}) if "variant" in sample else {}
        for key, value in _flat(sample):
            into.setdefault(key, []).extend(value if isinstance(value, list) else [value])
    return found


def _flat(sample: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """As the program prints them some numbers are in groups; in the file that was kept their names are joined."""
    for key, value in sample.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", one) for inner, one in value.items())
        elif not isinstance(value, str):
            yield key, value


def raised(found: dict[str, list[float]]) -> bool:
    """The high kernel came before the low grid's last waves."""
    return statistics.median(found["marker_after_launch_us"]) < statistics.median(found["low_left_at_marker_us"]) / 2


@dataclass(frozen=True)
class Waiting:
    """Runs with raised priority and single blocks, of dispatch-rule.json."""

    runs: int
    late: int  # a lower block started more than 10 us after the high one was ready, while that waited
    own: int  # and on the multiprocessor that the high one then got
    early: int  # not late, but more than 10 us behind the marker alone, which ran before the launch call returned
    last_us: float  # after it was ready: the last lower start of all the runs that are not late


def waiting(root: Path) -> Waiting:
    rows = [
        (start, start + min(launch, 0), own)  # ready: behind the marker, and behind the launch call
        for name, found in variants(root).items()
        if raised(found) and "clusters" not in name
        for start, launch, own in zip(*(found[key] for key in WAITING))
    ]
    late = [own for _, last, own in rows if last > CLOCKS_US]
    early = sum(last <= CLOCKS_US < start for start, last, _ in rows)
    last = max((last for _, last, _ in rows if last <= CLOCKS_US), default=0.0)
    return Waiting(len(rows), len(late), sum(own > 0 for own in late), early, last)


def rule(root: Path) -> str | None:
    """U1: hold, drain or backfill."""
    found = waiting(root)
    if not found.runs:
        return None
    few = (1 - SURELY) * found.runs
    if found.late <= few:
        return "hold"
    return "drain" if found.own <= few else "backfill"


def median(found: dict[str, list[float]] | None, key: str) -> float | None:
    return statistics.median(found[key]) if found and found.get(key) else None


def middle(values: Iterable[float]) -> float:
    return statistics.median(values)


def machines(root: Path, names: Iterable[str]) -> str:
    """A sentence: on what these files were measured."""
    found = dict.fromkeys(_machine(one) for name in names if (one := results(root, name)) is not None)
    return f"{'; '.join(found)}." if found else "Nothing has been measured."


def _machine(found: dict[str, Any]) -> str:
    """The head of a file: of tools/gpu/machine.py within "machine" or at the top, or the older one."""
    head = found.get("machine", found)
    gpus = [gpu["name"] for gpu in head.get("gpus") or ()] if isinstance(head.get("gpus"), list) else [head["gpu"]]
    count = f"{len(gpus)} x " if len(gpus) > 1 else ""
    words = [f"{count}{gpus[0]}" if gpus else "a GPU", f"driver {head['driver']}"]
    words += [f"NCCL {head['nccl']}"] if head.get("nccl") else []
    return ", ".join([*words, str(head.get("date") or head.get("begun", "")).partition("T")[0]])


def waits(root: Path) -> tuple[float, float] | None:
    """Until the last of 64 blocks like NCCL's starts, us: single blocks, clusters of four."""
    found = variants(root)
    one, four = (median(found.get(name), "wait_last_us") for name in (SINGLE, FOURS))
    return None if one is None or four is None else (one, four)


def neighbours(root: Path) -> list[Neighbours]:
    """neighbours.json: U3."""
    return list(_neighbours(one for one in rows(root, "neighbours") if "beside" in one))


def _neighbours(samples: Iterable[dict[str, Any]]) -> Iterator[Neighbours]:
    struct = tables.known_gpu(GPU)
    for one in samples:
        low, high = (
            tables.Kernel("", side["threads"], side["registers"], 0, side["dynamic"])
            for side in (one["low"], one["high"])
        )
        _, beside = sweep.fits(struct, low, high, one["low"]["dynamic"])
        name = f"{low.threads} threads of {low.registers} registers, {high.dynamic:,} bytes"
        first, second = one["carveout"]
        blocks, shared = one["low"]["blocks"], one["beside"] > 0
        yield Neighbours(name, beside >= blocks, _sum_fits(struct, low, blocks, high), (first, second), shared)


def _sum_fits(struct: Any, low: tables.Kernel, blocks: int, high: tables.Kernel) -> bool:
    """Do so many blocks of low and one of high need no more than a multiprocessor has, wherever in it that is?"""

    def needs(kernel: tables.Kernel) -> tuple[int, ...]:
        warps = _up(kernel.threads, struct.warp_size) // struct.warp_size
        registers = warps * _up(kernel.registers * struct.warp_size, struct.register_unit)
        memory = _up(kernel.static + (kernel.dynamic or 0) + struct.shared_reserved, struct.shared_unit)
        return warps * struct.warp_size, registers, memory, 1

    has = (struct.threads, struct.registers, struct.shared, struct.blocks)
    return all(blocks * one + other <= most for one, other, most in zip(needs(low), needs(high), has))


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


# Preferred carve-outs, per cent, of the kernel that is there first and of the second; -1 is the driver's choice.
CARVEOUTS = {
    "the driver's carve-outs": (-1, -1),
    "the largest for computation": (LARGEST, -1),
    "the largest for both": (LARGEST, LARGEST),
}


@dataclass(frozen=True)
class Apart:
    """Runs of carveout.json, in each of which there is room for the second kernel beside the first."""

    runs: int
    apart: int  # no block of the second shared a multiprocessor with the first


def carveouts(root: Path) -> dict[str, Apart]:
    runs = [run for sample in rows(root, "carveout") for run in _carveout(sample)]
    largest = [run for run in runs if run[0] == LARGEST and run[1] in (-1, LARGEST)]
    chosen = {"any": runs, "largest": largest} if runs else {}
    return {name: Apart(len(some), sum(beside == 0 for *_, beside in some)) for name, some in chosen.items()}


def _carveout(sample: Any) -> list[tuple[int, int, int]]:
    """Preferred carve-outs of both, and how many blocks shared, by repetition; as printed, or as kept."""
    if isinstance(sample, list):
        return [(sample[2], sample[6], beside) for beside in sample[10]]
    return [(sample["low"]["carveout"], sample["high"]["carveout"], sample["beside_low"])] if "low" in sample else []


def queue_order(root: Path) -> str:
    """Half a sentence; empty where nobody has measured it."""
    equal = [one for one in rows(root, "queue-order") if one.get("priorities") == "equal"]
    parts = []
    for layout, words in LAYOUTS.items():
        chosen = [one for one in equal if one["layout"] == layout]
        if chosen:
            parts.append(f"{words}: {sum(one['c_start_after_b_us'] < 0 for one in chosen)} of {len(chosen)}")
    return f"a third kernel that would fit enters before a second that {'; that '.join(parts)}" if parts else ""


def block_ends(root: Path) -> str:
    """How far apart blocks of one multiprocessor end, from histograms."""
    parts = []
    for one in rows(root, "refill"):
        if one.get("repetition", 0) == 0 and "ends_us" in one and one["low"] != "hold":
            parts.append(f"{one['low']} {_histogram(one['ends_us']):g} us")
    return f"blocks of a multiprocessor end so far apart: {', '.join(parts)}" if parts else ""


def _histogram(counts: dict[str, int]) -> float:
    """The median."""
    return statistics.median(float(value) for value, count in counts.items() for _ in range(count))


def cluster_sizes(root: Path) -> str:
    by: dict[int, list[float]] = {}
    for one in rows(root, "raised"):
        if one.get("mode") == "clusters" and one["arm"] == "priority" and "last_us" in one:
            by.setdefault(one["cluster"], []).append(one["last_us"])
    parts = [f"{size}: {statistics.median(waits):.0f} us" for size, waits in sorted(by.items())]
    return f"by size of the clusters {', '.join(parts)}" if parts else ""


def one_wave(root: Path) -> dict[float, dict[str, dict[int, float]]]:
    """quantisation.json: by how long communication stays, us, by way and blocks of it: time over that of the same way
    without communication."""
    times: dict[float, dict[str, dict[int, list[float]]]] = {}
    for one in rows(root, "quantisation"):
        if "way" in one:
            by = times.setdefault(one["communication_us"], {}).setdefault(one["way"], {})
            by.setdefault(one["c"], []).append(one["grid_us"])
    return {
        stays: {
            way: {count: statistics.median(us) / statistics.median(by[0]) for count, us in by.items() if count}
            for way, by in ways.items()
        }
        for stays, ways in times.items()
    }


def launch_costs(root: Path) -> list[dict[str, float]]:
    """Of each run of launch-latency.json by arm the median of processes' medians, ns, of cuLaunchKernel."""
    found = results(root, "launch-latency") or {}
    by: dict[tuple[str, int], dict[str, list[float]]] = {}
    for part in ("samples", "with_windows"):
        for one in found.get(part, ()):
            if one["case"] == "cuLaunchKernel":
                packed = one.get("p10_median_p90_ns")
                medians = [median for _, median, _ in packed] if packed else [one["median_ns"]]
                by.setdefault((part, one["run"]), {}).setdefault(one["arm"], []).extend(medians)
    return [
        {arm: statistics.median(medians) for arm, medians in arms.items()}
        for arms in by.values()
        if {"bare", "h200"} <= arms.keys()
    ]


def graph_costs(root: Path) -> str:
    costs = [one for one in rows(root, "graph-cost") if one.get("kind") == "computation"]
    most = max((one["launches"] for one in costs), default=0)
    by: dict[str, list[float]] = {}
    for one in costs:
        if one["launches"] == most:
            by.setdefault(arm(one), []).extend(one["later_launch_us"])
    parts = [f"{name} {statistics.median(us):.1f}" for name, us in by.items()]
    return f"`cuGraphLaunch` of {most:,} kernels, us: {', '.join(parts)}" if parts else ""


def arm(one: dict[str, Any]) -> str:
    """In the file, or told by the command of the step."""
    policy = re.search(r"--policy (\S+)", one.get("step", ""))
    return str(one.get("arm") or (policy[1] if policy else "bare"))


def two_ranks(root: Path) -> list[str]:
    """two-ranks.json: a phrase for each case."""
    by: dict[str, dict[str, dict[str, list[float]]]] = {}
    for one in rows(root, "two-ranks"):
        if "together" in one:
            into = by.setdefault(one["case"], {}).setdefault(arm(one), {})
            for part in ("computation", "communication", "together"):
                into.setdefault(part, []).extend(one[part])
    return [_two_ranks(case, arms) for case, arms in by.items()]


def _two_ranks(case: str, arms: dict[str, dict[str, list[float]]]) -> str:
    first = next(iter(arms.values()))
    beside, alone = (statistics.median(first[part]) for part in ("computation", "communication"))
    together = ", ".join(f"{name} {statistics.median(times['together']):.2f}" for name, times in arms.items())
    return f"{case}, ms: computation {beside:.2f} and communication {alone:.2f} alone; together: {together}"
