"""What kernels cost each other: on one multiprocessor (`sharing`), and at the memory of the device (`bytes_per_block`).

Cases that can be computed by hand. An H100 has 132 multiprocessors and moves 3,350,000 bytes a microsecond.
"""

from __future__ import annotations

from typing import Any

import pytest

KERNELS = """
d = Driver()
names = ("a", "b", "c")
module = d.module(cubin([Kernel(n, 32) for n in names]))
f = {n: d.function(module, n) for n in names}
s = {n: d.stream() for n in names}
g = d.new("cuGraphCreate", 0)       # a graph begins all its kernels at once
def go(**blocks):
    for name, count in blocks.items(): d.add_kernel(g, f[name], count, 1024)
    d.cuGraphLaunch(d.instantiate(g), s["a"]); d.cuCtxSynchronize()
"""


def cost(kernel: str, **numbers: Any) -> str:
    """10 us, two blocks as fast as one: a block alone takes 10 us, too."""
    given = {"block_us": 10, "spread": 0, "gain": 2, "sharing": 0, **numbers}
    return f"- {{kernel: {kernel}, {', '.join(f'{key}: {value}' for key, value in given.items())}}}\n"


def times(run: Any) -> dict[str, float]:
    return {row["kernel"]: round(row["end_us"] - row["start_us"], 2) for row in run.timeline}


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        pytest.param({"a": 0, "b": 0}, {"a": 10, "b": 10}, id="nothing"),
        pytest.param({"a": 0.2, "b": 0.2}, {"a": 12, "b": 12}, id="both"),
        pytest.param({"a": 0.5, "b": 0}, {"a": 13.33, "b": 10}, id="each by its own"),
        pytest.param({"a": 3, "b": 1}, {"a": 25, "b": 20}, id="until the other has ended"),
    ],
)
def test_two_kernels_on_one_multiprocessor(simulate: Any, sharing: Any, expected: Any) -> None:
    costs = "".join(cost(name, sharing=value) for name, value in sharing.items())
    run = simulate(KERNELS + "go(a=132, b=132)", costs=costs)
    assert times(run) == expected


def test_the_usual_slow_down_is_a_fifth(simulate: Any) -> None:
    run = simulate(KERNELS + "go(a=132, b=132)", costs='- {kernel: "*", block_us: 10, spread: 0, gain: 2}\n')
    assert times(run) == {"a": 12, "b": 12}


def test_blocks_of_one_kernel_and_other_multiprocessors_do_not_slow(simulate: Any) -> None:
    """Two blocks of `a` each on 66 multiprocessors of two; the 66 of `b` and of `c` have one to themselves."""
    costs = cost("*", sharing=0.2)
    assert times(simulate(KERNELS + "go(a=264)", costs=costs)) == {"a": 10}
    assert times(simulate(KERNELS + "go(b=66, c=66)", costs=costs)) == {"b": 10, "c": 10}


LIMIT = 3_350_000  # bytes a microsecond


@pytest.mark.parametrize(
    ("blocks", "bytes_per_us", "expected"),
    [
        pytest.param(132, LIMIT, 10, id="all of it"),
        pytest.param(132, LIMIT / 2, 10, id="half of it"),
        pytest.param(132, 2 * LIMIT, 20, id="twice as much"),
        pytest.param(66, 2 * LIMIT, 10, id="half of the blocks"),
        pytest.param(264, LIMIT, 20, id="twice the blocks"),
        pytest.param(264 * 3, LIMIT, 60, id="three waves of them"),
    ],
)
def test_a_kernel_that_is_bound_by_memory(simulate: Any, blocks: Any, bytes_per_us: Any, expected: Any) -> None:
    """`bytes_per_us`: what 132 blocks would move together."""
    costs = cost("*", bytes_per_block=bytes_per_us / 132 * 10)
    assert times(simulate(KERNELS + f"go(a={blocks})", costs=costs)) == {"a": expected}


@pytest.mark.parametrize(
    ("gpu", "architecture", "gigabytes"),
    [
        ("a40", 80, 696),
        ("l40s", 80, 864),
        ("a100", 80, 2039),
        ("h100", 90, 3350),
        ("h200", 90, 4800),
        ("b200", 100, 8000),
    ],
)
def test_the_bandwidth_of_each_gpu(simulate: Any, gpu: Any, architecture: Any, gigabytes: Any) -> None:
    costs = cost("*", bytes_per_block=gigabytes * 1000 * 10 * 3)
    setup = KERNELS.replace("for n in names])", f"for n in names], {architecture})")
    assert times(simulate(setup + "go(a=1)", costs=costs, gpu=gpu)) == {"a": 30}


def test_those_that_move_memory_share_it_in_proportion(simulate: Any) -> None:
    """`a` would take all of it and `b` half: both run at 2/3. `c` moves nothing."""
    costs = cost("a", bytes_per_block=LIMIT / 66 * 10) + cost("b", bytes_per_block=LIMIT / 132 * 10) + cost("c")
    assert times(simulate(KERNELS + "go(a=66, b=66, c=66)", costs=costs)) == {"a": 15, "b": 15, "c": 10}


def test_speed_changes_when_blocks_come_and_go(simulate: Any) -> None:
    """`a` (10 us) and `b` (20 us) would take all of it each. At half speed `a` ends at 20 us, when `b` has 10 us left
    and all of the memory to itself."""
    whole = LIMIT / 66
    costs = cost("a", bytes_per_block=whole * 10) + cost("b", block_us=20, bytes_per_block=whole * 20)
    assert times(simulate(KERNELS + "go(a=66, b=66)", costs=costs)) == {"a": 20, "b": 30}


def test_each_device_has_memory_of_its_own(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
for device in (0, 1):
    d.cuCtxSetCurrent(d.new("cuDevicePrimaryCtxRetain", device))
    d.launch(d.kernel(cubin([Kernel("a")]), "a"), 132, 1024, stream=d.stream())
for device in (0, 1):
    d.cuCtxSetCurrent(d.new("cuDevicePrimaryCtxRetain", device)); d.cuCtxSynchronize()
""",
        costs=cost("*", bytes_per_block=LIMIT / 132 * 10),
        gpu="h100,2",
    )
    assert [round(row["end_us"] - row["start_us"], 2) for row in run.timeline] == [10, 10]


def test_speed_counts_when_a_block_shares_and_moves_memory(simulate: Any) -> None:
    """Slowed by half by `b`, `a` asks for the half of twice the bandwidth: nothing is short until `b` has ended."""
    costs = cost("a", sharing=1, bytes_per_block=2 * LIMIT / 132 * 10) + cost("b", block_us=20)
    assert times(simulate(KERNELS + "go(a=132, b=132)", costs=costs)) == {"a": 20, "b": 20}


def test_many_blocks_are_simulated_soon(simulate: Any) -> None:
    """60,000 blocks of three kernels with different ends, which all share and move memory."""
    run = simulate(
        KERNELS
        + """
import time
start = time.process_time()
for name in names: d.launch(f[name], 20000, 256, stream=s[name])
d.cuCtxSynchronize()
answer(time.process_time() - start)
""",
        costs='- {kernel: "*", block_us: 10, spread: 0.3, bytes_per_block: 1000000}\n',
    )
    assert len(run.timeline) == 3
    assert run.answer < 2, "seconds of the processor"
