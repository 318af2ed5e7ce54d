"""Rows of the statistics page and the times in it: the C code itself, plainly and under the sanitizers."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import pytest

CORE = ("core/rows.c", "core/match.c", "core/stats.c")
TSAN, ASAN = ("-fsanitize=thread",), ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
NO_REPORT = {"TSAN_OPTIONS": "halt_on_error=1 exitcode=66"}
BARE, ROWS, SAMPLES = 40, 320, 512


class Seen(NamedTuple):
    row: int
    head: int
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


def seen(lines: list[str]) -> list[Seen]:
    found = []
    for line in lines:
        numbers, kernel, _, plain, _, library, last = line.split("'")
        row, head, reason, record = numbers.split()
        found.append(
            Seen(int(row), int(head), reason, record == "record", kernel, plain, library, *map(int, last.split()))
        )
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


def test_reasons_by_place_in_the_group(corners: Callable[..., list[str]]) -> None:
    rows = seen(corners("reasons"))
    inside, single, bigger = rows[0], rows[4], rows[5]
    assert [row.reason for row in rows[:4]] == ["shaped", "not_overlapping", "window_expired", "same_stream"]
    assert [row.row for row in rows[:4]] == [inside.row + step for step in range(4)]
    assert {row.head for row in rows[:4]} == {inside.row}
    assert len({inside.row, single.row, bigger.row}) == 3, "another kind, another size: rows of their own"
    assert (bigger.asked, bigger.launched) == (16, 21)
    assert [row.reason for row in rows[6:8]] == ["communication"] * 2 and rows[7].head == rows[6].row
    refused, from_group, of_bigger, of_none, found, *others = rows[8:]
    *_, elsewhere = others
    assert len({row.row for row in (single, *others)}) == 4, "other registers, other static memory, another library"
    assert (elsewhere.library, elsewhere.kernel) == ("liby.so", "k") and elsewhere.row not in {
        row.row for row in rows[:-1]
    }
    assert refused == from_group and refused.row == found.row and refused.reason == "refused"
    assert (refused.kernel, refused.library, refused.rule, refused.asked, refused.blocks) == ("k", "libx.so", 7, 0, 99)
    assert of_bigger.row != refused.row and of_bigger.asked == 16
    assert (refused.launched, of_bigger.launched) == (0, 16), "as asked"
    assert (of_none.row < BARE, of_none.reason, of_none.recorded) == (True, "refused", False)


def test_a_full_page_counts_on(corners: Callable[..., list[str]]) -> None:
    count, *lines = corners("full")
    assert count == f"64 {BARE + 63} {200 - 65} 239"
    (shaped, newer, one_wave, outside, refused, of_last, first, raised, other_rule, *no_room) = seen(lines)
    of_rule = [shaped, newer, one_wave, outside, refused, of_last, other_rule]
    assert all(row.row > 239 and not row.kernel and not row.library and not row.blocks for row in of_rule)
    assert [row.rule for row in of_rule if row.recorded] == [7, 7, 7, 7, 7, 8], (
        "one of them is not the first of its group"
    )
    assert shaped == newer and refused == of_last, "all kernels of the rule"
    assert (outside.reason, refused.reason) == ("same_stream", "refused")
    assert first.recorded and first.kernel == "k0", "what has a row keeps it"
    assert raised.kernel == "nccl", "communication comes late"
    bare, inside, again, capped, late = no_room
    assert (bare.reason, bare.row < BARE, bare.recorded) == ("shaped", True, False)
    assert inside.row >= BARE and not inside.recorded and inside == again, "one group for every rule"
    assert inside.row + 4 == capped.row and capped.row + 4 == late.row == ROWS - 2
    assert (inside.reason, capped.reason, late.reason) == ("shaped", "capped_without_room", "communication")


def test_damage_is_within_bounds(corners: Callable[..., list[str]]) -> None:
    assert corners("damaged") == ["end"]


def expected(launches: int) -> tuple[list[int], int]:
    """Numbers of the launches that leave their time, and how many do: by what the header says."""
    taken, number = [], 0
    while number + 2 ** min(len(taken) // SAMPLES, 8) <= launches:
        number += 2 ** min(len(taken) // SAMPLES, 8)
        taken.append(number)
    return taken[-SAMPLES:], len(taken)


@pytest.mark.parametrize("launches", [0, 1, 512, 513, 514, 5000, 200_000, 400_000])
def test_every_2_to_the_n_th_leaves_its_time(launches: int, corners: Callable[..., list[str]]) -> None:
    taken, *lines = corners("cadence", 1, launches)
    kept, count = expected(launches)
    assert int(taken) == count
    samples = sorted(tuple(map(int, line.split())) for line in lines)
    assert samples == [(number, number, 1) for number in kept]
    assert launches < 400_000 or kept[-1] - kept[-2] == 256, "the longest distance is reached"


@pytest.mark.parametrize("shards", [2, 7])
def test_threads_leave_times_of_their_own_and_the_sum_is_right(shards: int, corners: Callable[..., list[str]]) -> None:
    launches = 100_000
    samples = sorted(tuple(map(int, line.split())) for line in corners("cadence", shards, launches)[1:])
    assert len(samples) == SAMPLES
    assert all(abs(said - number) <= shards * 256 and whole for said, number, whole in samples)


def test_a_new_thread_does_not_begin_with_a_time(corners: Callable[..., list[str]]) -> None:
    """Its first launch is one, and the time that it would leave stands for many."""
    *firsts, last = map(int, corners("newcomers", 4, 5000)[0].split())
    _, taken = expected(5000)
    _, all_taken = expected(20_000)
    assert firsts[0] == taken, "that of the first thread, and none since"
    assert abs(last - all_taken) <= 4


@pytest.mark.parametrize("flags", [(), TSAN], ids=["plain", "tsan"])
def test_threads_that_claim_at_once_share_a_row(flags: tuple[str, ...], compile_c: Any, run_program: Any) -> None:
    program = compile_c("rows_stress.c", *CORE, flags=flags, name=f"rows_stress-{len(flags)}")
    for kernels, rounds in ((30, 300), (400, 30)):
        differ, shared, added, counted, of_kernels, records = map(
            int, run_program(program, kernels, rounds, **NO_REPORT).split()
        )
        assert (differ, shared) == (0, 0)
        assert added == counted == kernels * rounds * 8
        if kernels == 30:  # there is room for all
            assert of_kernels == counted and records == 2 * kernels
        else:
            assert of_kernels < counted and records > 100
