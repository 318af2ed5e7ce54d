from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshim.stats.file import Unreadable
from pyshim.stats.page import names
from pyshim.stats.trace import Launch, read_trace


def test_a_record_says_everything_about_a_launch(report, record, library):
    shaped = names(library.overlap_reason_name).index("shaped")
    flags = library.OVERLAP_TRACE_RAISED | library.OVERLAP_TRACE_WINDOWED | library.OVERLAP_TRACE_OVERLAPPING
    numbers = {"blocks": 1 << 40, "threads": 256, "asked": 48, "launched": 4096, "priority": -5, "device": 1}
    path = report / "node.with.dots.7.2.trace"
    path.write_bytes(record(3, stream=0xABC, flags=flags, reason=shaped, overlaps=2, **numbers))
    trace = read_trace(str(path))
    assert (trace.host, trace.skipped) == ("node.with.dots", 0)
    assert trace.launches == (
        Launch(
            pid=7,
            sequence=3,
            device=1,
            stream="0xabc",
            kernel="gemm",
            library="libcublasLt.so.13",
            blocks=1 << 40,
            threads=256,
            asked=48,
            launched=4096,
            priority=-5,
            overlapping=True,
            could_overlap=1,
            reason="shaped",
        ),
    )


@pytest.mark.parametrize(("overlaps", "could_overlap"), [(0, None), (1, 0), (77, 76), (2**64 - 1, 2**64 - 2)])
def test_the_communication_beside_it_has_a_number_or_none(report, record, overlaps, could_overlap):
    path = report / "node.7.0.trace"
    path.write_bytes(record(0, flags=6, overlaps=overlaps))
    (launch,) = read_trace(str(path)).launches
    assert (launch.overlapping, launch.could_overlap) == (True, could_overlap)


@pytest.mark.parametrize(("flags", "priority", "overlapping"), [(0, None, None), (4, None, False), (1, -2, None)])
def test_null_where_nothing_was_raised_or_asked_for(report, record, flags, priority, overlapping):
    path = report / "node.7.0.trace"
    path.write_bytes(record(0, flags=flags, priority=-2))
    (launch,) = read_trace(str(path)).launches
    assert (launch.priority, launch.overlapping) == (priority, overlapping)


def test_launches_come_in_order_whoever_wrote_first(report, record):
    path = report / "node.7.0.trace"
    path.write_bytes(record(1) + record(0) + record(2, kernel=b""))
    assert [launch.sequence for launch in read_trace(str(path)).launches] == [0, 1, 2]


def test_a_torn_record_costs_only_itself(report, record):
    path = report / "node.7.0.trace"
    whole = record(0)
    for cut in range(1, len(whole)):
        path.write_bytes(whole + record(1)[:cut] + record(2) + whole[:cut])
        trace = read_trace(str(path))
        assert [launch.sequence for launch in trace.launches] == [0, 2]
        assert trace.skipped == 2 * cut


def test_other_names_are_not_ours(report):
    (report / "notes.trace").write_bytes(b"")
    with pytest.raises(Unreadable, match=r"HOST\.PID\.N\.trace"):
        read_trace(str(report / "notes.trace"))


@given(st.data())
def test_damage_never_raises_and_never_makes_records_longer_than_the_file(report, record, data):
    whole = bytearray(b"".join(record(index) for index in range(4)))
    for _ in range(data.draw(st.integers(0, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = report / "node.7.0.trace"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    trace = read_trace(str(path))
    assert 0 <= trace.skipped <= len(whole)
    assert all(len(launch.kernel) + len(launch.library) <= len(whole) for launch in trace.launches)


def test_launches_are_json_lines(overlap, report, record, library):
    (report / "node1.7.0.trace").write_bytes(record(1) + record(0) + b"torn")
    done = overlap("report", str(report), "--launches", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["pid"], line["sequence"], line["kernel"]) for line in lines] == [(7, 0, "gemm"), (7, 1, "gemm")]
    wanted = {"pid", "sequence", "device", "stream", "kernel", "library", "blocks", "threads", "asked", "launched"}
    assert set(lines[0]) == wanted | {"priority", "overlapping", "could_overlap", "reason", "host"}
    assert done.stderr == "overlap: warning: node1.7.0.trace: 4 bytes belong to no whole record\n"
    assert overlap("report", str(report), "--launches").returncode == 2


def test_launches_of_several_folders_follow_each_other(overlap, report, record, library, tmp_path):
    (tmp_path / "other").mkdir()
    (report / "node1.7.0.trace").write_bytes(record(0))
    (tmp_path / "other" / "node2.7.0.trace").write_bytes(record(0))
    done = overlap("report", str(report), str(tmp_path / "other"), "--launches", "--json")
    assert [json.loads(line)["host"] for line in done.stdout.splitlines()] == ["node1", "node2"]


def test_without_a_trace_there_are_no_launches(overlap, report, library):
    done = overlap("report", str(report), "--launches", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no trace in" in done.stderr
