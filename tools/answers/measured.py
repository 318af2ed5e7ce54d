"""What GPUs answered, from tools/gpu/results. Nothing here is simulated or computed by our arithmetic."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

FOLDER = Path("tools/gpu/results")
BARE = "bare"
ITSELF = "bare, against itself"
STEPS_OF_A_ROUND = 8  # two_gpus_cases.STEPS: arms take turns by rounds


@functools.cache
def results(root: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def machine(root: Path, name: str) -> str:
    one = results(root, name)
    return f"{one['gpu']}, driver {one['driver']}, NCCL {one['nccl']}, {one['date']}"


def occupancy(root: Path) -> str:
    """A sentence."""
    found = results(root, "occupancy")
    plain = [name for name in found["samples"] if name not in found["different"]]
    count = sum(found["samples"][name] for name in plain)
    return (
        f"On an H200 its occupancy was the driver's in all of {count:,} samples without or with the largest preferred "
        f"carve-out ([occupancy.json](../{FOLDER}/occupancy.json))."
    )


# ---- Two GPUs, real collectives ----


@dataclass(frozen=True)
class Step:
    """The median step of a case under an arm, against the bare one of the same run."""

    run: int
    case: str  # pairs 2:1
    arm: str
    change: float  # per cent; negative is faster


def steps(root: Path) -> list[Step]:
    """All arms, and the bare steps against themselves: odd rounds against even ones, which is what changes nothing."""
    found, samples = [], results(root, "two-gpus")["samples"]
    bare = {_case(one): one for one in samples if one["arm"] == BARE}
    for one in samples:
        if one["arm"] == BARE:
            found += list(_itself(one))
        elif _case(one) in bare:
            before = bare[_case(one)]["median_step_ms"]
            found.append(Step(one["run"], _name(one), one["arm"], 100 * (one["median_step_ms"] / before - 1)))
    return found


def _itself(one: dict[str, Any]) -> Iterator[Step]:
    all_steps = one["ranks"][0]["steps_ms"]
    rounds = [all_steps[at : at + STEPS_OF_A_ROUND] for at in range(0, len(all_steps), STEPS_OF_A_ROUND)]
    if len(rounds) >= 2:
        odd, even = (statistics.median(chain.from_iterable(rounds[start::2])) for start in (0, 1))
        yield Step(one["run"], _name(one), ITSELF, 100 * (even / odd - 1))


def _case(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["run"], one["kind"], one["ratio"], one["size"]


def _name(one: dict[str, Any]) -> str:
    return f"{one['kind']} {one['ratio']}"


def range_of_steps(root: Path) -> tuple[int, int, float, float]:
    """The fewest and the most steps of a case, and the shortest and the longest bare one, in milliseconds."""
    samples = results(root, "two-gpus")["samples"]
    counts = [len(one["ranks"][0]["steps_ms"]) for one in samples]
    bare = [one["median_step_ms"] for one in samples if one["arm"] == BARE]
    return min(counts), max(counts), min(bare), max(bare)


def arms(root: Path) -> dict[str, str]:
    """What each arm runs, in the words of the file."""
    found: dict[str, str] = results(root, "two-gpus")["arms"]
    return found


# ---- One GPU: a long grid and a block like NCCL's ----


@dataclass(frozen=True)
class Room:
    """A long grid under a policy, medians of the repetitions."""

    arm: str
    low: str  # which long grid
    threads: int  # of a block of communication
    resident: int  # blocks of the grid on a multiprocessor
    alone_us: float  # the grid without communication
    wait_us: float  # from the launch of communication until its last block starts
    beside: float  # of its 32 blocks: shared a multiprocessor with the grid


def room(root: Path) -> list[Room]:
    found = results(root, "room")
    # Of the commits that measured an arm the newest, which set the carve-out as the library does today.
    samples = [
        one
        for one in found["samples"]
        if one["commit"] == found["repository_commit"]
        and not one.get("own_carveout")
        and one["way"] in ("alone", "launched")
    ]
    by: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for one in samples:
        by.setdefault((one["arm"], one["low"], one["communication_threads"]), {})[one["way"]] = one
    return [
        Room(
            *key,
            resident=int(ways["alone"]["low_resident"]),
            alone_us=_median(ways["alone"]["low_us"]),
            wait_us=_median(ways["launched"]["last_us"]),
            beside=_median(ways["launched"]["beside"]),
        )
        for key, ways in by.items()
        if len(ways) == 2
    ]


def _median(value: Any) -> float:
    return float(statistics.median(value) if isinstance(value, list) else value)
