"""Residency, decision and simulated time of a kernel over all its dynamic sizes."""

from __future__ import annotations

from pathlib import Path

from pyshim.enums import DISPATCH_RULES
from tools.answers import planned, sizes, sweep
from tools.answers.sweep import Pair, Range
from tools.answers.table import Table, Value, rounded

PAIRS = {
    "h100-gemm": Pair("h100", "gemm", "one-long-kernel/gemm", "all_reduce_200", small=True),
    "h100-elementwise": Pair("h100", "elementwise", "memory-bound/elementwise", "all_reduce_100", small=False),
    "a100-tiled": Pair("a100", "tiled", "one-long-kernel/tiled", "all_reduce_200", small=True),
    "a40-tiled": Pair("a40", "tiled", "one-long-kernel/tiled", "all_reduce_200", small=False),
}
# The suite's programs are CUDA's: on AMD the arithmetic only.
MI250X, MI250X_KERNEL = "mi250x", "GEMM 64x64x32"


def table(_: Path) -> Table:
    """A row for each range of sizes in which nothing changes; simulated per cents of the program as written."""
    ranges = {name: sweep.ranges(pair.gpu, *pair.blocks()) for name, pair in PAIRS.items()}
    times = sweep.simulated(PAIRS, ranges)
    rows: list[list[Value]] = []
    for name, pair in PAIRS.items():
        answer = planned.answer(planned.known_gpu(pair.gpu), *pair.blocks())
        for range_, own in zip(ranges[name], times[name]):
            changes = [rounded(own.alone, 1), *(rounded(value, 1) for value in own.beside)]
            rows.append([name, pair.program, *_line(range_, answer), *changes])
    gpu = sizes.Gpu(sweep.gpu(MI250X))
    kernel, block = next(one for one in gpu.kernels if one.name == MI250X_KERNEL), gpu.launches[0].small
    answer = planned.answer(gpu.struct, kernel, block)
    for range_ in sweep.ranges(MI250X, kernel, block):
        rows.append([f"{MI250X}-gemm", None, *_line(range_, answer), *[None] * (1 + len(DISPATCH_RULES))])
    heads = ("pair", "program", "least_bytes", "most_bytes", "resident", "beside", "must_end_first", "control_takes_it")
    return Table((*heads, "simulated_alone_percent", *(f"simulated_{rule}_percent" for rule in DISPATCH_RULES)), rows)


def _line(range_: Range, answer: planned.Answer) -> list[Value]:
    taken = any(one.inflates and one.minimum == range_.minimum for one in answer.rooms[:1])
    beside = max(0, range_.beside)
    return [range_.minimum, range_.maximum, range_.resident, beside, range_.first, "make_room" if taken else ""]
