"""Rows of the statistics page and the times in it: the C code itself, plainly and under the sanitizers."""

from __future__ import annotations

import itertools
from typing import Any, Callable, NamedTuple

import pytest

from pyshim import _native

CORE = ("core/rows.c", "core/match.c", "core/stats.c")
TSAN, ASAN = ("-fsanitize=thread",), ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
NO_REPORT = {"TSAN_OPTIONS": "halt_on_error=1 exitcode=66"}
BARE, ROWS = 40, 320
OF_COMPUTATION = ROWS - 56 - 24


class Seen(NamedTuple):
    row: int
    reason: str
    recorded: bool
    kernel: str
    plain: str
    library: str
    rule: int
    asked: int
    launched: int
    blocks: int


@pytest.fixture(scope="module")
def corners(compile_c: Any, run_program: Callable[..., str]) -> Callable[..., list[str]]:
    program = compile_c("rows_corners.c", *CORE, flags=ASAN)
    return lambda *words: run_program(program, *words).splitlines()


def reasons_of(library: Any) -> list[str]:
    found = itertools.takewhile(bool, map(library.overlap_reason_name, itertools.count()))
    return list(map(_native.text, found))


def seen(lines: list[str]) -> list[Seen]:
    found = []
    for line in lines:
        numbers, kernel, _, plain, _, library, last = line.split("'")
        row, reason, record = numbers.split()
        found.append(Seen(int(row), reason, record == "record", kernel, plain, library, *map(int, last.split())))
    return found


def test_names_are_whole_or_still_told_apart(corners: Callable[..., list[str]]) -> None:
    rows = seen(corners("names"))
    assert [len(row.kernel) for row in rows] == [0, 1, 110, 111, 111, 111, 111, 15, 0]
    assert len({row.row for row in rows}) == 8 and rows[0] == rows[-1], "a kernel without a name is one without any"
    long = "abcdefghijklmnopqrstuvwxyz" * 12
    for row, length in ((rows[4], 112), (rows[5], 300)):
        first, hashed, last = row.kernel.split("~")
        assert long.startswith(first) and len(hashed) == 8 and long[:length].endswith(last)
        assert len(first) == 69 and len(last) == 32
    assert rows[5].kernel != rows[6].kernel, "they differ in the middle only"
    assert rows[7].plain == "gemm"
    assert {(row.library, row.rule, row.blocks) for row in rows} == {("libx.so", 7, 99)}


def test_a_row_is_of_one_kernel_and_one_reason(corners: Callable[..., list[str]]) -> None:
    small, bigger, raised, refused, of_bigger, of_none, found, back, *others = seen(corners("reasons"))
    assert [row.reason for row in (small, bigger, raised)] == ["shaped", "shaped", "raised"]
    assert [row.row for row in (small, bigger, raised)] == [BARE, BARE + 1, BARE + 2]
    assert (bigger.asked, bigger.launched) == (16, 21)
    assert refused.row == found.row == BARE + 3 and refused.reason == "refused" and refused.recorded
    assert (refused.kernel, refused.library, refused.rule, refused.asked, refused.blocks) == ("k", "libx.so", 7, 0, 99)
    assert of_bigger.row == BARE + 4 and of_bigger.asked == 16
    assert (refused.launched, of_bigger.launched) == (0, 16), "as asked"
    assert (of_none.row < BARE, of_none.reason, of_none.recorded) == (True, "refused", False)
    assert (found.launched, back) == (5, small), "the last decision's"
    assert [row.row for row in others] == [BARE + 5, BARE + 6, BARE + 7], "other registers, static memory, library"
    assert (others[2].library, others[2].kernel) == ("liby.so", "k")


def test_every_reason_of_a_kernel_is_counted_as_it_is(corners: Callable[..., list[str]], library: Any) -> None:
    names = reasons_of(library)
    rows = seen(corners("every"))
    assert [row.reason for row in rows] == 2 * names
    assert [row.row for row in rows] == 2 * list(range(BARE, BARE + len(names)))


def test_a_full_page_counts_on(corners: Callable[..., list[str]]) -> None:
    count, *lines = corners("full")
    assert count == f"64 {BARE + 63} {OF_COMPUTATION - BARE - 65} {OF_COMPUTATION - 1}", "65: one is of the rule"
    (shaped, newer, one_wave, refused, new_refused, first, raised, other_rule) = seen(lines[:8])
    of_rule = [shaped, newer, one_wave, refused, new_refused, other_rule]
    assert all(row.row >= OF_COMPUTATION and row.recorded for row in of_rule)
    assert not any(row.kernel or row.library or row.blocks for row in of_rule)
    assert [row.rule for row in of_rule] == [7, 7, 7, 7, 7, 8]
    assert shaped == newer and refused == new_refused, "all kernels of the rule"
    assert [row.reason for row in (shaped, one_wave, refused)] == ["shaped", "one_wave", "refused"]
    assert first.recorded and first.kernel == "k0", "what has a row keeps it"
    assert raised.kernel == "nccl", "communication comes late"
    last, bare, late, of_last, again = seen(lines[9:])
    taken = len({row.row for row in [*of_rule, raised]})
    # The first and the last of those that were tried are not new: that of rule 8, and one that found no row.
    assert int(lines[8]) == ROWS - OF_COMPUTATION - taken + 2
    assert (last.row, last.rule, last.recorded) == (ROWS - 1, 8 + int(lines[8]) - 2, True), "not one is left over"
    assert (bare.reason, bare.row < BARE, bare.recorded) == ("shaped", True, False)
    assert [row.row < BARE for row in (late, of_last)] == [True, True]
    assert (late.reason, of_last.reason) == ("communication", "refused")
    assert again == raised, "what has a row keeps it"


def test_communication_has_rows_of_its_own_and_rules_more(corners: Callable[..., list[str]]) -> None:
    count, *lines = corners("late")
    # One of the rows of communication went to the rule of computation.
    assert count == f"{ROWS - 56 - OF_COMPUTATION - 1} {ROWS - 57}"
    rows = seen(lines)
    found = [row for row in rows if row.recorded]
    assert [row.row for row in found] == list(range(ROWS - 55, ROWS)), "one of these went to that of communication"
    assert len({row.rule for row in found}) == 55 and {row.reason for row in rows} == {"no_rule"}
    assert all(row.row < BARE for row in rows[55:])


def test_damage_is_within_bounds(corners: Callable[..., list[str]]) -> None:
    reasons = list(map(int, corners("damaged")[0].split()))
    assert reasons[:BARE] == list(range(BARE))
    # A key of 0 is free; one that is only a reason is not.
    assert reasons[BARE : BARE + 64] == [BARE - 1, *range(1, BARE), *[BARE - 1] * 24]
    assert set(reasons[BARE + 64 :]) == {BARE - 1}
