"""overlap report FOLDER --jobs: one row a program, of many users, with whatever else lies in the folder."""

from __future__ import annotations

import csv
import io
import json
import os
import pwd
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyshim._native import STREAM_STATUSES
from pyshim.cli import main
from pyshim.report.jobs import jobs
from pyshim.start import folder
from tests import in_process

STATUS = {name: number for number, name in enumerate(STREAM_STATUSES, 1)}
H100 = "NVIDIA H100 80GB HBM3"
ME = pwd.getpwuid(os.geteuid()).pw_name
NOW = int(time.time()) - 10 * 86400
HOUR = 3600
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users: run as root")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    path = tmp_path / "cluster"
    path.mkdir()
    return path


@pytest.fixture
def run(top: Path, write_page, library) -> Callable[..., Path]:
    """run(name, streams..., ...): the folder of a run; a page for each rank, which used a GPU for `seconds`."""

    def make(
        name: str,
        *statuses: str,
        ranks: int = 2,
        program: str = "/opt/bin/stencil",
        policy: str = "observe",
        launches: int = 100,
        raised: int = 0,
        seconds: int = HOUR,
        start: int = NOW,
        owner: int | None = None,
        **more: object,
    ) -> Path:
        path = top / name
        path.mkdir(parents=True, exist_ok=True)
        for rank in range(ranks):
            page = write_page(
                {"observe_only": launches},
                devices=((H100, policy),),
                pid=1000 + rank,
                rank=rank,
                world=ranks,
                path=path / f"node1.{1000 + rank}.0.page",
                program=program,
                start=start * 10**9,
                counters={library.OVERLAP_COUNTER_RAISED: raised},
                streams=[{"status": STATUS[status]} for status in statuses],
                **{"host": f"node-{name[:40].replace('/', '-')}-{rank}", **more},
            )
            os.utime(page, (start + seconds, start + seconds))
            if owner is not None:
                os.chown(page, owner, owner)
        return path

    return make


def rows(top: Path) -> list[tuple[object, ...]]:
    return [(row.user, row.program, row.runs, row.verdict) for row in jobs(str(top)).programs]


def test_a_program_of_a_user_is_one_row_over_all_its_runs(run, top):
    run("a/slurm-1.0", "raised", "large", raised=60, seconds=HOUR)
    run("a/slurm-2.0", "raised", "large", ranks=4, raised=60, seconds=2 * HOUR, start=NOW + 86400)
    (row,) = jobs(str(top)).programs
    assert (row.user, row.program, row.runs, row.ranks, row.gpus) == (ME, "stencil", 2, 4, 4)
    assert row.seconds == row.seconds_raised == 2 * HOUR + 4 * 2 * HOUR
    assert (row.launches, row.launches_raised, row.streams, row.streams_raised) == (600, 360, 12, 6)
    assert (row.verdict, row.last) == ("would be raised", NOW + 86400 + 2 * HOUR)


def test_those_that_would_gain_come_first_by_gpu_hours(run, top):
    run("1", "programs", program="big", seconds=50 * HOUR)
    run("2", "raised", program="small", seconds=HOUR)
    run("3", "raised", program="middle", seconds=2 * HOUR)
    run("4", "default", program="other", seconds=3 * HOUR)
    assert [row.program for row in jobs(str(top)).programs] == ["middle", "small", "big", "other"]


@pytest.mark.parametrize(
    ("statuses", "policy", "verdict"),
    [
        (("raised", "large"), "default", "raised"),
        (("raised", "large"), "observe", "would be raised"),
        (("programs", "programs", "large"), "observe", "own priorities"),
        (("not_waited",), "observe", "nothing waits"),
        (("together", "together"), "default", "streams of equal work"),
        (("default", "default", "large"), "default", "default streams only"),
        ((), "observe", "no stream judged"),
    ],
)
def test_what_the_rule_did_or_why_it_did_nothing(run, top, statuses, policy, verdict):
    run("r", *statuses, policy=policy)
    assert rows(top) == [(ME, "stencil", 1, verdict)]


def test_a_run_without_launches(run, top):
    run("r", launches=0)
    assert rows(top) == [(ME, "stencil", 1, "no launch seen")]


