"""SIMGPU_CARVEOUT=measured: who may join whom on a multiprocessor, as on an H200."""

from __future__ import annotations

from typing import Any

import pytest

COSTS = '- {kernel: "*", block_us: 1000, spread: 0, gain: 1}\n'
SETUP = """
d = Driver()
m = d.module(cubin([Kernel("low", 16), Kernel("high", 16), Kernel("marker", 16)]))
low, high, marker = (d.function(m, n) for n in ("low", "high", "marker"))
for f in (low, high): d.cuFuncSetAttribute(f, 8, 232448)
def start(one, other):
    for f, blocks, threads, dynamic, carveout, priority in (one, other):
        if carveout is not None: d.cuFuncSetAttribute(f, 9, carveout)
        assert d.launch(f, blocks, threads, dynamic, d.stream(priority)) == 0
    d.cuCtxSynchronize()
"""
KIB = 1024


@pytest.mark.parametrize(
    ("first", "second", "beside"),
    [
        pytest.param(
            ("low", 1024, 8 * KIB, None), ("high", 20 * KIB, 100), False, id="a default division is too small"
        ),
        pytest.param(("low", 1024, 8 * KIB, 100), ("high", 20 * KIB, 100), True, id="the largest has room"),
        pytest.param(("low", 1024, 8 * KIB, 100), ("high", 200 * KIB, None), True, id="for a large one, too"),
        pytest.param(("low", 1024, 8 * KIB, 100), ("high", 8 * KIB, 10), False, id="a preference for less keeps out"),
        pytest.param(("low", 1024, 8 * KIB, 44), ("high", 100 * KIB, 100), False, id="some is not enough"),
        pytest.param(("low", 1024, 100 * KIB, None), ("high", 8 * KIB, None), True, id="its full occupancy is enough"),
        pytest.param(("low", 1024, 0, None), ("marker", 0, None), False, id="not even one that takes nothing"),
        pytest.param(("low", 1024, 0, 100), ("marker", 0, None), True, id="unless all is there"),
    ],
)
def test_who_joins_whom(simulate: Any, first: Any, second: Any, beside: Any) -> None:
    name, threads, dynamic, carveout = first
    other, size, preference = second
    snippet = (
        SETUP + f"start(({name}, 132, {threads}, {dynamic}, {carveout}, 0), ({other}, 1, 32, {size}, {preference}, -5))"
    )
    for model in ("measured", "ignored"):
        run = simulate(snippet, costs=COSTS, SIMGPU_CARVEOUT=model)
        row = {row["kernel"]: row for row in run.timeline}
        assert (row[other]["start_us"] < row[name]["end_us"]) is (beside or model == "ignored")


def test_a_kernel_alone_has_its_full_occupancy(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
for dynamic in (0, 8192, 50000): d.launch(low, 132 * 16, 128, dynamic); d.cuCtxSynchronize()
n = [d.get("cuOccupancyMaxActiveBlocksPerMultiprocessor", low, 128, dynamic) for dynamic in (0, 8192, 50000)]
answer(n)
""",
        SIMGPU_CARVEOUT="measured",
    )
    assert [row["resident_peak"] for row in run.timeline] == run.answer == [16, 16, 4]


def test_a_mistake_is_one_line(simulate: Any) -> None:
    run = simulate("answer(Driver(init=False).try_('cuInit', 0))", SIMGPU_CARVEOUT="on")
    assert run.answer == 1
    assert "simgpu: SIMGPU_CARVEOUT: `on` is neither `measured` nor `ignored`" in run.stderr
