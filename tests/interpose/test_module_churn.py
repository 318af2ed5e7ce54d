"""Services that load modules all day, each with kernels of new names: tests/programs/module_churn.c. They must not grow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from interposing import Build, Runner

SETTINGS = ("bare", "off", "observe", "default", "h100-paper")
WARM = 6000  # modules, after which every table and every row of a page has been used
GROWN = 1024  # KiB

pytestmark = pytest.mark.plain("a sanitizer keeps memory that was given back", sanitized=True)


@pytest.fixture
def churn(build: Build, bare: Runner, preloaded: Runner) -> Any:
    """churn(count, length, alive, setting): the memory in KiB that so many modules have added."""
    stub = build.library("null/libcuda.so.1", "../../tools/bench/null_driver.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("module_churn", "module_churn.c", link=[stub])

    def run(count: int, length: int, alive: int, setting: str) -> int:
        words = f"{WARM} {count} {length} {alive}"
        env = {"LD_LIBRARY_PATH": str(stub.parent), **({"OVERLAP_RUN": "off"} if setting == "off" else {})}
        policy = "default" if setting == "off" else setting
        runner, more = (bare, {}) if setting == "bare" else (preloaded, {"policy": policy})
        done = runner(words, program=program, env=env, **more)
        assert (done.status, done.stdout) == (0, "bad: 0\n"), done.stderr
        if setting not in ("bare", "off"):
            assert done.totals["launches"] == WARM + count
            assert "unknown_footprint" not in done.reasons
        (grown,) = re.findall(r"^grown: (-?\d+)$", done.stderr, re.M)
        return int(grown)

    return run


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("length", "alive"), [(20, 1), (300, 1), (60, 1000)])
def test_twenty_thousand_modules(length: int, alive: int, setting: str, churn: Any) -> None:
    assert churn(20_000, length, alive, setting) < GROWN


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_million_modules(setting: str, churn: Any) -> None:
    assert churn(1_000_000, 60, 10, setting) < GROWN