def test_a_gpu_that_ranks_share_counts_once(run, top):
    """From the first page to the end of the last one."""
    run("r", ranks=3, host="one")
    run("r", ranks=1, host="one", start=NOW + HOUR // 2)  # rank 0 alone came later
    (row,) = jobs(str(top)).programs
    assert (row.gpus, row.seconds, row.ranks) == (1, HOUR + HOUR // 2, 3)


@pytest.mark.parametrize("start", [0, NOW + 10 * HOUR], ids=["1970", "after its end"])
def test_times_that_cannot_be_are_no_gpu_hours(run, top, start):
    path = run("r", ranks=1)
    (page,) = path.iterdir()
    data = bytearray(page.read_bytes())
    data[32:40] = (start * 10**9).to_bytes(8, "little")
    page.write_bytes(data)
    os.utime(page, (NOW, NOW))
    assert [row.seconds for row in jobs(str(top)).programs] == [0]
    os.utime(page, (2**33, 2**33))  # in the year 2242
    assert [row.last <= time.time() for row in jobs(str(top)).programs] == [True]


def test_an_interpreter_is_named_with_its_script_and_nothing_else_of_the_command(run, top):
    path = run("r", "raised", program="/usr/bin/python3.11")
    folder.write(str(path), folder.Run("r", 1.0, ("env", "python3.11", "-u", "/data/train.py", "--token=secret")))
    (row,) = jobs(str(top)).programs
    assert row.program == "python3.11 train.py"
    (path / "run.json").write_text("damaged")
    assert [row.program for row in jobs(str(top)).programs] == ["python3.11"]


def test_several_programs_of_one_run_are_several_rows(run, top, write_page):
    path = run("r", "raised")
    write_page({"observe_only": 1}, pid=7, path=path / "node1.7.0.page", program="/opt/bin/post", host="x")
    assert sorted(row[1:3] for row in rows(top)) == [("post", 1), ("stencil", 1)]
    assert jobs(str(top)).runs == 1


def test_copies_count_once(run, top):
    path = run("r", "raised", ranks=1)
    (page,) = path.iterdir()
    (path / f"waiting-{page.name}").write_bytes(page.read_bytes())
    (top / "copy").mkdir()
    (top / "copy" / page.name).write_bytes(page.read_bytes())
    found = jobs(str(top))
    assert (found.pages, found.runs, [row.launches for row in found.programs]) == (1, 1, [100])
    assert found.skipped == {"pages: another copy is in the folder": 1}


# ---- Hostile folders ----


def test_what_is_no_page_is_skipped_and_counted(run, top, write_page):
    """Damaged, foreign, half-written, links, a pipe, a huge file, another version: beside good ones, and alone."""
    path = run("good", "raised", ranks=1)
    (page,) = path.glob("*.page")
    data = page.read_bytes()
    (path / "n.1.0.page").write_bytes(data[:100])
    (path / "n.2.0.page").write_bytes(b"\0" * len(data))
    (path / "n.3.0.page").write_bytes(b"garbage" * 99)
    (path / "n.4.0.page").symlink_to(page)
    os.mkfifo(path / "n.5.0.page")
    (path / "n.6.0.page").write_bytes(data[:4] + (9999).to_bytes(4, "little") + data[8:])
    (path / "n.7.0.page").mkdir()
    (path / "n.8.0.page").write_bytes(b"")
    with (path / "n.9.0.page").open("wb") as huge:
        huge.truncate(1 << 40)
    (path / "n.10.0.page").write_bytes(data[:-1])
    (path / "n.11.0.page").write_bytes(data[:109760] + b"\xff" * (len(data) - 109760))
    (top / "loop").symlink_to(top)
    (top / "other").symlink_to(path)
    (top / "empty").mkdir()
    (top / "foreign").mkdir()
    (top / "foreign" / "notes.txt").write_text("nothing of ours")
    found = jobs(str(top))
    assert (found.runs, found.pages) == (1, 1)
    assert found.skipped == {
        "pages: truncated": 2,
        "pages: the process ended before it began to count": 2,
        "pages: not a page of ours": 1,
        "pages: a symlink": 1,
        "pages: not a regular file": 1,
        "pages: written by another version of the library (layout 9999)": 1,
        "pages: too short for a page": 1,
        "pages: damaged: its counts do not add up": 1,
    }


def test_folders_as_deep_as_a_user_likes(run, top):
    run("/".join(["d"] * 8 + ["ok"])[2:], "raised")
    path = top
    for _ in range(40):
        path = path / "x"
        path.mkdir()
    found = jobs(str(top))
    assert (found.runs, found.skipped) == (1, {"folders too deep": 1})


def test_names_that_would_break_a_terminal_a_table_or_a_file_of_metrics(run, top, overlap, tmp_path):
    run("r", "raised", ranks=1, program='/opt/a"b\\c\nd,\x1b[31me')
    done = overlap("report", str(top), "--jobs", "--prometheus", str(tmp_path / "x.prom"))
    assert done.returncode == 0 and "\x1b" not in done.stdout
    (line,) = re.findall(r"^overlap_run_runs.*", (tmp_path / "x.prom").read_text(), re.M)
    assert line == r'overlap_run_runs{program="a\"b\\c?d,?[31me",verdict="would be raised"} 1'
    (row,) = csv.DictReader(io.StringIO(overlap("report", str(top), "--jobs", "--csv").stdout))
    assert row["program"] == 'a"b\\c?d,?[31me'


@ROOT
def test_a_page_counts_for_the_user_whom_the_file_belongs_to(run, top, write_page):
    run("a", "raised", owner=1)
    path = run("b", "raised", owner=2)
    os.chown(path, 2, 2)
    (page, _) = sorted(path.iterdir())
    os.chown(page, 54321, 54321)  # whom this machine does not know
    users = {(row.user, row.runs) for row in jobs(str(top)).programs}
    assert users == {(pwd.getpwuid(1).pw_name, 1), (pwd.getpwuid(2).pw_name, 1), ("54321", 1)}


@pytest.fixture
def as_nobody(overlap, clean_environment) -> Callable[..., subprocess.CompletedProcess[str]]:
    """overlap(words ...) of a user to whom folders may be closed, and who may read no Python of root's."""

    def become() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        overlap(*words)  # so that all modules are there: nobody may not be able to read them later
        return in_process.forked(lambda: become() or main(sys.argv[1:]), list(words), clean_environment)

    return run


def passable(path: Path) -> None:
    """Other users may enter and read this folder; what is in it they may or may not."""
    for around in (path, *path.parents):
        around.chmod(around.stat().st_mode | 0o5)


@ROOT
def test_folders_and_pages_of_others_are_counted_and_the_next_step_is_to_run_as_one_who_may_read(run, top, as_nobody):
    (run("a", "raised")).chmod(0)
    (run("b", "raised")).chmod(0)
    passable(top)
    done = as_nobody("report", str(top), "--jobs")
    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        [
            f"done: nothing: no page in {top} can be read: 2 folders closed to nobody",
            "gain: not known",
            f"next: as root, or another user who may read them: overlap report {top} --jobs",
        ],
    )
    assert done.stderr == f"overlap: warning: 2 folders skipped: Permission denied (the first: {top}/a)\n"
    path = run("c", "raised")
    path.chmod(0o755)
    (page, other) = sorted(path.iterdir())
    page.chmod(0o644)
    other.chmod(0)
    (top / "b").chmod(0o755)
    (top / "b" / other.name).unlink()
    (top / "b" / page.name).unlink()
    done = as_nobody("report", str(top), "--jobs")
    said, _, following = done.stdout.splitlines()[:3]
    assert said.endswith("; not read: 1 folder and 1 page closed to nobody")
    assert following == f"next: the rest, as root, or another user who may read them: overlap report {top} --jobs"
    assert f"warning: 1 page skipped: Permission denied ({other})\n" in done.stderr
    top.chmod(0)
    done = as_nobody("report", str(top), "--jobs")
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [
            f"overlap: error: the folder {top} cannot be read: Permission denied",
            "overlap: help: run it as a user who may read the folder",
        ],
    )


