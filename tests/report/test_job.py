"""All ranks or none: real processes with the library in them, as ranks of a job on hosts with made-up names. Nobody
has started overlap-run, so there is no run.json: what is known, the pages say."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import job
import pytest
import pytorch

from pyshim import __version__
from pyshim.pages.page import read_page
from pyshim.pages.untrusted import Unreadable

DAEMON = ("sh", "-c", '"$@"; exit $?', "sh")  # as every launcher has one that starts the ranks
ABI = 4  # an earlier layout of the pages


def shown(done: subprocess.CompletedProcess[str]) -> str:
    """Return what the command printed, on stdout and stderr."""
    return done.stdout + done.stderr


def warnings(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.partition("warning: ")[2] for line in shown(done).splitlines() if "warning: " in line]


def notes(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.partition("note: ")[2] for line in shown(done).splitlines() if line.startswith("note: ")]


def is_whole(page: Path) -> bool:
    """Return whether a page is complete: its file exists before anything is written to it."""
    with suppress(Unreadable):
        return bool(read_page(str(page)).devices)
    return False


def without(rank: int) -> dict[int, dict[str, str]]:
    return {rank: {"LD_PRELOAD": ""}}


def test_a_whole_job_needs_no_run_file(overlap, run_job):
    done = overlap("report", str(run_job()), "--check", "--full")
    assert (done.returncode, warnings(done)) == (0, [])
    assert "4 processes on node000 and node001; ranks 0-3 of 4" in shown(done).splitlines()
    answer = json.loads(overlap("report", str(run_job()), "--json").stdout)
    assert {process["library"] for process in answer["processes"]} == {__version__}
    (table,) = {process["table"] for process in answer["processes"]}
    assert len(table) == 8 and int(table, 16)


def test_a_rank_without_the_library_is_missing(overlap, run_job):
    done = overlap("report", str(run_job(without(1))), "--check", "--full")
    assert done.returncode == 1
    (sentence,) = warnings(done)
    assert sentence.startswith(
        "3 of 4 ranks are in the report (ranks 0, 2-3 on node000 and node001); missing: rank 1. "
    )
    assert "overlap doctor" in sentence
    steps = json.loads(overlap("report", str(run_job(without(1))), "--json").stdout)["steps"]
    assert steps[0]["world"] == 4


def test_a_page_of_another_layout_is_passed_over_and_its_rank_is_not_missing(overlap, run_job):
    report = run_job()
    for rank, path in enumerate(sorted(report.iterdir())):
        if rank > 1:
            data = bytearray(path.read_bytes())
            data[4] = ABI
            path.write_bytes(data)
    done = overlap("report", str(report), "--check", "--full")
    assert done.returncode == 1
    (sentence,) = warnings(done)
    assert "were skipped: written by another version of the library (layout 4): ranks 2-3 on node001" in sentence
    assert sentence.endswith("Install one version on every host")


def test_clocks_hours_apart_change_nothing(overlap, run_job):
    skewed = run_job({rank: {"AHEAD": str(ahead)} for rank, ahead in enumerate((0, -7200, 36000, 5))})
    done = overlap("report", str(skewed), "--check", "--full")
    assert (done.returncode, warnings(done), notes(done)) == (0, [], [])
    assert "ranks 0-3 of 4" in shown(done)


def test_a_killed_rank_is_said(overlap, run_job, rank_program):
    report = run_job(processes=3)
    base = {**job.surroundings(report, 2), "RANK": "3", "WORLD_SIZE": "4", "HOST": "node001"}
    process = subprocess.Popen([str(rank_program), "1000000"], env=base)
    while sum(map(is_whole, report.glob("*.page"))) < 4:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = overlap("report", str(report), "--full")
    assert "rank 3 on node001 did not exit normally: killed, ended by _exit, or running on another host" in notes(done)


def test_torchrun_is_the_ranks_and_not_their_agent(overlap, rank_program, tmp_path):
    """The agent has the library, too, and opens no GPU."""
    try:
        torchrun = pytorch.python().with_name("torchrun")
    except pytorch.Missing as reason:
        pytest.skip(str(reason))
    report = tmp_path / "report"
    report.mkdir()
    words = ["--standalone", "--nproc-per-node", "3", "--no-python", str(rank_program), "2"]
    env = {**job.surroundings(report, 3), "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "HOST": "node000"}
    subprocess.run([str(torchrun), *words], env=env, check=True, capture_output=True)
    done = overlap("report", str(report), "--check", "--full")
    assert (done.returncode, warnings(done)) == (0, [])
    assert "3 processes on node000; ranks 0-2 of 3" in shown(done)


# ---- Several folders, several jobs ----


def test_folders_of_the_hosts_are_one_report(overlap, run_job, tmp_path):
    whole = run_job()
    hosts = [tmp_path / "node000", tmp_path / "node001"]
    for host in hosts:
        host.mkdir()
        for page in whole.glob(f"{host.name}.*"):
            shutil.copy(page, host)
    done = overlap("report", *map(str, hosts), "--check", "--full")
    assert (done.returncode, warnings(done)) == (0, [])
    assert "4 processes on node000 and node001; ranks 0-3 of 4" in shown(done)
    done = overlap("report", str(hosts[0]), str(whole), str(hosts[1]), "--json")
    assert len(json.loads(done.stdout)["processes"]) == 4, "what was copied twice counts once"
    done = overlap("report", str(hosts[1]), "--check", "--full")
    assert "missing: ranks 0-1." in warnings(done)[0]


def test_two_jobs_in_one_folder_without_a_name_are_said(overlap, run_job):
    run_job()
    done = overlap("report", str(run_job(daemon=DAEMON)), "--check", "--full")
    assert done.returncode == 1
    (sentence,) = warnings(done)
    assert sentence.startswith("ranks 0-3 were seen more than once (processes node000:")
    assert "two jobs share the folder, one was restarted, or a rank" in sentence
    assert sentence.endswith("Give each job its own folder")


def test_a_job_that_was_started_again_under_its_name_is_no_fault(overlap, run_job, tmp_path):
    (tmp_path / "last").symlink_to("job")  # as a prolog makes it
    run_job()
    done = overlap("report", str(run_job(daemon=DAEMON)), "--check", "--full")
    assert (done.returncode, warnings(done)) == (0, [])
    assert any("were seen more than once" in note and "restarted" in note for note in notes(done))


def test_children_of_a_rank_have_its_rank_and_are_no_second_one(overlap, run_job, rank_program, tmp_path):
    """Both children of a process that uses no GPU, and a child of one that does."""
    report = tmp_path / "job"
    base = {**job.surroundings(report, 2), "RANK": "0", "WORLD_SIZE": "1", "HOST": "node000"}
    subprocess.run(["sh", "-c", f"{rank_program} 1 & {rank_program} 1 & wait"], env=base, check=True)
    done = overlap("report", str(report), "--check", "--full")
    assert (done.returncode, warnings(done)) == (0, [])


def test_a_helper_of_a_rank_by_way_of_a_shell_is_no_fault_in_a_folder_of_one_run(
    overlap, run_job, rank_program, tmp_path
):
    report = tmp_path / "job"
    base = {**job.surroundings(report, 2), "RANK": "0", "WORLD_SIZE": "1", "HOST": "node000"}
    (tmp_path / "last").symlink_to("job")
    words = f"{rank_program} 1; sh -c '{rank_program} 1; true'"
    subprocess.run(["sh", "-c", words], env=base, check=True)
    for run in (True, False):
        done = overlap("report", str(report), "--check", "--full")
        assert (done.returncode, len(warnings(done))) == ((0, 0) if run else (1, 1))
        (tmp_path / "last").unlink(missing_ok=True)
        assert run or "or a rank started a helper program through a shell." in warnings(done)[0]


# ---- A thousand ----


@pytest.fixture(scope="module")
def thousand(rank_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rank 8 to 15 ran without the library, rank 500 stopped early, node100 is under another policy."""
    report = tmp_path_factory.mktemp("thousand")
    other = job.surroundings(report, 8, "observe")["OVERLAP_TABLE"]
    otherwise = {
        **{rank: {"LD_PRELOAD": ""} for rank in range(8, 16)},
        500: {"LAUNCHES": "1"},
        **{rank: {"OVERLAP_TABLE": other} for rank in range(800, 808)},
    }
    job.run(rank_program, job.surroundings(report, 8), 1000, 8, otherwise)
    return report


