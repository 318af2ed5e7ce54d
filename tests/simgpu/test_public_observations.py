"""What others have measured or reported, through programs on the simulated driver: the model must give it back.

Kernels have the footprints of real ones: a Hopper GEMM of 384 threads, 168 registers and 213 KB (one block on a
multiprocessor), and an NCCL collective of 640 threads, 96 registers and 14,144 + 82,240 bytes. An H100 has 132
multiprocessors.
"""

from __future__ import annotations

from typing import Any

import pytest

COSTS = """
- {kernel: "gemm_108", block_us: 1222.2, spread: 0.01, gain: 1}
- {kernel: "gemm_wave", block_us: 50, spread: 0.05, gain: 1}
- {kernel: "gemm", block_us: 1000, spread: 0.01, gain: 1}
- {kernel: "ncclDevKernel_short", block_us: 100, spread: 0, gain: 1}
- {kernel: "ncclDevKernel_*", block_us: 20000, spread: 0.02, gain: 1}
"""

KERNELS = """
d = Driver()
COMMUNICATION = dict(registers=96, static_shared=14144)
module = d.module(cubin([Kernel(n, 168) for n in ("gemm", "gemm_108", "gemm_wave")]
                        + [Kernel(n, **COMMUNICATION) for n in ("ncclDevKernel_AllReduce", "ncclDevKernel_short")]))
def gemm(name, blocks, stream):
    f = d.function(module, name); d.cuFuncSetAttribute(f, 8, 213000)
    assert d.launch(f, blocks, 384, 213000, stream) == 0
def collective(stream, name="ncclDevKernel_AllReduce"):
    f = d.function(module, name); d.cuFuncSetAttribute(f, 8, 82240)
    assert d.launch(f, 24, 640, 82240, stream) == 0
plain, side, high = d.stream(), d.stream(), d.stream(-5)
"""


def took(row: dict[str, Any]) -> float:
    return float(row["end_us"] - row["start_us"])


@pytest.mark.parametrize(
    ("kernel", "blocks", "expected"),
    [
        pytest.param("gemm", 132, 2.00, id="one block for each multiprocessor: the last 24 are a second wave"),
        pytest.param("gemm_108", 108, 1.23, id="told to use 108 multiprocessors"),
    ],
)
def test_a_persistent_gemm_beside_a_collective(simulate: Any, kernel: str, blocks: int, expected: float) -> None:
    """PyTorch #143988: a one-wave GEMM takes twice as long where 24 blocks of NCCL are there already."""
    alone = simulate(KERNELS + "gemm('gemm', 132, plain); d.cuCtxSynchronize()", costs=COSTS)
    beside = simulate(
        KERNELS + f"collective(side); gemm('{kernel}', {blocks}, plain); d.cuCtxSynchronize()", costs=COSTS
    )
    row = beside.kernel(kernel)
    assert beside.kernel("ncclDevKernel_AllReduce")["end_us"] > row["end_us"]
    assert took(row) / took(alone.kernel("gemm")) == pytest.approx(expected, rel=0.03)


def test_a_collective_behind_a_long_gemm_waits_for_its_last_wave(simulate: Any) -> None:
    """NCCL #1431, flux #39: at equal priority it is placed when about 95 % of the GEMM (20 waves) are done."""
    run = simulate(KERNELS + "gemm('gemm_wave', 132 * 20, plain); collective(side); d.cuCtxSynchronize()", costs=COSTS)
    row = run.kernel("gemm_wave")
    entered = (run.kernel("ncclDevKernel_AllReduce")["start_us"] - row["start_us"]) / took(row)
    assert 0.93 < entered < 0.97


def test_a_collective_of_greater_priority_enters_with_the_first_wave(simulate: Any) -> None:
    """It needs 24 of the multiprocessors that one block of the GEMM fills each."""
    run = simulate(
        KERNELS + "gemm('gemm_wave', 132 * 20, plain); collective(high, 'ncclDevKernel_short'); d.cuCtxSynchronize()",
        costs=COSTS,
    )
    start, row = run.kernel("gemm_wave")["start_us"], run.kernel("ncclDevKernel_short")
    assert (row["start_us"] - start) / 50 == pytest.approx(1, rel=0.1)
    assert (row["end_us"] - start - 100) / 50 == pytest.approx(1, rel=0.1)  # the last of its blocks, too