def test_a_report_of_a_folder_of_many_runs_names_jobs(run, top, overlap):
    """Where they are two folders down, and `overlap report` of one run finds none."""
    path = run("node1/alice/slurm-1.0", "raised")
    (top / "a").mkdir()
    (top / "loop").symlink_to(top)
    for named in (top, top / "node1"):
        done = overlap("report", str(named))
        assert (done.returncode, done.stdout) == (1, "")
        error, hint = done.stderr.splitlines()
        assert error == f"overlap: error: {named} holds no run itself, but folders with runs"
        assert hint == f"overlap: help: of all runs: overlap report {named} --jobs; of one: overlap report {path}"
        for command in hint.removeprefix("overlap: help: of all runs: ").split("; of one: "):
            assert overlap(*command.split()[1:]).returncode == 0


@ROOT
def test_a_report_of_a_folder_whose_runs_are_closed_says_so(run, top, as_nobody):
    run("node1/alice/slurm-1.0", "raised")
    (top / "node1" / "alice").chmod(0)
    (top / "node1").chmod(0o755)
    passable(top)
    done = as_nobody("report", str(top))
    assert (done.returncode, done.stderr.splitlines()) == (
        1,
        [
            f"overlap: error: {top} holds no report that you may read: {top}/node1/alice is closed",
            f"overlap: help: if reports are in there, run it as a user who may read it: overlap report {top} --jobs; "
            "if not, name the folder that overlap-run --report DIR made",
        ],
    )
    top.chmod(0o700)
    done = as_nobody("report", str(top))
    assert done.stderr.splitlines()[1] == "overlap: help: run it as a user who may read it"


