"""Streams that are waited for: what a page lists, and what the report says of those that were left as they were."""

from __future__ import annotations

import json

import pytest

from pyshim import _native
from pyshim.report import streams, text
from pyshim.report.collect import collect
from pyshim.report.findings import remarks
from pyshim.stats.page import read_page

# bits of `why`, members of `status`
COMMUNICATION, HOST, FEEDING = 1, 2, 4
LEARNING, RAISED, MAJOR, PROGRAMS, FIXED = range(5)
HALO = {"why": COMMUNICATION, "status": RAISED, "share": 31, "priority": -5, "launches": 6040, "creator": "libhalo.so"}
SIX = {("symbol", "critical"): 6040, ("runtime", "communication"): 6040}


def shown(report) -> str:
    return "\n".join(remarks(collect(str(report), waiting_room="/nonexistent")))


def test_a_page_lists_them(write_page):
    path = write_page(
        SIX,
        streams=[
            HALO,
            {"device": 3, "why": HOST | FEEDING, "status": LEARNING, "share": 1000},
            {"why": 1 << 20, "status": 77, "priority": 2, "creator": "x" * 48},
        ],
    )
    page = read_page(str(path))
    assert page.critical == 6040
    first, second, third = page.streams
    assert first == (0, ("communication",), "raised", 3.1, -5, 6040, "libhalo.so")
    assert second == (3, ("host_waits", "feeding"), "learning", 100.0, None, 0, "")
    assert third == (0, (), "status_77", 0.0, 2, 0, "x" * 48)


def test_one_that_is_being_written_is_not_there_yet(write_page):
    path = write_page(SIX, streams=[HALO, HALO])
    data = bytearray(path.read_bytes())
    _native.ffi.from_buffer("struct overlap_page *", data).streams[0].state = 1
    path.write_bytes(data)
    assert len(read_page(str(path)).streams) == 1


@pytest.mark.hazard("input", "streams in a damaged page end a report in a traceback")
def test_a_page_whose_streams_are_damaged(overlap, report, write_page):
    most = 2**32 - 1
    wild = {"device": most, "why": most, "status": most, "share": most, "priority": -(2**31), "launches": 2**64 - 1}
    write_page(SIX, streams=[{**wild, "creator": "\x1b[31m\u202e"}, {"status": 77}, {"status": FIXED}] * 5)
    page = report.parent / "page.html"
    for options in ((), ("--json",), ("--html", str(page))):
        done = overlap("report", str(report), *options)
        assert done.returncode == 0 and "Traceback" not in done.stderr and "\x1b" not in done.stdout + done.stderr
    assert "status_77" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        (0, "has the priority of its stream; none of its launches was raised individually"),
        (40, "the 40 of 6,040 launches that count as raised were raised individually"),
    ],
)
def test_communication_on_a_raised_stream_is_not_called_left_alone(report, write_page, library, counted, expected):
    counters = {library.OVERLAP_COUNTER_COMMUNICATION: 6040, library.OVERLAP_COUNTER_RAISED: counted}
    write_page(SIX, counters=counters, streams=[HALO, {**HALO, "why": HOST}, {**HALO, "status": MAJOR}])
    said = shown(report)
    assert "raised with the stream: NCCL or RCCL on 1 stream has the priority of its stream" in said
    assert expected in said


def test_a_run_as_it_should_be_has_no_notes_but_with_full(overlap, report, write_page, library):
    """The computing stream is left alone in every run in which another stream is raised."""
    counters = {library.OVERLAP_COUNTER_COMMUNICATION: 40, library.OVERLAP_COUNTER_RAISED: 40}
    write_page(SIX, counters=counters, streams=[HALO, {"why": FEEDING, "status": MAJOR, "share": 941}])
    brief, full = overlap("report", str(report)).stdout, overlap("report", str(report), "--full").stdout
    assert "note: " not in brief and "--full adds notes and tables" in brief
    assert full.count("note: ") == 2 and "note: raised with the stream" in full and "note: not raised, major" in full
    assert remarks(collect(str(report), waiting_room="/nonexistent"), full=False) == []
    assert len(json.loads(overlap("report", str(report), "--json").stdout)["remarks"]) == 2


def test_where_no_stream_was_raised_the_one_with_most_computation_is_named_at_once(overlap, report, write_page):
    write_page(SIX, streams=[{"why": FEEDING, "status": MAJOR, "share": 941}])
    assert "note: not raised, major: 1 stream of " in overlap("report", str(report)).stdout


def test_without_communication_there_is_nothing_to_add(report, write_page):
    write_page(SIX, streams=[{**HALO, "why": HOST}])
    assert shown(report) == ""