MEMORY = """
- {{kernel: "elementwise", block_us: 10, spread: 0.05, gain: 2, bytes_per_block: {compute}}}
- {{kernel: "ncclDevKernel_*", block_us: 1000, spread: 0, gain: 1, bytes_per_block: {communication}}}
"""
ELEMENTWISE = """
d = Driver()
module = d.module(cubin([Kernel("elementwise", 32), Kernel("ncclDevKernel_AllReduce", 96)]))
plain, side = d.stream(), d.stream()
def elementwise(): assert d.launch(d.function(module, "elementwise"), 108 * 400, 1024, stream=plain) == 0
def collective(): assert d.launch(d.function(module, "ncclDevKernel_AllReduce"), 24, 640, stream=side) == 0
"""


def test_a_collective_and_a_kernel_that_is_bound_by_memory_slow_each_other(simulate: Any) -> None:
    """Alone each is as fast as its data says: the collective asks for half of the bandwidth, the other for 90 % of it.

    Together they ask for more than there is, and get it in proportion. The 24 blocks of the collective leave no
    registers on their multiprocessors, so `elementwise` has 108 left.
    """
    bandwidth, each = 3_350_000, {}
    compute, communication = 0.9 * bandwidth * 10 / 264, 0.5 * bandwidth * 1000 / 24
    costs = MEMORY.format(compute=compute, communication=communication)
    for what in ("elementwise()", "collective()", "collective(); elementwise()"):
        run = simulate(ELEMENTWISE + what + "; d.cuCtxSynchronize()", costs=costs.replace("gain", "sharing: 0, gain"))
        each[what] = {row["kernel"]: took(row) for row in run.timeline}
    alone = {**each["elementwise()"], **each["collective()"]}
    both = each["collective(); elementwise()"]
    assert alone["ncclDevKernel_AllReduce"] == pytest.approx(1000, rel=0.001)
    assert alone["elementwise"] == pytest.approx(43200 / 264 * 10, rel=0.02)
    slower = 0.9 * 108 / 132 + 0.5
    assert both["ncclDevKernel_AllReduce"] == pytest.approx(1000 * slower, rel=0.02)
    # while the collective runs, and then alone
    left = alone["elementwise"] - 1000 * 108 / 132
    assert both["elementwise"] == pytest.approx(1000 * slower + left, rel=0.02)


def test_two_kernels_on_one_multiprocessor_cost_a_fifth(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
module = d.module(cubin([Kernel("gemm", 32), Kernel("ncclDevKernel_AllReduce", 32)]))
for name in ("gemm", "ncclDevKernel_AllReduce"):
    assert d.launch(d.function(module, name), 132, 512, stream=d.stream()) == 0
d.cuCtxSynchronize()
""",
        costs='- {kernel: "*", block_us: 1000, spread: 0, gain: 1}\n',
    )
    # alone: gain 1 and four blocks at most, so a block by itself takes a quarter
    assert [took(row) for row in run.timeline] == pytest.approx([300, 300], rel=0.03)


def test_work_is_conserved(simulate: Any) -> None:
    """Six kernels at two priorities, each block of which needs a multiprocessor: no one stays idle while blocks wait.

    List scheduling: work / multiprocessors <= length <= that + one block of the longest.
    """
    run = simulate(
        """
d = Driver()
module = d.module(cubin([Kernel(f"k{i}", 64) for i in range(6)]))
for i in range(6):
    assert d.launch(d.function(module, f"k{i}"), 97 + 61 * i, 1024, stream=d.stream(-(i % 2))) == 0
d.cuCtxSynchronize()
""",
        costs="".join(f'- {{kernel: "k{i}", block_us: {70 + 20 * i}, spread: 0.3, gain: 1}}\n' for i in range(6)),
    )
    rows = {row["kernel"]: row for row in run.timeline}
    length = max(row["end_us"] for row in run.timeline) - min(row["start_us"] for row in run.timeline)
    work = sum(rows[f"k{i}"]["blocks"] * (70 + 20 * i) for i in range(6)) / 132
    assert work * 0.98 < length < work * 1.02 + 170 * 1.3
