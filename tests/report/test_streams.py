"""Streams that were judged: what a page lists, and what the report says of those that were not raised."""

from __future__ import annotations

import json

import pytest

from pyshim import _native
from pyshim._native import STREAM_STATUSES
from pyshim.pages.page import read_page
from pyshim.report import streams
from pyshim.report.collect import collect
from pyshim.report.verdict import verdict

STATUS = {name: number for number, name in enumerate(STREAM_STATUSES, 1)}
HALO = {
    **{"status": STATUS["raised"], "share": 31, "communicates": 1, "priority": -5, "work": 6040},
    "creator": "libhalo.so",
    "since": 1,
}
SIX = {"raised": 6040, "communication": 6040}


def of(report):
    return collect(str(report), waiting_room="/nonexistent")


def left(name: str, **fields) -> dict:
    return {"status": STATUS[name], **fields}


def test_a_page_lists_them(write_page):
    page = read_page(
        str(
            write_page(
                SIX,
                streams=[
                    HALO,
                    left("large", device=3, share=1000, work=2**40),
                    {"status": 77, "priority": 2, "creator": "x" * 48},
                ],
            )
        )
    )
    first, second, third = page.streams
    assert first == (0, "raised", 0.031, True, -5, 6040, "libhalo.so", 1)
    assert second == (3, "large", 1.0, False, None, 2**40, "", 0)
    assert third == (0, "status_77", 0.0, False, 2, 0, "x" * 48, 0)


def test_statuses_are_those_of_the_library(library):
    assert {name: getattr(library, f"OVERLAP_STREAM_{name.upper()}") for name in STATUS} == STATUS
    assert {*streams.WHY, "raised"} == {*STREAM_STATUSES}


def test_one_that_is_being_written_is_not_there_yet(write_page):
    path = write_page(SIX, streams=[HALO, HALO])
    data = bytearray(path.read_bytes())
    _native.ffi.from_buffer("struct overlap_page *", data).streams[0].state = 1
    path.write_bytes(data)
    assert len(read_page(str(path)).streams) == 1


def test_a_page_whose_streams_are_damaged(overlap, report, write_page):
    most = 2**32 - 1
    wild = {
        "device": most,
        "communicates": most,
        "status": most,
        "share": most,
        "priority": -(2**31),
        "work": 2**64 - 1,
    }
    write_page(SIX, streams=[{**wild, "creator": "\x1b[31m\u202e"}, {"status": 77}, left("fixed")] * 5)
    for options in ((), ("--json",), ("--full",)):
        done = overlap("report", str(report), *options)
        assert done.returncode == 0 and "Traceback" not in done.stderr and "\x1b" not in done.stdout + done.stderr
    assert "status_77" in done.stdout


@pytest.mark.parametrize("name", STREAM_STATUSES)
def test_each_stream_is_raised_or_the_condition_that_failed_is_said(name, overlap, report, write_page):
    """In JSON by its word, in the tables as a sentence; in the verdict where nothing was changed."""
    write_page({"no_rule": 9}, streams=[left(name, share=710)])
    (stream,) = json.loads(overlap("report", str(report), "--json").stdout)["processes"][0]["streams"]
    assert stream["status"] == name
    outcome = "raised" if name == "raised" else f"not raised: {streams.WHY[name]}"
    assert [row[-1] for row in streams.rows(of(report))] == [outcome]
    said = verdict(of(report))
    if name == "raised":
        assert said.done.startswith("raised 1 of 1 stream (0 of 9 launches), 0 shaped, ")
        assert "; nothing was launched on a stream while it was raised: at most its copies may have" in said.gain
    else:
        share = " (71.0 %)" * (name in ("large", "together"))
        assert said.gain == f"nothing was changed: no stream is raised: 1 stream: {streams.WHY[name]}{share}"


def test_streams_of_one_condition_are_counted_together(report, write_page):
    write_page(SIX, streams=[left("large", share=400), left("default"), left("large", share=600, creator="libx.so")])
    assert streams.conditions(of(report)) == [
        "2 streams: more of the computation than `streams: {raise: ...}` in the policy allows (40.0 to 60.0 %)",
        "1 stream: default stream",
    ]