def test_what_was_left_alone_is_named(report, write_page):
    write_page(SIX, pid=7, rank=0, streams=[{**HALO, "status": MAJOR, "share": 635, "priority": 0, "launches": 0}])
    write_page(
        SIX,
        pid=8,
        rank=1,
        streams=[
            {**HALO, "status": MAJOR, "share": 711, "priority": 0, "launches": 0, "why": HOST},
            {"why": FEEDING, "status": PROGRAMS, "share": 10},
            {"why": HOST, "status": FIXED, "share": 10, "creator": "libmpi.so"},
            {"why": HOST, "status": LEARNING},
        ],
    )
    major, programs, fixed = shown(report).splitlines()
    assert major.startswith(
        "not raised, major: 2 streams of ranks 0-1 on node1 (made by libhalo.so; carries communication, "
        "the host waits for it) had 63.5 to 71.1 % of the computation of the device between two waits, more than "
        "`share` under `critical` in the policy."
    )
    assert programs == (
        "not raised, programs: 1 stream of rank 1 on node1 (feeds a critical stream) kept the "
        "priority that the program has set"
    )
    assert fixed.startswith("not raised, fixed: 1 stream of rank 1 on node1 (made by libmpi.so; the host")
    assert "cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest)" in fixed


def test_on_amd_the_line_to_write_is_hips(report, write_page):
    streams_ = [{"why": HOST, "status": FIXED}]
    write_page({("symbol", "no_rule"): 1}, devices=(("AMD Instinct MI250X", "mi250x"),), streams=streams_)
    assert "`hipDeviceGetStreamPriorityRange(&least, &greatest); hipStreamCreateWithPriority(&stream, " in shown(report)


def test_json_has_them_by_process_and_their_launches_in_all(overlap, report, write_page):
    write_page(SIX, pid=7, rank=0, streams=[HALO])
    write_page(SIX, pid=8, rank=1, streams=[{"why": HOST | FEEDING, "status": MAJOR, "share": 500}])
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    first, second = answer["processes"]
    assert (first["critical"], answer["totals"]["critical"]) == (6040, 12080)
    assert first["streams"] == [
        {
            "device": 0,
            "why": ["communication"],
            "status": "raised",
            "share_percent": 3.1,
            "priority": -5,
            "launches": 6040,
            "library": "libhalo.so",
        }
    ]
    (major,) = second["streams"]
    assert (major["why"], major["status"], major["priority"]) == (["host_waits", "feeding"], "major", None)


def test_the_text_has_a_row_for_streams_of_one_kind(overlap, report, write_page, library):
    counters = {library.OVERLAP_COUNTER_STREAMS_RAISED: 1}
    for rank in range(4):
        write_page(SIX, pid=7 + rank, rank=rank, counters=counters, streams=[{**HALO, "share": 30 + rank}])
    write_page(SIX, pid=20, rank=4, streams=[{**HALO, "status": MAJOR, "share": 500, "priority": 0, "launches": 0}])
    collected = collect(str(report), waiting_room="/nonexistent")
    assert streams.rows(collected) == [
        ["4", "libhalo.so", "communication", "3.0 to 3.3 %", "24,160", "raised to -5"],
        ["1", "libhalo.so", "communication", "50.0 %", "0", "left alone: major"],
    ]
    done = overlap("report", str(report), "--full")
    lines = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    assert ["streams", "made", "by", "critical", "by", "share", "launches", "outcome"] in lines
    (head,) = [line for line in lines if line[:2] == ["process", "rank"]]
    assert head[4:] == ["launches", "shaped", "comm", "raised", "critical"]  # what is too wide comes below
    (all_,) = [line for line in lines if line[:2] == ["all", "5"] and len(line) > 3]
    assert all_[-1] == "30,200"
    assert [
        "4",
        *["streams", "created", "with", "a", "higher", "priority", "than", "the", "program", "asks", "for"],
    ] in lines


def test_many_kinds_of_streams_are_cut(report, write_page):
    write_page(SIX, streams=[{**HALO, "creator": f"lib{index}.so"} for index in range(16)])
    rows = streams.rows(collect(str(report), waiting_room="/nonexistent"))
    assert len(rows) == 13 and rows[-1][:2] == ["4", "more: --json"]


def test_without_critical_launches_there_is_no_column(report, write_page):
    write_page({("symbol", "no_rule"): 1})
    collected = collect(str(report), waiting_room="/nonexistent")
    assert "critical" not in text.heads(collected) and streams.rows(collected) == []
    assert len(text.processes(collected)[0]) == len(text.heads(collected))


def test_the_trace_names_the_reason(report, record, library, overlap):
    reasons = [_native.text(library.overlap_reason_name(index)) for index in range(35)]
    flags = library.OVERLAP_TRACE_RAISED
    (report / "node1.7.0.trace").write_bytes(record(0, reason=reasons.index("critical"), priority=-5, flags=flags))
    (line,) = overlap("report", str(report), "--launches", "--json").stdout.splitlines()
    launch = json.loads(line)
    assert (launch["reason"], launch["priority"], launch["stream"]) == ("critical", -5, "0x0")


def test_launches_of_a_kernel_that_were_raised_are_counted_as_such(report, write_page):
    """By the row of the kernel: there are none in a page made by hand, whose launches all count for none."""
    write_page({("symbol", "critical"): 5, ("symbol", "no_rule"): 4})
    collected = collect(str(report), waiting_room="/nonexistent")
    (row,) = text.by_kernel(collected)
    heads = text.kernel_heads(collected)
    assert heads[4:6] == ["raised", "critical"], "named as in the object of --json"
    assert (row[1], row[4:6], row[7]) == ("9", ["0", "5"], "critical")
