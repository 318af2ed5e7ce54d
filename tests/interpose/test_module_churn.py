"""Services that load modules all day, each with kernels of new names, must not grow: tests/programs/module_churn.c."""

from __future__ import annotations

import pytest
from null_driver import ARMED, SETTINGS, Under, said

WARM = 6000  # modules, after which every table and every row of a page has been used
GROWN = 1024  # KiB

pytestmark = pytest.mark.plain("a sanitizer keeps memory that was given back", sanitized=True)


def grown(under: Under, setting: str, count: int, length: int, alive: int, **more: int) -> int:
    """Return the memory in KiB that so many modules have added."""
    done = under(setting, "module_churn", f"{WARM} {count} {length} {alive}", **more)
    assert (done.status, done.stdout) == (0, "bad: 0\n"), done.stderr
    if setting in ARMED:
        assert done.totals["launches"] == WARM + count
        assert "unknown_footprint" not in done.reasons
    return said(done, "grown")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("length", "alive"), [(20, 1), (300, 1), (60, 1000)])
def test_twenty_thousand_modules(length: int, alive: int, setting: str, under: Under) -> None:
    assert grown(under, setting, 20_000, length, alive) < GROWN


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_million_modules(setting: str, under: Under) -> None:
    assert grown(under, setting, 1_000_000, 60, 10, timeout=300) < GROWN