@ROOT
def test_a_closed_page_is_not_said_to_be_a_bad_copy(run, top, as_nobody):
    path = run("a", "raised")
    path.chmod(0o755)
    for page in path.glob("*.page"):
        page.chmod(0)
    for start in path.glob("*.json"):
        start.unlink()
    passable(top)
    done = as_nobody("report", str(path))
    hint = done.stderr.splitlines()[-1]
    assert "Permission denied" in done.stderr
    assert hint == (
        "overlap: help: what is the matter with each is said above; run it as a user who may read them, or ask "
        "their owner"
    )


@pytest.mark.parametrize(
    ("spoil", "following"),
    [
        (
            lambda data: data[:4] + (9999).to_bytes(4, "little") + data[8:],
            "next: read them with the overlap-run that wrote",
        ),
        (lambda data: data[:100], "next: copy the pages again: the warnings say "),
    ],
    ids=["another version", "truncated"],
)
def test_pages_that_are_there_and_no_good_are_not_to_be_written_first(run, top, overlap, spoil, following):
    (page, other) = sorted(run("r", "raised").iterdir())
    for path in (page, other):
        path.write_bytes(spoil(path.read_bytes()))
    done = overlap("report", str(top), "--jobs")
    assert (done.returncode, done.stdout.splitlines()[2][: len(following)]) == (1, following)
    assert "overlap: warning: 2 pages skipped: " in done.stderr and f" (the first: {page})" in done.stderr


def test_nothing_is_written_into_the_folder(run, top, overlap):
    run("a", "raised")
    before = {path: path.lstat() for path in top.rglob("*")}
    assert overlap("report", str(top), "--jobs").returncode == 0
    after = {path: path.lstat() for path in top.rglob("*")}
    assert [(path, info.st_mtime_ns, info.st_size) for path, info in after.items()] == [
        (path, info.st_mtime_ns, info.st_size) for path, info in before.items()
    ]


# ---- Screens, JSON, CSV, metrics ----


@pytest.fixture
def three(run) -> None:
    run("1", "raised", "large", raised=62, program="/opt/comd", seconds=10 * HOUR)
    run("2", "programs", program="/opt/astaroth", seconds=20 * HOUR)
    run("3", program="/opt/one", seconds=HOUR)


def test_the_screen(three, top, overlap):
    done = overlap("report", str(top), "--jobs", env={"COLUMNS": ""})
    assert (done.returncode, done.stderr) == (0, "")
    said, gain, following, empty, heads, *table = done.stdout.splitlines()
    assert said == "done: read 3 runs of 3 programs by 1 user: 62.0 GPU hours"
    assert gain == (
        "gain: not measured; the default would raise streams in 1 program, whose runs took 20.0 GPU hours (32 %)"
    )
    assert following == f"next: overlap tune -- LAUNCHER comd, by {ME}, measures the first of them: 20.0 GPU hours"
    assert (empty, heads.split()[:3]) == ("", ["user", "program", "runs"])
    assert [" ".join(line.split()) for line in table] == [
        f"{ME} comd 1 2 2 20.0 200 2 of 4 62 % would be raised {_day(10)}",
        f"{ME} astaroth 1 2 2 40.0 200 0 of 2 0 % not raised: own priorities {_day(20)}",
        f"{ME} one 1 2 2 2.0 200 0 of 0 0 % not raised: no stream judged {_day(1)}",
    ]


def _day(hours: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(NOW + hours * HOUR))


def test_nothing_to_gain(run, top, overlap):
    run("2", "programs")
    done = overlap("report", str(top), "--jobs").stdout.splitlines()
    assert done[1] == "gain: none from the default: it raises no stream of any of these programs; the table says why"


