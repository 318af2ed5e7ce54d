"""overlap report: whole answers, and what it says without being asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyshim.report import tables
from pyshim.report.collect import collect, ranks
from pyshim.report.findings import findings, remarks
from pyshim.report.verdict import verdict
from pyshim.start import folder
from tests.terminal import on_a_terminal

RUN = "0123456789abcdef"

TRACE = '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 1, "pid": 0, "tid": 7}]}'


def shown(done: subprocess.CompletedProcess[str]) -> str:
    """On whichever stream."""
    return done.stdout + done.stderr


def said(report: Path, waiting: str = "/nonexistent") -> list[str]:
    return findings(collect(str(report), waiting_room=waiting))


def test_json_is_what_the_contract_says(overlap, report, write_page, library):
    counters = {library.OVERLAP_COUNTER_COMMUNICATION: 2, library.OVERLAP_COUNTER_RAISED: 1}
    counters[library.OVERLAP_COUNTER_JUDGEMENTS] = 4
    write_page({"shaped": 3, "communication": 2}, pid=7, rank=1, counters=counters)
    write_page({"no_rule": 1}, pid=8, rank=0)
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
        "streams_created_raised": 0,
        "judgements": 4,
        "reasons": {"shaped": 3, "communication": 2},
    }
    assert {name: first[name] for name in expected} == expected
    device = {"index": 0, "name": "NVIDIA H100 80GB HBM3", "multiprocessors": 132, "policy": "h100"}
    assert {name: first["devices"][0][name] for name in device} == device
    assert first["devices"][0]["uuid"].startswith("GPU-")
    totals = answer["totals"]
    assert (totals["launches"], totals["shaped"], totals["communication"], totals["raised"]) == (6, 3, 2, 1)
    assert sum(totals["reasons"].values()) == 6
    assert answer["findings"] == []
    assert answer["remarks"] == []
    assert answer["runs"][0]["command"] == ["python", "train.py"]


def test_the_text_begins_with_the_verdict_and_has_tables_when_asked(overlap, report, write_page):
    write_page({"shaped": 3000, "one_wave": 1000}, pid=7, rank=0, devices=(("NVIDIA H100 80GB HBM3", "h100"),) * 2)
    done = overlap("report", str(report), "--full")
    assert done.returncode == 0
    lines = shown(done).splitlines()
    assert [line.partition(": ")[0] for line in lines[:3]] == ["done", "gain", "next"]
    assert lines[3].startswith(f"run {RUN}, ") and lines[3].endswith(": python train.py")
    assert lines[4] == "NVIDIA H100 80GB HBM3: policy h100, used by 1 process"
    assert lines[6].split() == [
        "process", "rank", "program", "policy", "launches", "shaped", "comm", "raised", "refused",
    ]  # fmt: skip
    assert lines[7].split()[:3] == ["node1:7", "0", "python3"]
    assert lines[7].split()[-5:] == ["4,000", "3,000", "0", "0", "0"]
    assert any(line.split()[:4] == ["3,000", "75.0", "%", "shaped"] for line in lines)
    short = shown(overlap("report", str(report))).splitlines()
    assert short == [*lines[:3], "--full: notes, processes, reasons, streams, rules, kernels"]


def test_several_processes_have_a_total(overlap, report, write_page):
    write_page({"no_rule": 3}, pid=7)
    write_page({"no_rule": 4}, pid=8)
    lines = shown(overlap("report", str(report), "--full")).splitlines()
    assert any(line.split()[:3] == ["all", "2", "7"] for line in lines)


def test_nothing_to_report_is_a_finding(overlap, report, tmp_path, library):
    done = overlap("report", str(report))
    assert done.returncode == 0
    assert shown(done).startswith(
        "done: nothing: no process of python opened a GPU with the library loaded, or its page of the report could "
        "not be written\n"
    )
    assert "warning: no process is in the report" in shown(done)
    assert len(shown(done).splitlines()) <= 5
    assert overlap("report", str(report), "--check").returncode == 1
    (tmp_path / "foreign").mkdir()
    assert "holds no report of overlap-run" in overlap("report", str(tmp_path / "foreign"), "--json").stderr
    done = overlap("report", str(tmp_path / "missing"))
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"overlap: error: the report folder {tmp_path}/missing cannot be read: No such file or directory\n"
        f"overlap: help: make one: overlap-run --report {tmp_path}/missing PROGRAM\n"
    )
    assert overlap("report").returncode == 2


def test_a_damaged_page_is_passed_over_and_said(overlap, report, write_page):
    write_page({"no_rule": 3}, pid=7)
    (report / "node1.9.0.page").write_bytes(b"garbage that is long enough")
    done = overlap("report", str(report), "--json")
    assert json.loads(done.stdout)["totals"]["launches"] == 3
    assert done.stderr == "overlap: warning: node1.9.0.page was skipped: not a page of ours\n"
    assert overlap("report", str(report), "--check").returncode == 1


def test_a_report_of_damaged_pages_alone(overlap, report, write_page):
    """It is not the program's fault."""
    path = write_page({"no_rule": 3})
    path.write_bytes(path.read_bytes()[:5000])
    done = overlap("report", str(report))
    assert (done.returncode, done.stderr.splitlines()) == (1, [
        "overlap: warning: node1.100.0.page was skipped: truncated",
        f"overlap: error: there is no page in {report} that can be read",
        "overlap: help: what is the matter with each is said above; where the folder was copied, copy it again",
    ])  # fmt: skip


