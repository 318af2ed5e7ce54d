"""Compares what a driver says of occupancy with the library's own arithmetic, and with what the planner promises.

    python -m tools.gpu.compare_occupancy OCCUPANCY [--gpu NAME] [--samples N] [--plans N]

OCCUPANCY: the program that occupancy.cu makes. --gpu: as the driver or our table calls it (default: the first here).
One JSON object. A promise: launched with the dynamic size that the planner gives, so many blocks are resident, and at
the ends of its windows, and one byte below a window that inflates, more. Under a small carve-out, which lowers the
driver's answer, the planner must leave every launch as it is. Status 1: a difference, or a launch that is not left.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyshim import _native
from tools.gpu import needs

KNOWN = "carveout 25"  # the driver's answer is lower, so the planner counts on none: unplanned()
SHOWN = 40
SEED = 20090
# Blocks of communication: NCCL (threads; 96 registers, static, dynamic bytes; tools/docs/planned.py), small ones.
COMMUNICATION = (
    *((threads, 96, 21568, 82240) for threads in (160, 288, 544, 640)),
    (512, 96, 36800, 82240),
    (512, 64, 0, 16384),
    (256, 40, 1024, 0),
)
Row = dict[str, int]


def known(name: str) -> Any:
    """Return the GPU of our table by its name. Raises SystemExit if there is none."""
    for gpu in _native.gpus():
        if name in (_native.text(gpu.key), _native.text(gpu.name)):
            return gpu
    raise SystemExit(f"{name}: no such GPU in the library's table")


def asked(*words: str, lines: str = "") -> list[str]:
    done = subprocess.run(words, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def rows_of(lines: list[str]) -> Iterator[Row]:
    return ({name: int(value) for name, value in line.items()} for line in csv.DictReader(lines))


def unplanned(gpu: Any, row: Row) -> bool:
    """Whether the planner leaves a launch under a small carve-out as it is, whatever the shape and beside whatever."""
    library, ffi = _native.library(), _native.ffi
    plan = ffi.new("struct overlap_plan *")
    footprint = (row["threads"], row["registers"], row["static"], row["dynamic"])
    most = max(gpu.shared_optin - row["static"], row["dynamic"])
    launch = ffi.new("struct overlap_launch *", (1 << 20, library.OVERLAP_LAUNCH_SMALL_CARVEOUT, most, footprint))
    for shape in ("MAKE_ROOM", "BLOCKS", "PERCENT"):
        for other in COMMUNICATION:
            beside = ffi.new("struct overlap_footprint *", other)
            library.overlap_plan_of(gpu, launch, beside, getattr(library, f"OVERLAP_SHAPE_{shape}"), 50, 0, plan)
            if plan.control != library.OVERLAP_CONTROL_LEAVE or plan.dynamic_shared != row["dynamic"]:
                return False
    return True


def arithmetic(gpu: Any, rows: Iterator[Row]) -> dict[str, Any]:
    library, footprint = _native.library(), _native.ffi.new("struct overlap_footprint *")
    samples: Counter[str] = Counter()
    different: Counter[str] = Counter()
    planned: Counter[str] = Counter()
    shown: list[Row] = []
    registers, answers = set(), Counter()  # type: set[int], Counter[int]
    for row in rows:
        footprint.threads, footprint.registers = row["threads"], row["registers"]
        footprint.static_shared, footprint.dynamic_shared = row["static"], row["dynamic"]
        ours = library.overlap_occupancy_of(gpu, footprint).blocks
        name = f"carveout {row['carveout']}"
        samples[name] += 1
        registers.add(row["registers"])
        answers[row["blocks"]] += 1
        if name == KNOWN and not unplanned(gpu, row):
            planned[name] += 1
        if ours != row["blocks"]:
            different[name] += 1
            if len(shown) < SHOWN:
                shown.append({**row, "ours": ours})
    return {
        "samples": dict(samples),
        "different": dict(different),
        "planned": dict(planned),
        "registers": sorted(registers),
        "blocks": dict(sorted(answers.items())),
        "examples": shown,
    }


class Promise(dict[str, Any]):
    """kernel, threads, dynamic; blocks: then resident, or more: at least so many; what: which promise."""

    def kept(self, answer: int) -> bool:
        return bool(answer >= self["more"] if "more" in self else answer == self["blocks"])


def promises(gpu: Any, kernels: list[Row], plans: int) -> list[Promise]:
    """Of the planner, for launches made at random: under every kind of shape, beside communication of several sizes."""
    library, ffi, draw = _native.library(), _native.ffi, random.Random(SEED)
    plan, found = ffi.new("struct overlap_plan *"), list[Promise]()
    shapes = [("make_room", library.OVERLAP_SHAPE_MAKE_ROOM), ("blocks_per_sm", library.OVERLAP_SHAPE_BLOCKS)]
    shapes.append(("percent", library.OVERLAP_SHAPE_PERCENT))
    for _ in range(plans):
        number = draw.randrange(len(kernels))
        kernel, (name, shape) = kernels[number], draw.choice(shapes)
        threads = 32 * draw.randint(1, kernel["maximum_threads"] // 32)
        dynamic = draw.choice((0, 0, draw.randrange(min(kernel["maximum_dynamic"], 49152) + 1)))
        footprint = (threads, kernel["registers"], kernel["static"], dynamic)
        launch = ffi.new("struct overlap_launch *", (1 << 20, 0, kernel["maximum_dynamic"], footprint))
        beside = ffi.new("struct overlap_footprint *", draw.choice(COMMUNICATION))
        value = {"blocks_per_sm": draw.randint(1, 16), "percent": draw.randint(1, 100)}.get(name, 0)
        library.overlap_plan_of(gpu, launch, beside, shape, value, 0, plan)

        def promise(what: str, bytes_: int, of: int = number, by: int = threads, **said: int) -> None:
            found.append(Promise(what=what, kernel=of, threads=by, dynamic=bytes_, **said))

        if not plan.native_blocks:
            continue
        promise(f"{name}, as launched", dynamic, blocks=plan.native_blocks)
        promise(f"{name}, as planned", plan.dynamic_shared, blocks=plan.blocks)
        for window in plan.windows[0 : plan.window_count]:
            promise("window, least size", window.minimum, blocks=window.blocks)
            promise("window, largest size", window.maximum, blocks=window.blocks)
            if window.inflates and window.minimum > dynamic:
                promise("window, a byte below", window.minimum - 1, more=window.blocks + 1)
    return found


def planner(gpu: Any, program: str, plans: int) -> dict[str, Any]:
    made = promises(gpu, list(rows_of(asked(program, "kernels"))), plans)
    lines = "".join(f"{one['kernel']} {one['threads']} {one['dynamic']}\n" for one in made)
    answers = list(map(int, asked(program, "ask", lines=lines)))
    if len(answers) != len(made):
        raise SystemExit(f"{program}: {len(answers)} answers to {len(made)} questions")
    broken = [{**one, "answer": answer} for one, answer in zip(made, answers) if not one.kept(answer)]
    return {
        "plans": plans,
        "promises": dict(Counter(one["what"] for one in made)),
        "broken": dict(Counter(one["what"] for one in broken)),
        "examples": broken[:SHOWN],
    }


def compare(program: str, name: str | None, samples: int, plans: int) -> dict[str, Any]:
    """Return the object that main() prints."""
    found = name or next((name for name, _ in needs.gpus()), "no GPU")
    gpu = known(found)
    said = arithmetic(gpu, rows_of(asked(program, str(samples))))
    return {"gpu": found, **said, "planner": planner(gpu, program, plans)}


def wrong(said: dict[str, Any]) -> bool:
    return bool(said["planner"]["broken"] or said["planned"] or set(said["different"]) - {KNOWN})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--gpu", metavar="NAME")
    parser.add_argument("--samples", type=int, default=1500, metavar="N", help="of each of 88 kernels")
    parser.add_argument("--plans", type=int, default=20000, metavar="N")
    options = parser.parse_args()
    said = compare(options.program, options.gpu, options.samples, options.plans)
    print(json.dumps(said))
    return 1 if wrong(said) else 0


if __name__ == "__main__":
    sys.exit(main())
