"""What every kernel's launches were counted as, in the pages of real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, ONE, Runner, rule, smallest_size
from iterating import AUTO, STYLE_0, Iterations

from pyshim.pages.page import Page
from pyshim.report.collect import collect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pages"
    made.mkdir()
    return made


def only(folder: Path) -> Page:
    (page,) = collect(str(folder)).pages
    assert sum(row.launches for row in page.rows) == page.launches
    return page


def told(page: Page) -> list[tuple[str, str, int]]:
    return sorted((row.kernel, row.reason, row.launches) for row in page.rows)


def test_kernels_and_what_they_take(preloaded: Runner, folder: Path) -> None:
    words = f"ptx=k lib=other repeat=5 launch=k,{BLOCKS},256,0 repeat=3 launch=k,{BLOCKS},128,64 launch=other,1,32,0"
    preloaded(words, ONE, report=folder)
    page = only(folder)
    by = {(row.kernel, row.threads, row.dynamic_shared_memory): row for row in page.rows}
    assert {key: row.launches for key, row in by.items()} == {("k", 256, 0): 5, ("k", 128, 64): 3, ("other", 32, 0): 1}
    first, second, other = by["k", 256, 0], by["k", 128, 64], by["other", 32, 0]
    assert (first.reason, first.blocks, first.resident_blocks, first.registers) == ("shaped", BLOCKS, 8, 32)
    assert first.launched_shared_memory == second.launched_shared_memory == smallest_size(1)
    assert (other.reason, other.launched_shared_memory, other.blocks) == ("one_wave", 0, 1)
    assert {(row.inside, row.device, row.rule) for row in by.values()} == {(None, 0, 0)}
    assert first.library.startswith("client-") and first.plain == "k"


def test_rules_are_there_whether_or_not_they_match(preloaded: Runner, folder: Path) -> None:
    policy = (
        "streams: {raise: off}\ncompute:\n"
        '  - {match: {kernel: "never*"}, shape: make_room}\n'
        '  - {match: {kernel: "k"}, shape: {blocks_per_sm: 50%}, when: always}\n'
        '  - {match: {kernel: "*"}, shape: {dynamic_shared_memory: 96KiB}, when: always}\n'
        '  - {match: {kernel: "*"}, shape: leave, when: always}'
    )
    preloaded(f"ptx=k lib=other launch=k,{BLOCKS},256,0 launch=other,{BLOCKS},256,0", policy, report=folder)
    page = only(folder)
    assert [(rule.shape, rule.when) for rule in page.rules] == [
        ("make_room", "overlapping"),
        ("blocks_per_sm: 50%", "always"),
        ("dynamic_shared_memory: 96KiB", "always"),
        ("leave", "always"),
    ]
    lines = [rule.line for rule in page.rules]
    assert lines == list(range(lines[0], lines[0] + 4))
    assert {rule.policy for rule in page.rules} == {"test"}
    assert {row.kernel: row.rule for row in page.rows} == {"k": 1, "other": 2}


def test_by_where_a_launch_was(iterations: Iterations, folder: Path) -> None:
    words = "k:2:4000 k:2:4000 c:1 k:2:4000 k:2:4000 k:2:4000 k:1:4000 s:1 k:2:4000 B:3 k:3:4000 G begin"
    iterations(words, 0, rule("{blocks_per_sm: 1}", when="overlapping"), report=folder)
    page = only(folder)
    of = {(row.reason, row.inside): row for row in page.rows if row.kernel == "k"}
    assert {key: row.launches for key, row in of.items()} == {
        ("shaped", True): 3,
        ("not_overlapping", False): 4,
        ("captured", None): 1,
    }
    inside, outside = next(row for row in of.values() if row.inside), of["not_overlapping", False]
    assert inside.launched_shared_memory > outside.launched_shared_memory == inside.dynamic_shared_memory == 0


def test_raised_and_not(iterations: Iterations, folder: Path) -> None:
    iterations(STYLE_0, 8, report=folder)
    page = only(folder)
    assert told(page) == [
        ("j", "rule_leave", 8),
        ("k", "raised", 7),
        ("k", "rule_leave", 1),
        (NCCL, "communication", 8),
    ]
    assert page.raised == 14


def test_a_refused_launch_has_a_row_of_the_same_kernel(preloaded: Runner, folder: Path) -> None:
    words = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"
    done = preloaded(words, ONE, env={"SIMGPU_REFUSE": "k:50000"}, report=folder)
    assert done.totals["refused"] == 1
    page = only(folder)
    assert told(page) == [("k", "refused", 3)]
    assert page.rows[0].rule == 0 and page.rows[0].threads == 256


def test_more_kernels_than_rows_are_counted_all_the_same(preloaded: Runner, folder: Path) -> None:
    """Each size is a row of its own."""
    words = [f"ptx=k lib={NCCL}"] + [f"launch=k,{BLOCKS},256,{16 * size}" for size in range(400)]
    words += [f"launch={NCCL},16,256,0"] * 3
    preloaded(" ".join(words), ONE + "\n", report=folder)
    page = only(folder)
    assert page.launches == 403
    of_rule = [row for row in page.rows if not row.kernel]
    assert sum(row.launches for row in of_rule) == 200
    assert {(row.device, row.rule, row.threads, row.recorded) for row in of_rule} == {(None, 0, 0, True)}
    assert len([row for row in page.rows if row.kernel == "k"]) == 200
    assert [row.launches for row in page.rows if row.kernel == NCCL] == [3], "communication comes late"


OFF = "streams: {raise: off}"


@pytest.mark.parametrize("policy", [AUTO, OFF], ids=["default", "observe"])
def test_waits_are_counted(policy: str, iterations: Iterations) -> None:
    """Stream, event, its query, context, copy; a query that finds work and a stream's wait for another are none."""
    done = iterations("k:1:8 s:1 r:1:1 e:1 r:2:1 Q:2 x m w:2:1 k:2:8", 40, policy)
    (process,) = done.report["processes"]
    assert 5 * 40 <= process["waits"] < 6 * 40