@pytest.mark.parametrize("others", [(), ("notes.json",)])
def test_a_trace_beside_unreadable_pages_does_not_hide_them(overlap, report, write_page, others):
    """A TaskProlog makes no run.json, so pages alone say that it is a report."""
    path = write_page({"no_rule": 3})
    path.write_bytes(path.read_bytes()[:5000])
    (report / "run.json").unlink(missing_ok=True)
    (report / "trace.json").write_text(TRACE)
    for name in others:
        (report / name).write_text("{}")
    done = overlap("report", str(report))
    assert (done.returncode, done.stderr.splitlines()) == (1, [
        "overlap: warning: node1.100.0.page was skipped: truncated",
        f"overlap: error: there is no page in {report} that can be read",
        "overlap: help: what is the matter with each is said above; where the folder was copied, copy it again; "
        f"for profilers' traces: overlap explain {report}",
    ])  # fmt: skip
    path.unlink()
    assert overlap("report", str(report)).stderr.startswith(
        f"overlap: error: {report} holds traces of a profiler, and no report of overlap-run\n"
    )


@pytest.mark.parametrize("name", ["run.json", "run@node7.12.json"])
@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"version": 2}'])
def test_a_malformed_run_is_said(overlap, report, write_page, name, text):
    write_page({"no_rule": 3})
    assert overlap("report", str(report), "--check").returncode == 0
    (report / name).write_text(text)
    done = overlap("report", str(report), "--check")
    assert done.returncode == 1
    assert f"warning: {name} was skipped: damaged, or of another version" in shown(done).splitlines()


def test_a_page_in_place_of_its_folder(overlap, report, write_page):
    path = write_page({"no_rule": 3})
    for words, cwd, around in (([str(path)], None, str(report)), ([path.name], report, ".")):
        done = overlap("report", *words, cwd=cwd)
        assert (done.returncode, done.stderr.splitlines()) == (2, [
            f"overlap: error: {words[0]} is a file, and a report is a folder of pages",
            f"overlap: help: name the folder: overlap report {around}",
        ])  # fmt: skip


