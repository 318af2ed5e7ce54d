"""One kernel beside one block of communication over all its dynamic sizes: what fits, by the library's arithmetic, and
what a step takes, by the suite's programs on the simulated GPU. The table that the reviewers of the paper asked for.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim import _native
from pyshim.demo.arms import change
from pyshim.policy.gpus import KnownGpu, known
from tools.bench.suites import kernels
from tools.bench.suites.arms import Bench
from tools.bench.suites.programs import PROGRAMS, Program
from tools.docs import planned, sizes
from tools.docs.table import Table, Value, rounded

SMALL = {"NCCL_ALGO": "Ring", "NCCL_NTHREADS": "256", "NCCL_CGA_CLUSTER_SIZE": "0"}
ALONE_WAVES = 7
DISPATCH_RULES = ("hold", "drain", "backfill")  # of SIMGPU; the first is what an H200 does


@dataclass(frozen=True)
class Range:
    """Dynamic bytes, both ends included, in which nothing changes."""

    minimum: int
    maximum: int
    resident: int  # blocks of the kernel on a multiprocessor
    beside: int  # of them, at most, beside one block of communication

    @property
    def first(self) -> int:
        """Blocks that must end before communication fits: 0 is room."""
        return max(0, self.resident - self.beside)


@dataclass(frozen=True)
class Times:
    """Per cent of virtual time against the program as written; negative is faster."""

    alone: float  # the kernel without communication, against itself as launched
    beside: tuple[float, ...]  # by DISPATCH_RULES


def gpu(key: str) -> KnownGpu:
    return next(one for one in known() if one.key == key)


def ranges(key: str, kernel: planned.Kernel, communication: planned.Kernel) -> list[Range]:
    struct = planned.known_gpu(key)
    at, most = kernel.dynamic or 0, int(struct.shared_optin) - kernel.static
    found = []
    while at <= most:
        here = fits(struct, kernel, communication, at)
        end, beyond = at, most + 1  # what fits never grows with the size: the last size with the same answer
        while beyond - end > 1:
            middle = (end + beyond) // 2
            if fits(struct, kernel, communication, middle) == here:
                end = middle
            else:
                beyond = middle
        found.append(Range(at, end, *here))
        at = end + 1
    return found


def fits(struct: Any, kernel: planned.Kernel, communication: planned.Kernel, dynamic: int) -> tuple[int, int]:
    """Blocks of the kernel with so many dynamic bytes: resident, and at most beside one of communication."""
    lib = _native.library()
    own, other = _footprint(kernel, dynamic), _footprint(communication, communication.dynamic or 0)
    return int(lib.overlap_occupancy_of(struct, own).blocks), int(lib.overlap_blocks_beside(struct, own, other))


def _footprint(kernel: planned.Kernel, dynamic: int) -> Any:
    numbers = (kernel.threads, kernel.registers, kernel.static, dynamic)
    return _native.ffi.new("struct overlap_footprint *", numbers)


@dataclass(frozen=True)
class Pair:
    """A kernel of the suite beside its collective; small: as NCCL_NTHREADS=256 makes it."""

    gpu: str
    word: str
    program: str  # of the suite: where it runs beside communication
    collective: str
    small: bool

    @property
    def kernel(self) -> kernels.Kernel:
        return kernels.computation(self.word, gpu(self.gpu))

    def blocks(self) -> tuple[planned.Kernel, planned.Kernel]:
        """The kernel, and the block of communication."""
        block = kernels.collective(self.collective, gpu(self.gpu))
        if self.small:  # what a ring has over PCIe
            block = dataclasses.replace(block, threads=kernels.RING_PCIE)
        return _plain(self.kernel), _plain(block)

    def policy(self, size: int) -> str:
        head = "policy: 1\nname: sweep\nstreams: {raise: auto}\n"
        if size <= self.kernel.dynamic_shared:
            return head  # as launched
        match = f'  - match: {{kernel: "{self.kernel.symbol}"}}\n'
        return f"{head}compute:\n{match}    shape: {{dynamic_shared_memory: {size}}}\n    when: always\n"


def _plain(kernel: kernels.Kernel) -> planned.Kernel:
    return planned.Kernel(kernel.symbol, kernel.threads, kernel.registers, kernel.static_shared, kernel.dynamic_shared)


def simulated(pairs: dict[str, Pair], found: dict[str, list[Range]]) -> dict[str, list[Times]]:
    """For each range of each pair, at its smallest size. Seconds."""
    with tempfile.TemporaryDirectory(prefix="overlap-answers-") as folder:
        bench = Bench(Path(folder), os.environ)
        for key in {pair.gpu for pair in pairs.values()}:
            bench.prepare(gpu(key))
        jobs = {name: list(_jobs(bench, pair, found[name], name)) for name, pair in pairs.items()}
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            started = {name: [pool.submit(job) for job in own] for name, own in jobs.items()}
            return {name: [one.result() for one in own] for name, own in started.items()}


def _jobs(bench: Bench, pair: Pair, found: list[Range], name: str) -> Iterator[Any]:
    one = gpu(pair.gpu)
    program = next(program for program in PROGRAMS if program.name == pair.program)
    small = SMALL if pair.small else None
    alone = Program("alone", pair.word, f"{pair.word}:{ALONE_WAVES}w", False)
    before = {program: bench.bare(program, one, DISPATCH_RULES[0], "plain").steady_ms for program in (program, alone)}
    for range_ in found:
        file = bench.folder / f"{name}-{range_.minimum}.yaml"
        file.write_text(pair.policy(range_.minimum), encoding="utf-8")
        for rule in DISPATCH_RULES:
            bench.settings(str(file), one, rule)  # not side by side: it keeps what it has made

        def job(policy: str = str(file)) -> Times:
            by = [bench.under(policy, program, one, rule, small).steady_ms for rule in DISPATCH_RULES]
            own = bench.under(policy, alone, one, DISPATCH_RULES[0], small).steady_ms
            return Times(change(before[alone], own), tuple(change(before[program], ms) for ms in by))

        yield job


# ---- The table ----

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
    found = {name: ranges(pair.gpu, *pair.blocks()) for name, pair in PAIRS.items()}
    times = simulated(PAIRS, found)
    rows: list[list[Value]] = []
    for name, pair in PAIRS.items():
        answer = planned.answer(planned.known_gpu(pair.gpu), *pair.blocks())
        for range_, own in zip(found[name], times[name]):
            changes = [rounded(own.alone, 1), *(rounded(value, 1) for value in own.beside)]
            rows.append([name, pair.program, *_line(range_, answer), *changes])
    amd = sizes.Gpu(gpu(MI250X))
    kernel, block = next(one for one in amd.kernels if one.name == MI250X_KERNEL), amd.launches[0].small
    answer = planned.answer(amd.struct, kernel, block)
    for range_ in ranges(MI250X, kernel, block):
        rows.append([f"{MI250X}-gemm", None, *_line(range_, answer), *[None] * (1 + len(DISPATCH_RULES))])
    heads = ("pair", "program", "least_bytes", "most_bytes", "resident", "beside", "must_end_first", "control_takes_it")
    return Table((*heads, "simulated_alone_percent", *(f"simulated_{rule}_percent" for rule in DISPATCH_RULES)), rows)


def _line(range_: Range, answer: planned.Answer) -> list[Value]:
    taken = any(one.inflates and one.minimum == range_.minimum for one in answer.rooms[:1])
    beside = max(0, range_.beside)
    return [range_.minimum, range_.maximum, range_.resident, beside, range_.first, "make_room" if taken else ""]
