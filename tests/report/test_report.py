"""overlap report: whole answers, and what it says without being asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pyshim.launch import folder
from pyshim.report.collect import collect
from pyshim.report.findings import findings, remarks

RUN = "0123456789abcdef"


def said(report: Path, waiting: str = "/nonexistent") -> list[str]:
    return findings(collect(str(report), waiting_room=waiting))


def test_json_is_what_the_contract_says(overlap, report, write_page, library):
    counters = {library.OVERLAP_COUNTER_COMMUNICATION: 2, library.OVERLAP_COUNTER_RAISED: 1}
    counters[library.OVERLAP_COUNTER_WAITED_FOR] = 1
    write_page({("symbol", "shaped"): 3, ("runtime", "communication"): 2}, pid=7, rank=1, counters=counters)
    write_page({("symbol", "no_rule"): 1}, pid=8, rank=0)
    done = overlap("report", str(report), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert [process["rank"] for process in answer["processes"]] == [0, 1]
    first = answer["processes"][1]
    expected = {
        "pid": 7,
        "host": "node1",
        "rank": 1,
        "policy": "h100",
        "launches": 5,
        "shaped": 3,
        "communication": 2,
        "raised": 1,
        "refused": 0,
        "graph_launches": 0,
        "communication_same_stream": 0,
        "communication_waited_for": 1,
        "reasons": {"shaped": 3, "communication": 2},
    }
    assert {name: first[name] for name in expected} == expected
    device = {"index": 0, "name": "NVIDIA H100 80GB HBM3", "multiprocessors": 132, "policy": "h100"}
    assert {name: first["devices"][0][name] for name in device} == device
    assert first["devices"][0]["uuid"].startswith("GPU-")
    totals = answer["totals"]
    assert (totals["launches"], totals["shaped"], totals["communication"], totals["raised"]) == (6, 3, 2, 1)
    assert sum(totals["entry_points"].values()) == sum(totals["reasons"].values()) == 6
    assert (totals["communication_same_stream"], totals["communication_waited_for"]) == (0, 1)
    assert answer["findings"] == []
    assert [sentence.split(":")[0] for sentence in answer["remarks"]] == ["waited for at once"]
    assert answer["runs"][0]["command"] == ["python", "train.py"]


def test_text_goes_to_stderr_and_explains_reasons(overlap, report, write_page):
    write_page({("symbol", "shaped"): 3000, ("runtime", "one_wave"): 1000}, pid=7, rank=0)
    done = overlap("report", str(report))
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"overlap: run {RUN}, ") and lines[0].endswith(": python train.py")
    assert lines[1] == "overlap: NVIDIA H100 80GB HBM3: policy h100, opened 1 x"
    assert lines[2].split() == [
        "process", "rank", "program", "policy", "launches", "shaped", "comm", "raised", "refused",
    ]  # fmt: skip
    assert lines[3].split()[:3] == ["node1:7", "0", "python3"]
    assert lines[3].split()[-5:] == ["4,000", "3,000", "0", "0", "0"]
    assert any(line.split()[:4] == ["3,000", "75.0", "%", "shaped"] for line in lines)
    assert any(line.split() == ["1,000", "runtime"] for line in lines)


def test_several_processes_have_a_total(overlap, report, write_page):
    write_page({("symbol", "no_rule"): 3}, pid=7)
    write_page({("symbol", "no_rule"): 4}, pid=8)
    assert any(line.split()[:3] == ["all", "2", "7"] for line in overlap("report", str(report)).stderr.splitlines())


def test_nothing_to_report_is_a_finding(overlap, report, tmp_path, library):
    done = overlap("report", str(report))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("overlap: error: there is no page in ")
    assert "no process of python came to use a GPU with the library in it" in done.stderr
    (tmp_path / "foreign").mkdir()
    assert "holds no report of overlap-run" in overlap("report", str(tmp_path / "foreign"), "--json").stderr
    done = overlap("report", str(tmp_path / "missing"))
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"overlap: error: the report folder {tmp_path}/missing cannot be read: No such file or directory\n"
    )
    assert overlap("report").returncode == 2


def test_a_damaged_page_is_passed_over_and_said(overlap, report, write_page):
    write_page({("symbol", "no_rule"): 3}, pid=7)
    (report / "node1.9.0.page").write_bytes(b"garbage that is long enough")
    done = overlap("report", str(report), "--json")
    assert json.loads(done.stdout)["totals"]["launches"] == 3
    assert done.stderr == "overlap: warning: node1.9.0.page was passed over: not a page of ours\n"
    assert overlap("report", str(report), "--check").returncode == 1


def test_a_gpu_without_launches_is_said(report, write_page):
    write_page({}, pid=7, flags=1)
    write_page({}, pid=8, flags=0)
    (sentence,) = said(report)
    assert sentence.startswith("process node1:7 opened a GPU, and no launch was seen")


def test_a_gpu_with_nothing_but_graphs_is_not_blind(report, write_page, library):
    write_page({}, counters={library.OVERLAP_COUNTER_GRAPH_LAUNCHES: 1})
    assert said(report) == []


def test_different_policies_are_said(report, write_page):
    for pid, policy, table in ((7, "h100", 1), (8, "h100-paper", 2), (9, "h100", 1)):
        write_page({("symbol", "no_rule"): 1}, pid=pid, devices=(("NVIDIA H100 80GB HBM3", policy),), table=table)
    (sentence,) = said(report)
    assert sentence.startswith(
        "the policy differs: h100 (table 00000001) for processes node1:7 and node1:9; "
        "h100-paper (table 00000002) for process node1:8. Choose it in one place"
    )


def test_different_gpus_may_have_different_policies(report, write_page):
    for pid, name in ((7, "H100"), (8, "A100")):
        write_page({("symbol", "no_rule"): 1}, pid=pid, devices=((name, name.lower()),))
    assert said(report) == []


def test_a_gpu_without_a_policy_is_said(report, write_page):
    write_page({("symbol", "observe_only"): 1}, devices=(("Mystery", ""),))
    assert said(report) == ["no policy is for Mystery: process node1:100 only counted"]


def test_missing_ranks_are_said(report, write_page):
    (report / f"run-{RUN}.json").unlink()
    folder.write(str(report), folder.Run(RUN, 1.0, ("x",), expected_world_size=4))
    for rank in (0, 2):
        write_page({("symbol", "no_rule"): 1}, pid=7 + rank, rank=rank)
    (sentence,) = said(report)
    assert sentence.startswith("2 of 4 ranks left a page (ranks 0, 2 on node1); missing: ranks 1, 3. They ran without")


def test_dropped_launches_are_said(report, write_page, library):
    write_page({("symbol", "no_rule"): 1}, counters={library.OVERLAP_COUNTER_TRACE_DROPPED: 1234})
    assert said(report)[0].startswith("1,234 launches are missing in the traces")


@pytest.mark.parametrize(
    ("counter", "begins", "ends"),
    [
        ("SAME_STREAM", "same stream: 1,500 of 4,000 communication launches could not", "have one of their own"),
        ("WAITED_FOR", "waited for at once: 1,500 of 4,000 communication launches could not", "the host waited first"),
    ],
)
def test_communication_that_could_not_overlap_anything_is_said(report, write_page, library, counter, begins, ends):
    """Of all processes together, and only if there is any."""
    index = getattr(library, f"OVERLAP_COUNTER_{counter}")
    for pid, count in ((7, 1000), (8, 500), (9, 0)):
        counters = {library.OVERLAP_COUNTER_COMMUNICATION: 1000 + count // 1000 * 1000, index: count}
        write_page({("symbol", "communication"): 1}, pid=pid, counters=counters)
    (sentence,) = remarks(collect(str(report)))
    assert sentence.startswith(begins) and sentence.endswith(ends)
    assert said(report) == [], "nothing is wrong"
    for pid in (7, 8, 9):
        write_page({("symbol", "communication"): 1}, pid=pid, counters={library.OVERLAP_COUNTER_COMMUNICATION: 1})
    assert remarks(collect(str(report))) == []


def test_the_run_names_the_policy_until_a_device_was_opened(overlap, report, write_page):
    write_page({}, devices=(), flags=0)
    assert json.loads(overlap("report", str(report), "--json").stdout)["processes"][0]["policy"] == "h100"


def test_pages_that_wait_elsewhere_are_fetched_if_they_are_of_this_run_and_ours(report, write_page, tmp_path):
    waiting = tmp_path / "shm"
    waiting.mkdir()
    write_page({("symbol", "no_rule"): 5}, pid=7, path=waiting / f"overlap-{RUN}-node1.7.0.page")
    write_page({("symbol", "no_rule"): 9}, pid=8, path=waiting / f"overlap-{'f' * 16}-node1.8.0.page")
    (waiting / f"overlap-{RUN}-node1.9.0.page").symlink_to("/etc/passwd")
    collected = collect(str(report), waiting_room=str(waiting))
    assert [page.launches for page in collected.pages] == [5]
    assert (report / "node1.7.0.page").stat().st_mode & 0o777 == 0o600
    assert len(collected.skipped) == 1 and "overlap-" in collected.skipped[0].name
    write_page({("symbol", "no_rule"): 6}, pid=7, path=waiting / f"overlap-{RUN}-node1.7.0.page")
    assert [page.launches for page in collect(str(report), waiting_room=str(waiting)).pages] == [6], (
        "it may have counted on"
    )


def test_a_page_of_another_user_that_waits_is_not_believed(report, write_page, tmp_path):
    if os.getuid():
        pytest.skip("only root can make one: run as root")
    waiting = tmp_path / "shm"
    waiting.mkdir()
    path = write_page({("symbol", "no_rule"): 5}, pid=7, path=waiting / f"overlap-{RUN}-node1.7.0.page")
    os.chown(path, 1, 1)
    collected = collect(str(report), waiting_room=str(waiting))
    assert collected.pages == ()
    assert "belongs to another user" in collected.skipped[0].reason


def test_launches_are_json_lines(overlap, report, record, library):
    (report / "node1.7.0.trace").write_bytes(record(1) + record(0) + b"torn")
    done = overlap("report", str(report), "--launches", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["pid"], line["sequence"], line["kernel"]) for line in lines] == [(7, 0, "gemm"), (7, 1, "gemm")]
    wanted = {"pid", "sequence", "device", "stream", "kernel", "library", "blocks", "threads", "asked", "launched"}
    assert set(lines[0]) == wanted | {"priority", "overlapping", "could_overlap", "reason", "host"}
    assert done.stderr == "overlap: warning: node1.7.0.trace: 4 bytes belong to no whole record\n"
    assert overlap("report", str(report), "--launches").returncode == 2


def test_without_a_trace_there_are_no_launches(overlap, report, library):
    done = overlap("report", str(report), "--launches", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no trace in" in done.stderr


def test_variables_that_policies_set_are_said(overlap, report, write_page, library):
    (report / f"run-{RUN}.json").unlink()
    folder.write(str(report), folder.Run(RUN, 1.0, ("x",), environment={"A": "1", "B": "2"}))
    write_page({("symbol", "no_rule"): 1})
    assert f"overlap: run {RUN} set for the program: A=1, B=2" in overlap("report", str(report)).stderr.splitlines()
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert answer["runs"][0]["environment"] == {"A": "1", "B": "2"}


def test_ranks_that_were_started_otherwise_are_a_finding(overlap, report, write_page, library):
    write_page({("symbol", "no_rule"): 1})
    (first,) = folder.runs(str(report))
    assert overlap("report", str(report), "--check").returncode == 0
    other = first._replace(policies=({"name": "mine", "hash": "cd", "file": None},))
    folder.write(str(report), other)
    (sentence,) = said(report)
    assert "was started under mine (cd)" in sentence and "; the rank that came first under h100 (" in sentence
    assert overlap("report", str(report), "--check").returncode == 1
