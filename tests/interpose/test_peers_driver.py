"""What users of other libraries like this one met with some version or kind of driver, and must not meet here."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, WAYS, Build, Runner, same
from peers import forwarding_driver

WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,64 sync"
LAUNCHES = 4


@pytest.mark.hazard(
    "peers",
    "WSL 2: the driver asks dlsym for its own cuInit, gets the wrapper, and calls itself until the stack is full",
    source="https://github.com/Project-HAMi/HAMi-core/pull/326",
)
@pytest.mark.parametrize("early", [True, False], ids=["early", "late"])
@pytest.mark.parametrize("way", WAYS)
def test_a_driver_that_asks_dlsym_for_its_own_functions_calls_itself_for_ever(
    way: str, early: bool, build: Build, bare: Runner, preloaded: Runner
) -> None:
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, early).parent)}
    without, done = bare(WORDS, way, env=env), preloaded(WORDS, ONE, way, env=env)
    assert without.status == 0, without.stderr
    same(done, without, but=["dynamic_shared"])
    assert done.totals["launches"] == done.totals["shaped"] == LAUNCHES
