"""The block scheduler, by cases that can be computed by hand.

Kernels: `big` fills a multiprocessor of an H100 (registers), two blocks of `half` fill it (threads). With gain 2, two
blocks of `half` run as fast as one, so times add up simply. An H100 has 132 multiprocessors.
"""

from __future__ import annotations

from typing import Any

import pytest

COSTS = """
# made for arithmetic by hand
- {kernel: "big", block_us: 10, spread: 0, gain: 1, sharing: 0}
- {kernel: "urgent", block_us: 5, spread: 0, gain: 1, sharing: 0}
- {kernel: "short", block_us: 12, spread: 0, gain: 2, sharing: 0}
- {kernel: "long", block_us: 20, spread: 0, gain: 2, sharing: 0}
- {kernel: "filler", block_us: 15, spread: 0, gain: 2, sharing: 0}
- {kernel: "shared", block_us: 10, spread: 0, gain: 1.5, sharing: 0}
- {kernel: "*", block_us: 10, spread: 0, gain: 2, sharing: 0}
"""

KERNELS = """
names = {"big": 64, "urgent": 64, "short": 32, "long": 32, "filler": 32, "shared": 32, "half": 32}
d = Driver()
module = d.module(cubin([Kernel(n, r) for n, r in names.items()]))
f = {n: d.function(module, n) for n in names}
"""


def us(row: dict[str, Any], key: str = "end_us", since: str = "queued_us") -> float:
    return float(round(row[key] - row[since], 3))


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        pytest.param(1, 10, id="one block takes its time"),
        pytest.param(132, 10, id="a full wave takes as long as one block"),
        pytest.param(133, 20, id="one block more is a second wave"),
        pytest.param(396, 30, id="three waves"),
    ],
)
def test_waves(simulate: Any, blocks: Any, expected: Any) -> None:
    run = simulate(KERNELS + f"assert d.launch(f['big'], {blocks}, 1024) == 0; d.cuCtxSynchronize()", costs=COSTS)
    assert us(run.kernel("big")) == expected


@pytest.mark.parametrize(
    ("priority", "start"),
    [
        pytest.param(0, 20, id="equal priority waits until all blocks before it have started"),
        pytest.param(-5, 10, id="higher priority starts when the first wave ends"),
    ],
)
def test_priority_acts_when_blocks_are_placed(simulate: Any, priority: Any, start: Any) -> None:
    run = simulate(
        KERNELS
        + f"""
low, high = d.stream(), d.stream({priority})
d.launch(f["big"], 264, 1024, stream=low)
d.launch(f["urgent"], 1, 1024, stream=high)
d.cuCtxSynchronize()
""",
        costs=COSTS,
    )
    assert us(run.kernel("urgent"), "start_us") + 2 == start  # queued one call, 2 us, later
    assert run.kernel("urgent")["priority"] == priority


WAITING = """
streams = [d.stream() for _ in range(3)]
d.launch(f["short"], 132, 1024, stream=streams[0])
d.launch(f["long"], 132, 1024, stream=streams[1])
d.launch(f["filler"], 264, 1024, stream=streams[2])
d.launch(f["urgent"], 1, 1024, stream=d.stream(-5))
d.cuCtxSynchronize()
"""


def test_nothing_of_lower_priority_starts_while_a_block_fits_nowhere(simulate: Any) -> None:
    """short ends at 12 and long at 22; urgent needs a whole multiprocessor."""
    run = simulate(KERNELS + WAITING, costs=COSTS)
    start = run.kernel("short")["start_us"]
    assert us(run.kernel("short")) == 12
    assert round(run.kernel("urgent")["start_us"] - start, 3) == 22
    assert round(run.kernel("filler")["start_us"] - start, 3) == 22


def test_a_head_that_does_not_fit_holds_up_equals_behind_it(simulate: Any) -> None:
    run = simulate(
        KERNELS
        + """
d.launch(f["half"], 132, 1024, stream=d.stream())    # one on each: big does not fit, half would
d.launch(f["big"], 1, 1024, stream=d.stream())
d.launch(f["filler"], 1, 1024, stream=d.stream())
d.cuCtxSynchronize()
""",
        costs=COSTS,
    )
    assert run.kernel("big")["start_us"] == run.kernel("half")["end_us"]
    assert run.kernel("filler")["start_us"] == run.kernel("half")["end_us"]