def test_warnings_and_notes_are_broken_on_a_terminal_only(report, write_page, clean_environment, library):
    write_page({"refused": 3}, flags=1, counters={library.OVERLAP_COUNTER_REFUSED: 3})
    env = {**clean_environment, "COLUMNS": "70", "TERM": "dumb"}
    command = [sys.executable, "-m", "pyshim", "report", "--full", str(report)]
    said = shown(subprocess.run(command, env=env, capture_output=True, text=True, check=True))
    assert max(len(line) for line in said.splitlines() if "warning: " in line) > 100
    lines = on_a_terminal(command, env, stderr=None).splitlines()
    (first,) = (index for index, line in enumerate(lines) if line.startswith("warning: "))
    (last,) = (index for index, line in enumerate(lines) if line.startswith("note: "))
    assert max(map(len, lines[first:last])) <= 70 and last > first + 1
    assert all(line.startswith("  ") for line in lines[first + 1 : last])
    (warning,) = (line for line in said.splitlines() if line.startswith("warning: "))
    assert " ".join(line.strip() for line in lines[first:last]) == warning


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
        write_page({"no_rule": 1}, pid=pid, devices=(("NVIDIA H100 80GB HBM3", policy),), table=table)
    (sentence,) = said(report)
    assert sentence.startswith(
        "the policy differs: h100 (table 00000001) for processes node1:7 and node1:9; "
        "h100-paper (table 00000002) for process node1:8. Choose it in one place"
    )


def test_different_versions_of_the_library_are_said(report, write_page):
    for rank, version in enumerate(("0.2.0", "0.2.0", "0.0.9")):
        write_page({"no_rule": 1}, pid=7 + rank, rank=rank, world=3, library=version)
    (sentence,) = said(report)
    assert sentence.startswith(
        "the version of the library differs: 0.2.0 for ranks 0-1 on node1; 0.0.9 for rank 2 on node1. "
        "Install the same version on every host, "
    )


def test_different_gpus_may_have_different_policies(report, write_page):
    for pid, name in ((7, "H100"), (8, "A100")):
        write_page({"no_rule": 1}, pid=pid, devices=((name, name.lower()),))
    assert said(report) == []


def test_a_gpu_without_a_policy_is_said(report, write_page):
    write_page({"observe_only": 1}, devices=(("Mystery", ""),))
    assert said(report) == ["no policy is for Mystery: process node1:100 only counted"]


def test_missing_ranks_are_said(report, write_page):
    (report / "run.json").unlink()
    folder.write(str(report), folder.Run(RUN, 1.0, ("x",), expected_world_size=4))
    for rank in (0, 2):
        write_page({"no_rule": 1}, pid=7 + rank, rank=rank)
    (sentence,) = said(report)
    assert sentence.startswith("2 of 4 ranks are in the report (ranks 0, 2 on node1); missing: ranks 1, 3. ")


@pytest.mark.parametrize(
    ("parents", "flags", "said_so"),
    [
        pytest.param((1, 7), 5, False, id="a child of the other"),
        pytest.param((3, 3), 5, False, id="children of one process that is the rank"),
        pytest.param((1, 2), 7, False, id="a forked child whose parent has gone"),
        pytest.param((1, 2), 5, True, id="strangers"),
    ],
)
def test_a_rank_is_there_twice_only_if_no_process_has_started_the_other(report, write_page, parents, flags, said_so):
    (report / "run.json").unlink()
    for pid, parent, of_page in zip((7, 8), parents, (5, flags)):
        write_page({"no_rule": 1}, pid=pid, parent=parent, flags=of_page, rank=0, world=1)
    assert [sentence.startswith("rank 0 was seen more than once") for sentence in said(report)] == [True] * said_so


def test_the_farthest_of_many_come_first(report, write_page):
    for pid in range(30):
        write_page({"no_rule": {3: 50, 4: 900, 5: 1}.get(pid, 100)}, pid=pid)
    assert [page.pid for page in tables.far(collect(str(report)))] == [4, 5, 3]
    write_page({"no_rule": 101}, pid=30)
    assert len(tables.far(collect(str(report)))) == 3, "one in a hundred is not far"


