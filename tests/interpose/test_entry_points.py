"""Every entry point of driver.def, by every way in; the table that is committed is what this run finds."""

from __future__ import annotations

from typing import Any

import pytest

from tools.generate import entry_points as tool

pytestmark = pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True)


@pytest.fixture(scope="module")
def measured() -> Any:
    return tool.measure()


def test_what_is_changed_is_changed_and_nothing_else(measured: Any) -> None:
    _, wrong = measured
    assert wrong == []


def test_every_row_says_what_it_does() -> None:
    assert [row for row in tool.rows() if tool.effect_of(row) is None] == []
    assert len(tool.rows()) == len(set(tool.rows())) > 60


def test_the_committed_table_is_what_was_found(measured: Any) -> None:
    found, _ = measured
    assert tool.TABLE.read_text(encoding="ascii") == found, "python -m tools.generate.entry_points writes it"


def test_a_row_that_does_something_else_is_noticed() -> None:
    bare = tool.Seen(tool.DRIVERS, ["0"], ['kernel "k" dynamic_shared 0 priority 0 cluster 1'])
    assert tool.mistakes("cuLaunch", tool.Seen(tool.OURS, ["0"], bare.driver), bare, tool.COUNTED) == []
    for other in (
        tool.Seen(tool.DRIVERS, ["0"], bare.driver),  # not intercepted
        tool.Seen(tool.OURS, ["1"], bare.driver),  # another answer
        tool.Seen(tool.OURS, ["0"], []),  # not launched
    ):
        assert len(tool.mistakes("cuLaunch", other, bare, tool.COUNTED)) == 1
    same = tool.Seen(tool.OURS, ["0"], bare.driver)
    assert tool.mistakes("cuLaunchKernel", same, bare, tool.LAUNCH)  # not changed
    assert tool.mistakes("cuNew", same, bare, tool.effect_of("cuNew"))
