"""Several threads on one device: waits are counted over all, so no thread undoes what another one's wait did.

The first judgement of a device is at the 16th wait for its streams, whichever thread waits. Until the 64th one a thread
may have had no turn between two judgements. So of 3,200 small launches at most 64 are not raised.
"""

from __future__ import annotations

import pytest
from interposing import Build, Done, Runner
from iterating import raised

from pyshim.start import plan

LAUNCHES, SHARE = 3200, 0.95
UNORDERED = 24_000  # rounds of a thread: its first 1,024 waits may all fall between two judgements
ROUND = ["barrier", ""]
IDS = ["with a barrier", "without a barrier"]


@pytest.fixture
def program(build: Build) -> object:
    return build("crowd", "crowd.c", link=[plan.SIMULATED_DRIVER])


def shares(done: Done) -> tuple[float, float]:
    """Of the small launches that were raised: in the driver's log, and as the library counts them."""
    assert done.status == 0, done.stdout
    levels = raised(done, "small")
    assert set(raised(done, "large")) == {"0"} and set(levels) <= {"0", "5"}
    assert sum(done.reasons.values()) == done.totals["launches"] == 2 * len(levels)
    return levels.count("5") / len(levels), done.totals["raised"] / len(levels)


@pytest.mark.parametrize("barrier", ROUND, ids=IDS)
@pytest.mark.parametrize("contexts", ["contexts:1", "contexts:2", "contexts:2 none"])
@pytest.mark.parametrize("threads", [1, 2, 4, 8, 16])
def test_threads_that_share_a_device(
    threads: int, contexts: str, barrier: str, program: object, preloaded: Runner
) -> None:
    words = f"{threads} {LAUNCHES // threads} {contexts} {barrier}"
    done = preloaded(words, "default", program=program)
    assert min(shares(done)) >= SHARE


@pytest.mark.slow
@pytest.mark.parametrize("threads", [4, 16])
def test_threads_that_nothing_orders(threads: int, program: object, preloaded: Runner) -> None:
    """Where there are fewer processors than threads, some make thousands of waits while others have no turn: their streams
    neither carry work nor are waited for meanwhile, and stay raised."""
    done = preloaded(f"{threads} {UNORDERED} free", "default", program=program, env={"SIMGPU_LOG": ""})
    assert done.status == 0, done.stdout
    assert done.totals["raised"] / (done.totals["launches"] / 2) >= SHARE


@pytest.mark.parametrize("threads", [4, 8])
@pytest.mark.parametrize("barrier", ROUND, ids=IDS)
def test_devices_are_judged_by_their_own_waits(barrier: str, threads: int, program: object, preloaded: Runner) -> None:
    """Four devices, a thread or two on each."""
    words = f"{threads} {2 * LAUNCHES // threads} devices:4 {barrier}"
    done = preloaded(words, "default", program=program, env={"SIMGPU": "h100,4"})
    assert min(shares(done)) >= SHARE
