"""Every entry point of HIP's driver.def, by every way in; the table that is committed is what this run finds."""

from __future__ import annotations

from typing import Any

import pytest

from tools.generate import hip_entry_points as tool


@pytest.fixture(scope="module")
def measured() -> Any:
    return tool.measure()


def test_what_is_changed_is_changed_and_nothing_else(measured: Any) -> None:
    _, wrong = measured
    assert wrong == []


def test_every_row_says_what_it_does() -> None:
    assert [row for row in tool.rows() if tool.effect_of(row) is None] == []
    assert len(tool.rows()) == len(set(tool.rows())) > 150


def test_the_committed_table_is_what_was_found(measured: Any) -> None:
    found, _ = measured
    assert tool.TABLE.read_text(encoding="ascii") == found, "python -m tools.generate.hip_entry_points writes it"


def test_what_is_not_as_it_must_be_is_noticed() -> None:
    line = 'kernel "k" blocks 400 threads 256 result 0 dynamic_shared {} cooperative false'
    asked, shaped = line.format(0), line.format(32769)
    run, effect = tool.Run("7.2", "dlsym"), tool.Effect("dynamic size", {tool.SIZE: 1})
    bare = tool.Seen("libamdhip64.so.7", ["0"], [asked])
    row = "hipLaunchKernel"
    assert tool.mistakes(row, run, tool.Seen(tool.OURS, ["0"], [shaped], {"dlsym": 1}), bare, effect) == []
    for wrong in (
        tool.Seen("libamdhip64.so.7", ["0"], [shaped], {"dlsym": 1}),  # not intercepted
        tool.Seen(tool.OURS, ["1"], [shaped], {"dlsym": 1}),  # another answer
        tool.Seen(tool.OURS, ["0"], [asked], {"dlsym": 1}),  # not shaped
        tool.Seen(tool.OURS, ["0"], [shaped], {"dlsym": 2}),  # counted twice
        tool.Seen(tool.OURS, ["0"], [shaped], {"symbol": 1}),  # by another way
        tool.Seen(tool.OURS, ["0"], [shaped.replace("256", "512")], {"dlsym": 1}),  # another launch
    ):
        assert len(tool.mistakes(row, run, wrong, bare, effect)) == 1
    assert tool.mistakes("hipNew", run, bare, bare, tool.effect_of("hipNew"))