def test_runs_of_one_id_in_two_folders_that_differ_are_said(report, write_page, tmp_path):
    """Copied from the hosts of one step: the first rank of each has written one."""
    first = folder.read_run(str(report / "run.json"))
    assert first
    (tmp_path / "other").mkdir()
    folder.write(str(tmp_path / "other"), first._replace(overlap_run="0.0.9", host="node2"))
    write_page({"no_rule": 1})
    (sentence,) = findings(collect(str(report), str(tmp_path / "other")))
    assert sentence.startswith("node2 was started under h100 (ab), overlap-run 0.0.9; the first rank under")


def test_many_ranks_that_were_started_otherwise_are_one_sentence(report, write_page):
    write_page({"no_rule": 1})
    first = folder.read_run(str(report / "run.json"))
    assert first
    for pid in range(50):
        other = first._replace(environment={"A": "1"})
        (report / f"run@node1.{pid}.json").write_text(json.dumps(other._asdict()))
    (sentence,) = said(report)
    assert sentence == ("node1.0, node1.1, node1.10 and 47 more set A=1 for the program; the first rank set nothing")


@pytest.mark.parametrize(("flags", "sentences"), [(1, 1), (5, 0), (3, 0)])
def test_who_did_not_end_is_said_but_of_forked_children(report, write_page, flags, sentences):
    write_page({"no_rule": 1}, flags=flags, rank=2)
    end = ["rank 2 on node1 did not exit normally: killed, ended by _exit, or running on another host"]
    assert remarks(collect(str(report))) == end[:sentences]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "rank 3"),
        ([0, 1, 2], "ranks 0-2"),
        ([0, 2, 3, 9], "ranks 0, 2-3, 9"),
        (list(range(0, 20, 2)), "ranks 0, 2, 4, 6, 8, 10 and 4 more"),
    ],
)
def test_ranks_are_named_in_few_words(numbers, words):
    assert ranks(numbers) == words


def test_the_run_names_the_policy_until_a_device_was_opened(overlap, report, write_page):
    write_page({}, devices=(), flags=0)
    assert json.loads(overlap("report", str(report), "--json").stdout)["processes"][0]["policy"] == "h100"


def test_variables_that_policies_set_are_said(overlap, report, write_page, library):
    (report / "run.json").unlink()
    folder.write(str(report), folder.Run(RUN, 1.0, ("x",), environment={"A": "1", "B": "2"}))
    write_page({"no_rule": 1})
    assert "set for the program: A=1, B=2" in shown(overlap("report", str(report), "--full")).splitlines()
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert answer["runs"][0]["environment"] == {"A": "1", "B": "2"}


def test_of_many_warnings_one_is_shown_and_the_others_counted(overlap, report, write_page):
    for pid, name in ((7, "H100"), (8, "A100")):
        write_page({"observe_only": 1}, pid=pid, rank=pid - 7, world=3, devices=((name, ""),), table=pid)
    lines = shown(overlap("report", str(report))).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["done", "gain", "next", "warning", "--full"]
    assert lines[4] == "--full: 3 more warnings, notes, processes, reasons, streams, rules, kernels"
    assert shown(overlap("report", str(report), "--full")).count("warning: ") == 4


def test_a_process_that_runs_is_told_from_one_that_was_killed(overlap, report, write_page):
    host = os.uname().nodename
    write_page({"no_rule": 1}, flags=1, host=host, pid=os.getpid(), start=time.time_ns())
    with subprocess.Popen(["true"]) as ended:
        pass
    write_page({"no_rule": 1}, flags=1, host=host, pid=ended.pid)
    done = overlap("report", str(report), "--full")
    assert f"note: process {host}:{os.getpid()} is still running\n" in done.stdout
    assert f"note: process {host}:{ended.pid} did not exit normally: killed, ended by _exit, or " in done.stdout
    assert done.stdout.startswith("done: so far, with 1 process still running: raised no stream (0 of 2 launches), ")