def test_of_one_condition_those_of_most_work_come_first(report, write_page):
    made = [("liba.so", 5), ("libb.so", 2), ("libc.so", 9), ("libb.so", 6)]
    write_page(SIX, streams=[left("large", work=work, creator=creator) for creator, work in made])
    rows = [(row[1], row[4]) for row in streams.rows(of(report))]
    assert rows == [("libc.so", "9"), ("libb.so", "8"), ("liba.so", "5")]


def test_a_run_as_it_should_be_has_no_notes_but_with_full(overlap, report, write_page):
    """The computing stream is left alone in every run in which another stream is raised."""
    write_page(SIX, streams=[HALO, left("large", share=941)])
    brief, full = overlap("report", str(report)).stdout, overlap("report", str(report), "--full").stdout
    assert "note: " not in brief and len(brief.splitlines()) == 4
    assert full.count("note: ") == 1 and "note: not raised, large: 1 stream of process node1:100 (lately 94.1 %" in full
    assert len(json.loads(overlap("report", str(report), "--json").stdout)["remarks"]) == 1


def test_what_the_driver_refused_is_said(overlap, report, write_page):
    write_page(SIX, streams=[HALO, left("fixed", creator="libmpi.so", share=10)])
    (note,) = [line for line in overlap("report", str(report), "--full").stdout.splitlines() if "fixed" in line]
    assert note.startswith("note: not raised, fixed: 1 stream of process node1:100 (made by libmpi.so; lately 1.0 % of")


def test_json_has_them_by_process(overlap, report, write_page, library):
    counters = {library.OVERLAP_COUNTER_RAISED: 12080, library.OVERLAP_COUNTER_JUDGEMENTS: 7}
    write_page(SIX, pid=7, rank=0, streams=[HALO], counters=counters)
    write_page(SIX, pid=8, rank=1, streams=[left("together", share=500)], counters=counters)
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    first, second = answer["processes"]
    assert (first["raised"], answer["totals"]["raised"], answer["totals"]["judgements"]) == (12080, 24160, 14)
    assert first["streams"] == [
        {
            "device": 0,
            "status": "raised",
            "share": 0.031,
            "communicates": True,
            "priority": -5,
            "work": 6040,
            "creator": "libhalo.so",
            "since": 1,
            "outcome": "raised",
        }
    ]
    (other,) = second["streams"]
    assert (other["communicates"], other["status"], other["priority"]) == (False, "together", None)


def test_the_text_has_a_row_for_streams_of_one_kind(overlap, report, write_page, library):
    counters = {library.OVERLAP_COUNTER_STREAMS_CREATED_RAISED: 1}
    for rank in range(4):
        write_page(SIX, pid=7 + rank, rank=rank, counters=counters, streams=[{**HALO, "share": 30 + rank}])
    write_page(SIX, pid=20, rank=4, streams=[{**HALO, **left("not_waited"), "share": 500, "priority": 0}])
    assert streams.rows(of(report)) == [
        ["4", "libhalo.so", "yes", "3.0 to 3.3 %", "24,160", "raised to -5"],
        ["1", "libhalo.so", "yes", "50.0 %", "6,040", "not raised: no wait between the last two judgements"],
    ]
    done = overlap("report", str(report), "--full")
    lines = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    assert ["streams", "made", "by", "comm", "last", "share", "work", "outcome"] in lines
    assert [
        "4",
        *["streams", "created", "with", "a", "higher", "priority", "than", "the", "program", "asks", "for"],
    ] in lines


def test_many_kinds_of_streams_are_cut(report, write_page):
    write_page(SIX, streams=[{**HALO, "creator": f"lib{index}.so"} for index in range(16)])
    rows = streams.rows(of(report))
    assert len(rows) == 13 and rows[-1][:2] == ["4", "more: --json"]