def test_json_and_csv_say_the_same(three, top, overlap):
    answer = json.loads(overlap("report", str(top), "--jobs", "--json").stdout)
    assert {name: answer[name] for name in ("version", "runs", "processes", "skipped")} == {
        "version": 1,
        "runs": 3,
        "processes": 6,
        "skipped": {},
    }
    assert answer["programs"][0] == {
        "user": ME,
        "program": "comd",
        "verdict": "would be raised",
        "runs": 1,
        "ranks": 2,
        "gpus": 2,
        "gpu_hours": 20.0,
        "gpu_hours_raised": 20.0,
        "launches": 200,
        "launches_raised": 124,
        "streams": 4,
        "streams_raised": 2,
        "last": NOW + 10 * HOUR,
        "verdicts": {"would be raised": 1},
    }
    table = list(csv.DictReader(io.StringIO(overlap("report", str(top), "--jobs", "--csv").stdout)))
    for row, program in zip(table, answer["programs"]):
        assert row == {name: str(value) for name, value in program.items() if name != "verdicts"}


def test_the_metrics_are_a_file_that_the_node_exporter_reads(three, top, overlap, tmp_path):
    """Readable for it, whole at any time, and without a user or a command line."""
    path = tmp_path / "overlap.prom"
    path.write_text("old")
    assert overlap("report", str(top), "--jobs", "--prometheus", str(path)).returncode == 0
    lines = path.read_text().splitlines()
    assert 'overlap_run_gpu_hours{program="comd",verdict="would be raised"} 20' in lines
    assert 'overlap_run_launches_raised{program="comd",verdict="would be raised"} 124' in lines
    assert 'overlap_run_runs{program="astaroth",verdict="own priorities"} 1' in lines
    assert lines[-1] == "overlap_run_skipped 0"
    form = re.compile(
        r'# (HELP|TYPE) overlap_run_\w+ .+|overlap_run_\w+(\{program="[^"]*",verdict="[^"]*"\})? [\d.e+]+'
    )
    assert [line for line in lines if not form.fullmatch(line)] == []
    for name in re.findall(r"^# TYPE (\w+) gauge$", path.read_text(), re.M):
        numbers = [index for index, line in enumerate(lines) if re.match(rf"{name}[ {{]", line)]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "the lines of a metric stand together"
    assert "user" not in path.read_text()
    assert path.stat().st_mode & 0o444 == 0o444 & ~os.umask(os.umask(0o22))
    assert [other.name for other in tmp_path.iterdir() if "prom" in other.name] == ["overlap.prom"]


def test_the_labels_of_metrics_are_bounded(run, top, overlap, tmp_path):
    for number in range(110):
        run(str(number), "raised", ranks=1, program=f"/opt/p{number}")
    overlap("report", str(top), "--jobs", "--prometheus", str(tmp_path / "x"))
    programs = set(re.findall(r'program="([^"]*)"', (tmp_path / "x").read_text()))
    assert len(programs) == 101 and "(other)" in programs
    assert len(re.findall(r"^overlap_run_runs", (tmp_path / "x").read_text(), re.M)) == 101


def test_a_file_of_metrics_that_cannot_be_written(three, top, overlap, tmp_path):
    done = overlap("report", str(top), "--jobs", "--prometheus", str(tmp_path / "none" / "x"))
    assert done.returncode == 1
    assert "overlap: help: name a file in a folder that exists\n" in done.stderr


def test_an_empty_folder(top, overlap):
    done = overlap("report", str(top), "--jobs")
    assert done.returncode == 1 and done.stdout.startswith(f"done: nothing: no page in {top} can be read\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--jobs", "--full"), "--full is of one run, and --jobs of all"),
        (("--jobs", "--json", "--csv"), "--json and --csv are two forms of the same answer"),
        (("--csv",), "--csv is of all runs of a folder"),
        (("--prometheus", "x"), "--prometheus FILE is of all runs of a folder"),
    ],
)
def test_options_that_do_not_go_together(top, overlap, words, said):
    done = overlap("report", str(top), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"overlap: error: {said}\n")


def test_a_folder_that_is_not_there(tmp_path, overlap):
    done = overlap("report", str(tmp_path / "none"), "--jobs")
    assert (done.returncode, "cannot be read" in done.stderr) == (2, True)
