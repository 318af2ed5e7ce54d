"""Launches of which no row tells kernel and rule: what is not known of a rule is not said of it, and is no finding."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from interposing import BLOCKS

from pyshim.pages.page import Page, PageRule, Row
from pyshim.report.collect import Collected, collect
from pyshim.report.findings import findings, remarks
from pyshim.report.kernels import rules

FULL = """\
streams: {raise: off}
compute:
  - {match: {kernel: "k"}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "*"}, shape: leave, when: always}"""


def test_a_page_without_room_is_no_finding(preloaded, pages, overlap):
    """300 sizes of another kernel come first. Further kinds have one row for their rule."""
    others = [f"launch=other,{BLOCKS},256,{16 * size}" for size in range(300)]
    preloaded(" ".join(["ptx=k lib=other", *others, f"repeat=50 launch=k,{BLOCKS},256,0"]), FULL, report=pages)
    done = overlap("report", str(pages), "--check")
    assert done.returncode == 0 and "never matched" not in done.stdout
    answer = json.loads(overlap("report", str(pages), "--json").stdout)
    assert answer["totals"]["shaped"] == 50 and answer["findings"] == []
    (process,) = answer["processes"]
    assert process["unrecorded"] == answer["totals"]["unrecorded"]
    nameless = sum(kernel["launches"] for kernel in answer["kernels"] if not kernel["kernel"])
    assert process["unrecorded"] == nameless > 50
    said = overlap("report", str(pages), "--full")
    shown = said.stdout + said.stderr
    assert f"{nameless:,} of 350 launches of " in shown and "counted without their kernel" in shown
    assert "(not recorded)" in shown


RECORD = Row("k", "k", "lib", "shaped", 0, None, 5, 0, 256, 32, 0, 0, 0, 9, 8)
CAP = PageRule("mine", 4, "blocks_per_sm: 1", "always")
WINDOWS, LEAVE = CAP._replace(line=5, when="overlapping"), CAP._replace(line=6, shape="leave")


def bare(reason: str, launches: int = 3, inside: bool | None = None) -> Row:
    return RECORD._replace(
        kernel="", plain="", library="", rule=None, reason=reason, launches=launches, inside=inside, recorded=False
    )


@pytest.fixture
def page(write_page, tmp_path: Path) -> Page:
    """Return the page of one H100 under policy `h100`."""
    return replace(collect(str(write_page({"no_rule": 1}).parent)).pages[0])


def of(page: Page, *rows: Row, also: tuple[PageRule, ...] = ()) -> Collected:
    """Of rules of which the first is CAP."""
    return Collected(("x",), (), (replace(page, launches=20, rows=rows, rules=(CAP, *also)),), ())


@pytest.mark.parametrize(
    ("row", "unsure"),
    [
        (bare("shaped"), [4, 5]),
        (bare("not_overlapping", inside=False), [5]),
        (bare("below_keep"), [4, 5]),
        (bare("rule_leave"), [6]),
        (bare("no_rule"), []),
        (bare("observe_only"), []),
        (bare("communication"), []),
        (bare("unknown_footprint"), []),
    ],
    ids=lambda value: value.reason if isinstance(value, Row) else "",
)
def test_whose_it_may_be(row, unsure, page):
    collected = of(page, RECORD._replace(reason="no_rule", rule=None), row, also=(WINDOWS, LEAVE))
    assert [use.rule.line for use in rules(collected) if use.unsure] == unsure
    never = [int(said.split(":")[1].split()[0]) for said in findings(collected) if "never matched" in said]
    assert never == [line for line in (4, 5, 6) if line not in unsure]
    (note,) = [said for said in remarks(collected) if "by reason alone" in said]
    assert note.startswith("3 of 20 launches of process node1:100 were counted without their kernel")
    assert ("mine:5" in note) == (5 in unsure)


def test_what_matched_and_may_have_acted(page):
    seen = RECORD._replace(reason="below_keep")
    assert any("never acted" in said for said in findings(of(page, seen, bare("below_keep"))))
    assert not any("never acted" in said for said in findings(of(page, seen, bare("shaped"))))


def test_a_row_of_a_rule_without_a_kernel_is_the_rules(page):
    """Where no room is left a rule has one row for all kernels."""
    (use,) = rules(of(page, RECORD._replace(kernel="", plain="", library="", threads=0, device=None)))
    assert (use.matched, use.acted, use.unsure, use.launches, use.kernels) == (True, True, False, 5, 0)
