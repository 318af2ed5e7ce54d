"""docs/sensitivity.md: residency, decision and time against size: computed, simulated and measured, kept apart."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import tables

from answers import grids, measured, pictures, sizes, sweep
from answers.markdown import bullets, holds, listed, page, paragraph, percent, table
from answers.rows import RULES
from answers.sweep import Pair, Range, Times

PICTURES = Path("docs/pictures")
PAIRS = {
    "h100-gemm": Pair("h100", "gemm", "one-long-kernel/gemm", "all_reduce_200", small=True),
    "h100-elementwise": Pair("h100", "elementwise", "memory-bound/elementwise", "all_reduce_100", small=False),
    "a100-tiled": Pair("a100", "tiled", "one-long-kernel/tiled", "all_reduce_200", small=True),
    "a40-tiled": Pair("a40", "tiled", "one-long-kernel/tiled", "all_reduce_200", small=False),
}
TITLES = {
    "h100-gemm": "H100: a GEMM of two blocks, beside a ring of NCCL 2.28 made small",
    "h100-elementwise": "H100: an elementwise kernel, beside NCCL 2.28 as shipped",
    "a100-tiled": "A100: a tiled matrix product, beside a ring of NCCL 2.28 made small",
    "a40-tiled": "A40: the same product, beside NCCL 2.28 as shipped over PCIe",
}
# Of AMD nothing of the suite runs, so there is arithmetic only.
MI250X, MI250X_KERNEL = "mi250x", "GEMM 64x64x32"


@functools.cache
def _found() -> tuple[dict[str, list[Range]], dict[str, list[Times]]]:
    ranges = {name: sweep.ranges(pair.gpu, *pair.blocks()) for name, pair in PAIRS.items()}
    return ranges, sweep.simulated(PAIRS, ranges)


# ---- Computed and simulated: one pair ----


def _mark(answer: tables.Answer, range_: Range) -> str:
    for found, control in ((answer.rooms[:1], "make_room"), (answer.entries[:1], "quick_entry")):
        if any(one.inflates and one.minimum == range_.minimum for one in found):
            return f" `{control}`"
    return ""


def _line(range_: Range, mark: str) -> tuple[str, str, str, str]:
    held = {0: "**0**", range_.resident: "all"}.get(range_.first, str(range_.first))
    return f"{range_.minimum:,} to {range_.maximum:,}{mark}", str(range_.resident), str(max(0, range_.beside)), held


COMPUTED = ("dynamic bytes", "resident", "beside", "end first")


def _pair(name: str, ranges: Sequence[Range], times: Sequence[Times]) -> list[str]:
    pair = PAIRS[name]
    kernel, block = pair.blocks()
    answer = tables.answer(tables.known_gpu(pair.gpu), kernel, block)
    lines = [
        (*_line(range_, _mark(answer, range_)), percent(own.alone), *map(percent, own.beside))
        for range_, own in zip(ranges, times)
    ]
    what = (
        f"Kernel: {_block(kernel)}. Communication: {_block(block)}. Program: `{pair.program}` of the suite; alone: "
        f"{sweep.ALONE_WAVES} waves of the kernel."
    )
    picture = f"pictures/sensitivity-{name}.svg"
    heads = (*COMPUTED, "sim. alone", *(f"sim. {rule}" for rule in RULES))
    return [f"### {TITLES[name]}", paragraph(what), f"![{TITLES[name]}]({picture})", table(heads, lines)]


def _block(kernel: tables.Kernel) -> str:
    return (
        f"{kernel.threads} threads of {kernel.registers} registers, {kernel.static:,} bytes static and "
        f"{kernel.dynamic or 0:,} dynamic"
    )


def _amd() -> tuple[str, tables.Kernel, tables.Kernel, list[Range]]:
    gpu = sizes.Gpu(sweep.gpu(MI250X))
    kernel = next(one for one in gpu.kernels if one.name == MI250X_KERNEL)
    block = gpu.launches[0].small
    return f"{gpu.launches[0].path}, {block.name}", kernel, block, sweep.ranges(MI250X, kernel, block)


def _amd_part() -> list[str]:
    way, kernel, block, ranges = _amd()
    answer = tables.answer(tables.known_gpu(MI250X), kernel, block)
    title = f"MI250X: {kernel.name} of rocBLAS, beside RCCL 7.2 made small"
    what = f"Kernel: {_block(kernel)}. Communication: {_block(block)} ({way}). Computed only: the suite's programs "
    "are CUDA's."
    return [
        f"### {title}",
        paragraph(what),
        f"![{title}](pictures/sensitivity-{MI250X}-gemm.svg)",
        table(COMPUTED, [_line(range_, _mark(answer, range_)) for range_ in ranges]),
    ]


# ---- Measured ----


def _measured_table(root: Path, threads: int) -> str:
    lines = []
    for row in grids.measured_grids(root, threads):
        one = row.room
        times = (f"{one.alone_us:,.0f}", f"{row.factor:.2f}", f"{one.wait_us:,.0f}")
        lines.append(
            (one.low, grids.ARMS[row.arm], f"{row.size:,}", str(row.resident), *times, f"{one.beside:g} of 32")
        )
    heads = ("grid", "policy", "bytes", "resident", "alone, us", "over bare", "last starts, us", "beside")
    return table(heads, lines, left=2)


def _measured(root: Path) -> list[str]:
    words = "; ".join(f"`{grid}`: {threads} threads, {what}" for grid, (threads, _, what) in grids.GRIDS.items())
    return [
        paragraph(
            f"{measured.machine(root, 'room')}; medians of 20. A grid of twelve waves, sixteen blocks a "
            f"multiprocessor ({words}); 0.7 ms later 32 blocks like NCCL's ({sum(grids.COMMUNICATION[1:]):,} bytes, "
            f"{grids.COMMUNICATION[0]} registers). Alone: the grid without communication, and over what it takes "
            "bare. Last starts: from the launch of communication until its last block starts; beside: of the 32, on "
            "a multiprocessor with the grid. Bytes and resident blocks are today's arithmetic; of every shaped grid "
            "the GPU's clock showed as many. Shaped with a low `keep_at_least`, which no default has."
        ),
        "`[THREADS=640] overlap-run --policy P ./room 20` ([room.cu](../tools/gpu/room.cu), "
        f"[room.json](../{measured.FOLDER}/room.json))",
        "![Measured on one H200](pictures/sensitivity-measured.svg)",
        "Communication of 288 threads:",
        _measured_table(root, 288),
        "Communication of 640 threads:",
        _measured_table(root, 640),
        paragraph(
            "Not measured: a sweep over all sizes, other GPUs, and these policies with NCCL's own kernel beside a "
            "real GEMM of two blocks. With two GPUs and real collectives: [robustness](robustness.md)."
        ),
    ]


# ---- The page ----


def _answer(root: Path, ranges: dict[str, list[Range]], times: dict[str, list[Times]]) -> str:
    gemm = list(zip(ranges["h100-gemm"], times["h100-gemm"]))
    whole = gemm[0][1]
    room, own = next((range_, own) for range_, own in gemm if range_.first == 0)
    rows = grids.measured_grids(root, 288)
    waits = {row.arm: row.room.wait_us for row in rows if row.room.low == "hold 128"}
    return " ".join(
        (
            "Computed: size acts in steps; beside a small ring of NCCL 2.28 a GEMM of two blocks on H100 leaves "
            f"room from {room.minimum:,} to {room.maximum:,} bytes and at no other size, with one block resident.",
            f"Simulated: that costs the kernel {percent(own.alone)} by itself, and a step that is "
            f"{percent(whole.beside[0])} with priority alone becomes {percent(own.beside[0])}; of {len(times)} pairs "
            f"the best size gains at most {_most_gained(times, 'hold'):.1f} points over priority alone under hold, "
            f"{_most_gained(times, 'backfill'):.1f} under backfill.",
            f"Measured on one H200: one block of sixteen costs a long grid {_times(rows, grids.ROOM)} its time, "
            f"quick entry {_times(rows, grids.ENTRY)}, half of the blocks {_times(rows, grids.HALF)}; the last block "
            f"of communication then starts after {waits[grids.ROOM]:.0f} us with room, {waits[grids.PRIORITY]:,.0f} "
            f"with priority alone, {waits[grids.BARE]:,.0f} bare.",
        )
    )


def _most_gained(times: dict[str, list[Times]], rule: str) -> float:
    """Points, by the best size of any pair, over the same as launched."""
    index = RULES.index(rule)
    return max(own[0].beside[index] - min(one.beside[index] for one in own) for own in times.values())


def _times(rows: Sequence[grids.Shaped], arm: str) -> str:
    factors = sorted(row.factor for row in rows if row.arm == arm)
    return f"{factors[0]:.1f} to {factors[-1]:.1f} times"


def _reading(ranges: dict[str, list[Range]], times: dict[str, list[Times]]) -> str:
    tiled = list(zip(ranges["a100-tiled"], times["a100-tiled"]))
    entry, entry_times = next((range_, own) for range_, own in tiled if range_.first == 1)
    past = tiled[tiled.index((entry, entry_times)) + 1]
    elementwise = list(zip(ranges["h100-elementwise"], times["h100-elementwise"]))
    free = [own for range_, own in elementwise if 2 * range_.resident >= elementwise[0][0].resident]
    last = next(own for range_, own in elementwise if range_.first == 0)
    return bullets(
        (
            holds(
                entry_times.beside[2] < tiled[0][1].beside[2] - 5 and past[1].beside[2] > 0,
                f"**The window is narrow, and what is just outside loses.** On A100 {entry.minimum:,} to "
                f"{entry.maximum:,} bytes give {percent(entry_times.beside[2])} under backfill; one byte more, "
                f"{percent(past[1].beside[2])}: as many blocks are resident, but both must end first.",
            ),
            "**Which rule the GPU follows decides.** Under hold and drain priority alone has nearly all of the gain "
            f"({percent(tiled[0][1].beside[0])} on A100 as launched), under backfill nothing "
            f"({percent(tiled[0][1].beside[2])}). An H200 holds ([measured](../tools/gpu/README.md)).",
            "**Half of the blocks of a kernel bound by memory are free, the rest is not.** Elementwise on H100: "
            f"alone at most {percent(max(own.alone for own in free))} down to half of the blocks, "
            f"{percent(last.alone)} where there is room; the planner's `keep_at_least: 50%` refuses that.",
        )
    )


def files(root: Path) -> dict[str, str]:
    ranges, times = _found()
    gpus = listed(sorted({pair.gpu.upper() for pair in PAIRS.values()}))
    head = {
        "Question": (
            "How do resident blocks, the decision and the time of a step change with the dynamic shared memory of a "
            "kernel?"
        ),
        "Answer": _answer(root, ranges, times),
        "From": (
            "Computed by the C code that the shim runs (resident, beside, end first); simulated, from assumed costs "
            f"(columns `sim.`: {gpus}); measured on one H200, in a part of its own. No simulated number says "
            "anything of a speed."
        ),
        "Anew": (
            "`.venv/bin/python tools/answers --write sensitivity`, about ten seconds, no GPU; what was measured: "
            "see there. One kernel of yours: `overlap explain`."
        ),
    }
    computed = paragraph(
        "A row is a range of sizes in which nothing changes. *Resident*: blocks of the kernel on a multiprocessor; "
        "*beside*: of them, at most, beside one block of communication; *end first*: so many must end before it "
        "fits: **0** is room, 1 quick entry. The code marks what `make_room` and `quick_entry` take if "
        "`keep_at_least` lets them. *Sim.*: virtual time of a step under the range's smallest size, with "
        "communication at the greatest priority, against the program as written, by dispatch rule; alone: the "
        "kernel by itself against itself as launched. The first row is priority alone. Costs: "
        "[costs.yaml](../tools/bench/suites/costs.yaml); a ring of 288 threads on NVLink is assumed to take 10 % "
        "longer."
    )
    parts = ["## Computed and simulated", computed]
    for name in PAIRS:
        parts += _pair(name, ranges[name], times[name])
    parts += [
        *_amd_part(),
        "## What the simulated numbers say",
        _reading(ranges, times),
        "## Measured: one H200",
        *_measured(root),
    ]
    made = {"docs/sensitivity.md": page("Sensitivity", "sensitivity", head, parts)}
    for name in PAIRS:
        made[str(PICTURES / f"sensitivity-{name}.svg")] = pictures.of_pair(TITLES[name], ranges[name], times[name])
    *_, amd = _amd()
    title = f"MI250X: {MI250X_KERNEL}, beside RCCL made small"
    made[str(PICTURES / f"sensitivity-{MI250X}-gemm.svg")] = pictures.of_pair(title, amd, None)
    made[str(PICTURES / "sensitivity-measured.svg")] = pictures.of_grids(grids.measured_grids(root, 288))
    return made
