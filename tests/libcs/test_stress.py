"""The stress program's launches are those of the machine that tests, whatever C library and processor it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import environments
import pytest
from environments import Pair, World, counts
from interposing import Build, Done, Runner

from pyshim.start import plan
from tests.fuzz.test_stress import POLICY, REFUSE

STRESS = "../fuzz/stress.c"
WORDS = ["1", "250"]  # threads, rounds


@pytest.fixture(scope="module")
def table(table_of: Callable[[str], Mapping[str, str]]) -> str:
    """The policy under which sanitizers run it."""
    return str(table_of(POLICY)["OVERLAP_TABLE"])


@pytest.mark.parametrize("environment", [*environments.MUSLS, *environments.OTHER_PROCESSORS])
def test_a_long_program(
    environment: str, world: World, pair: Pair, table: str, build: Build, preloaded: Runner
) -> None:
    program = build("stress-here", STRESS, link=[plan.SIMULATED_DRIVER])
    here = preloaded(WORDS, program=program, env={"OVERLAP_TABLE": table, **REFUSE})
    (target,) = world.kind.targets
    there = world.program(target, "stress", STRESS, "-O1", link=[world.shop.driver(target)])
    done, without = pair(there, WORDS, env=REFUSE, OVERLAP_TABLE=table)
    assert done.stdout == without.stdout == here.stdout, "every answer is the same with and without the library"
    assert launches(done) == launches(here) != launches(without)
    assert counts(done) == counts(here)
    assert done.totals["launches"] == sum(int(line.split()[1]) for line in done.stdout.splitlines())
    assert min(done.totals[name] for name in ("shaped", "refused")) > 0


def launches(done: Done) -> list[list[object]]:
    """Without addresses."""
    return [
        [launch.get(name) for name in ("kernel", "dynamic_shared", "result", "priority")] for launch in done.launches
    ]