def test_a_program_that_runs_and_has_not_opened_a_gpu_yet_is_told_from_one_that_never_did(
    overlap, overlap_run, tmp_path
):
    report = tmp_path / "out"
    words = [
        "--report",
        str(report),
        "--simulate",
        "h100",
        "sh",
        "-c",
        f"{sys.executable} -m pyshim report {report}; :",
    ]
    assert overlap_run(*words).stdout.startswith("done: nothing yet: the program is running, and has not opened a GPU ")
    assert overlap("report", str(report)).stdout.startswith("done: nothing: no process of sh opened a GPU ")


def test_an_old_run_is_not_judged_by_the_disk_of_today(report, monkeypatch):
    """Where run.json found room, and no page did: what the disk is like now says nothing about then."""
    said = verdict(collect(str(report))), findings(collect(str(report)))
    full = os.statvfs_result((4096, 4096, 100, 0, 0, 100, 50, 50, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert (verdict(collect(str(report))), findings(collect(str(report)))) == said
    assert all("or its page of the report could not be written" in words for words in (said[0].done, said[1][0]))


def test_a_process_that_has_the_id_of_one_that_was_killed_does_not_keep_its_run_going(report, write_page):
    ids = {"pid": os.getpid(), "host": os.uname().nodename, "flags": 1}
    write_page({"no_rule": 1}, start=int((time.time() - 10 * 365 * 86400) * 1e9), **ids)
    assert not verdict(collect(str(report))).done.startswith("so far")
    write_page({"no_rule": 1}, start=int(time.time() * 1e9), **ids)
    assert verdict(collect(str(report))).done.startswith("so far, with 1 process still running")


def test_ranks_that_were_started_otherwise_are_a_finding(overlap, report, write_page, library):
    write_page({"no_rule": 1})
    first = folder.read_run(str(report / "run.json"))
    assert first
    assert overlap("report", str(report), "--check").returncode == 0
    other = first._replace(policies=({"name": "mine", "hash": "cd", "file": None},))
    folder.write(str(report), other)
    (sentence,) = said(report)
    assert "was started under mine (cd)" in sentence and "; the first rank under h100 (" in sentence
    assert overlap("report", str(report), "--check").returncode == 1


def test_a_missing_folder_has_a_next_step(overlap, library, tmp_path):
    done = overlap("report", "nonexist", cwd=tmp_path)
    assert done.stderr.endswith("overlap: help: make one: overlap-run --report nonexist PROGRAM\n")
    done = overlap("report", "--jobs", "nonexist", cwd=tmp_path)
    assert done.returncode == 2 and "overlap: help: name the folder of all runs" in done.stderr


def test_launches_on_raised_streams_that_count_as_something_else_are_said(overlap, overlap_run, library, tmp_path):
    """The numbers of one page agree: a stream's launches of communication count as that."""
    path = tmp_path / "report"
    assert overlap_run("--simulate", "b200", "--report", str(path), "demo-stencil").returncode == 0
    totals = json.loads(overlap("report", str(path), "--json").stdout)["totals"]
    raised, counted = totals["raised"], totals["reasons"]["raised"]
    assert raised > counted > 0
    sentence = f"{raised} launches were on raised streams: {counted} count as raised, here and by kernel, and "
    every = overlap("report", str(path), "--full").stdout
    assert f"{sentence}{raised - counted} as communication\n" in every
    overlap("report", str(path), "--html", str(tmp_path / "page.html"))
    assert sentence in (tmp_path / "page.html").read_text()


def test_pages_whose_numbers_agree_say_no_more(report, write_page, overlap, library):
    write_page({"no_rule": 3})
    assert "launches were on raised streams" not in overlap("report", str(report), "--full").stdout