@pytest.mark.slow
def test_a_thousand_processes_fit_a_screen(overlap, thousand):
    done = overlap("report", str(thousand), "--check", "--full")
    assert done.returncode == 1
    lines = shown(done).splitlines()
    assert len(lines) <= 50
    assert "992 processes on 124 hosts, node000 to node124; ranks 0-7, 16-999 of 1,000" in shown(done)
    rows = [line.split() for line in lines]
    assert ["984", "123", "rank", "h100-paper", "launches", "1", "6", "6", "5,899"] in rows
    assert ["shaped", "1", "4", "4", "3,933"] in rows
    assert ["8", "1", "rank", "observe", "launches", "6", "6", "6", "48"] in rows
    outlier = next(row for row in rows if row and row[0].startswith("node062:"))
    assert outlier[1:5] == ["500", "rank", "h100-paper", "1"]
    said = "\n".join(warnings(done))
    assert "missing: ranks 8-15. They" in said
    assert "for ranks 800-807 on node100. Choose" in said


@pytest.mark.slow
def test_every_process_of_a_thousand_is_in_the_object(overlap, thousand):
    answer = json.loads(overlap("report", str(thousand), "--json").stdout)
    assert len(answer["processes"]) == 992
    assert {process["rank"] for process in answer["processes"]} == set(range(1000)) - set(range(8, 16))
    (step,) = answer["steps"]
    assert (step["world"], step["ranks"], step["missing"]) == (1000, 992, list(range(8, 16)))


@pytest.mark.slow
def test_a_thousand_damaged_or_different_files_are_few_lines(overlap, thousand, tmp_path):
    report = tmp_path / "broken"
    report.mkdir()
    for index, path in enumerate(sorted(thousand.iterdir())):
        data = path.read_bytes()
        data = (data[:4] + bytes([ABI]) + data[5:], b"garbage " * 9, data[:99], data)[index % 4]
        (report / path.name).write_bytes(data)
    done = overlap("report", str(report), "--check", "--full")
    assert len(shown(done).splitlines()) <= 50
    said = warnings(done)
    for reason in ("another version of the library (layout 4)", "not a page of ours", "truncated"):
        assert sum(reason in sentence and "245 more were skipped" in sentence for sentence in said) == 1
    assert not any(os.fspath(report) in sentence for sentence in said)
