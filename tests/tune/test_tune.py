"""`overlap tune` in front of a program that says how long a step took; by its variables it also fails in every way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyshim.errors import OverlapError
from pyshim.policy.reader import read_file
from pyshim.tune import search, setup
from pyshim.tune.measure import _session as session

Run = Callable[..., "subprocess.CompletedProcess[str]"]
METRIC = ("--limit", "100s", "--metric", "step ([0-9.]+) ms")
PROGRAM = """#!/bin/sh
echo "$X:$Y:$NCCL_MAX_CTAS:$OVERLAP_TABLE:$LD_PRELOAD" >>runs.txt
step=100
case "$X" in fast) step=90 ;; faster) step=80 ;; slow) step=120 ;; esac
case "$Y" in 2) step=$((step - 5)) ;; esac
case "$NCCL_MIN_CTAS$NCCL_MAX_CTAS" in 8) step=$((step - 10)) ;; esac
case "$X" in
crash) exit 3 ;;
kill) kill -9 $$ ;;
silent) exit 0 ;;
other) echo "energy 2.5" ; step=1 ;;
hang) sleep 1000 ;;
wait) echo $$ >pid; mv pid waiting.txt; sleep 1000 ;;
*) echo "energy 1.5" ;;
esac
for i in 1 2 3; do echo "step $step ms"; done
"""


class Program:
    def __init__(self, folder: Path, call: Run) -> None:
        self.folder, self.call = folder, call
        path = folder / "program"
        path.write_text(PROGRAM)
        path.chmod(0o755)

    def tune(self, *words: str, env: dict[str, str] | None = None, metric: bool = True) -> Any:
        return self.call("tune", *(METRIC if metric else ()), *words, "--", "./program", cwd=self.folder, env=env)

    def answer(self, *words: str, env: dict[str, str] | None = None) -> Any:
        done = self.tune("--json", *words, env=env)
        assert done.returncode == ('answer": "not known' in done.stdout), done.stderr
        return json.loads(done.stdout)

    @property
    def runs(self) -> list[str]:
        path = self.folder / "runs.txt"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def program(overlap: Run, tmp_path: Path) -> Program:
    return Program(tmp_path, overlap)


def verdicts(answer: Any) -> dict[str, str]:
    return {arm["name"]: arm["verdict"] for arm in answer["arms"]}


def test_the_fastest_is_kept_and_the_command_starts_it(program: Program, overlap_run: Run) -> None:
    done = program.tune("--try", "X=fast,slow,faster")
    assert done.returncode == 0, done.stderr
    assert "answer  keep X=faster: 20.0 % less than bare (12.8 to 26.6 %)\n" in done.stdout
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("X=")}
    assert "-10.0 % (-17.4 to -1.9)" in rows["X=fast"] and rows["X=fast"].endswith("slower than X=faster")
    assert rows["X=slow"].endswith("  1  slower than X=faster") and rows["X=faster"].endswith("kept")
    tuned = program.folder / "tune-1" / "tuned.yaml"
    assert yaml.safe_load(tuned.read_text())["environment"] == {"X": "faster"}
    assert all(
        word in tuned.read_text() for word in ("# command: ./program", "# GPU: a host without a GPU", "# X=faster: 80")
    )
    assert "warning" not in "".join(finding.severity for finding in read_file(tuned).findings)
    use = done.stdout.splitlines()[-1].split()[1:]
    assert use == ["overlap-run", "--policy", "tune-1/tuned.yaml", "./program"]
    assert overlap_run(*use[1:], cwd=program.folder).returncode == 0
    assert program.runs[-1].startswith("faster:")


def test_bare_runs_as_often_as_the_arm_and_every_run_has_a_file(program: Program) -> None:
    """10 % are sure after four runs, because bare's first one agrees with its second."""
    answer = program.answer("--try", "X=fast")
    assert [(arm["name"], arm["runs"]) for arm in answer["arms"]] == [("bare", 2), ("X=fast", 2)]
    assert answer["runs"] == 4 == len(program.runs)
    files = sorted((program.folder / "tune-1").glob("*.txt"))
    assert len(files) == 4 and all("step" in file.read_text() for file in files)
    assert files[0].name == "001-bare.txt" and program.runs.count("fast::::") == 2


@pytest.mark.parametrize("first", [80, 130])
def test_a_first_run_unlike_the_second_does_not_count(program: Program, first: int) -> None:
    """Neither a faster one nor a slower one: bare is 100, and the arm 97."""
    text = PROGRAM.replace("step=100", f"step=100\n[ $(wc -l <runs.txt) -gt 1 ] || step={first}").replace(
        "step=90", "step=97"
    )
    (program.folder / "program").write_text(text)
    answer = program.answer("--try", "X=fast")
    assert answer["kept"] == "X=fast" and answer["arms"][1]["change_percent"] == pytest.approx(-3)
    assert answer["arms"][0]["value"] == pytest.approx(100)
    assert answer["runs"] == sum(arm["runs"] for arm in answer["arms"]) + 1


def test_where_all_are_alike_the_answer_is_to_leave_it(program: Program) -> None:
    answer = program.answer("--try", "X=same,alike")
    assert answer["answer"] == "leave it as it is: no arm is better than bare by 0.5 % or more"
    assert answer["sure"] and answer["kept"] is None
    assert verdicts(answer) == {"bare": "", "X=same": "no gain over bare", "X=alike": "no gain over bare"}
    assert yaml.safe_load(Path(program.folder, answer["tuned"]).read_text())["streams"] == {"raise": "off"}
    assert answer["use"] == "./program", "as it is"


def test_arms_with_the_same_numbers_get_the_same_verdict(program: Program) -> None:
    """Later stages compare with the best so far, and the least squares leave a rounding error."""
    program.folder.joinpath("program").write_text(PROGRAM.replace("step=100", "step=113").replace("step=90", "step=99"))
    done = program.tune("--try", "X=fast", "--try", "Z=8,16,32")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("X=fast ") and "=fast Z=" in line]
    assert len(rows) == 3 and all("-12.4 %" in row for row in rows), done.stdout
    assert all(row.endswith("no gain over X=fast") for row in rows), done.stdout


@pytest.mark.parametrize(
    ("ranks", "launcher"),
    [
        ({"SLURM_PROCID": "1", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "srun"),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, "mpirun"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "mpirun"),
        ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}, "torchrun"),
    ],
)
def test_one_of_several_tasks_is_refused(program: Program, ranks: dict[str, str], launcher: str) -> None:
    done = program.tune("--try", "X=fast", env=ranks)
    assert done.returncode == 2 and "this is one of 2 tasks of a launcher" in done.stderr
    assert f"help: overlap tune starts the launcher itself: overlap tune ... -- {launcher} ... ./program" in done.stderr
    assert not program.runs and not list(program.folder.glob("tune-*"))
    resumed = program.call("tune", "--resume", "tune-1", cwd=program.folder, env=ranks)
    assert resumed.returncode == 2 and "one of 2 tasks" in resumed.stderr


@pytest.mark.parametrize(
    "job",
    [
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"},
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_PROCID": "0"},
        {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_it_runs_in_the_shell_of_a_job(program: Program, job: dict[str, str]) -> None:
    """salloc without and with an interactive step, and a batch script: one process, whatever the job has."""
    assert program.answer("--try", "X=fast", env=job)["kept"] == "X=fast"


def test_a_higher_number_may_be_better(program: Program) -> None:
    answer = program.answer("--try", "X=fast,slow", "--higher")
    assert answer["kept"] == "X=slow"
    assert [round(arm["change_percent"], 3) for arm in answer["arms"][1:]] == [-10, 20]
    assert "20.0 % more than bare" in answer["answer"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("crash", "out: exit status 3"),
        ("kill", "out: killed by SIGKILL"),
        ("silent", "out: nothing that it printed matches --metric"),
        ("other", "out: prints other results (--same)"),
    ],
)
def test_an_arm_that_fails_is_out_and_the_rest_goes_on(program: Program, value: str, why: str) -> None:
    answer = program.answer("--try", f"X={value},fast", "--same", "energy .*")
    assert verdicts(answer) == {"bare": "", f"X={value}": why, "X=fast": "kept"}
    assert sum(run.startswith(f"{value}:") for run in program.runs) == 1


def test_an_arm_that_hangs_is_ended(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_AT_LEAST", 3.0)
    answer = program.answer("--try", "X=hang,fast")
    assert verdicts(answer)["X=hang"] == "out: took longer than 5 times the best"
    assert answer["kept"] == "X=fast"


@pytest.mark.parametrize(
    ("before", "words", "said"),
    [
        ("test -t 0 || { echo 'stdin is no terminal'; exit 5; }", (), "the program as it is: exit status 5"),
        ("exit 0", (), "the program as it is: nothing that it printed matches --metric"),
        ("", ("--metric", "step (.*)"), "--metric matches '100 ms', which is no number: put ( ) around the number"),
        ("", ("--skip", "3"), "--skip 3 leaves nothing of 3 matches"),
        ("", ("--same", "mass .*"), "nothing that it printed matches --same"),
        ("kill -9 $$", (), "the program as it is: killed by SIGKILL"),
    ],
)
def test_a_program_that_cannot_be_measured_is_an_error(
    program: Program, before: str, words: tuple[str, ...], said: str
) -> None:
    path = program.folder / "program"
    path.write_text(PROGRAM.replace("step=100", f"{before}\nstep=100"))
    done = program.tune("--try", "X=fast", *words)
    assert done.returncode == 1 and said in done.stderr and len(program.runs) == 1
    assert ("script -qec" in done.stderr) is ("the program as it is: nothing" not in done.stderr and "--" not in said)
    assert "001-bare.txt" in done.stderr and not (program.folder / "tune-1" / "tuned.yaml").exists()


def test_its_last_line_and_a_way_to_a_terminal_are_said(program: Program) -> None:
    (program.folder / "program").write_text("#!/bin/sh\ntest -t 0 || { echo no terminal; exit 5; }\n")
    done = program.tune("--try", "X=fast")
    assert 'it ended with "no terminal"' in done.stderr and "script -qec PROGRAM /dev/null" in done.stderr


def test_a_program_that_fails_later_on_ends_the_search(program: Program) -> None:
    text = PROGRAM.replace("step=100", 'step=100\n[ "$X" ] || [ $(wc -l <runs.txt) -lt 4 ] || exit 7')
    (program.folder / "program").write_text(text)
    done = program.tune("--try", "X=fast")
    assert done.returncode == 1
    assert "answer  not known: the program as it is failed twice in a later run (exit status 7)" in done.stdout
    assert "(overlap tune --resume tune-1 goes on)" in done.stdout and "is repeated: tune-1/004-bare.txt" in done.stderr
    assert not (program.folder / "tune-1" / "tuned.yaml").exists()
    (program.folder / "program").write_text(PROGRAM)
    done = program.call("tune", "--resume", "tune-1", cwd=program.folder)
    assert done.returncode == 0 and "answer  keep X=fast" in done.stdout, done.stderr
    assert len(program.runs) == 6  # two of them failed, and were done again


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--try", "X=1", "--metric", "step ("), "--metric step (: missing ), unterminated subpattern"),
        (("--try", "X"), "--try X: not VAR=V1,V2"),
        (("--try", "X=1,,2"), "--try X=1,,2: not VAR=V1,V2"),
        (("--try", "LD_PRELOAD=x"), "LD_PRELOAD` is not tried"),
        (("--try", "1X=x"), "is not the name of a variable"),
        (("--set", "mkl"), "no set is called mkl"),
        (("--try", "X=1", "--limit", "soon"), "--limit soon: not a time"),
        (("--try", "X=1", "--limit", "0s"), "--limit 0s: not a time"),
        (("--try", "X=1", "--worth", "0"), "--worth 0: not a percentage"),
        (("--try", "X=1", "--skip", "-1"), "--skip -1: not a number of matches"),
        (("--simulate", "h100", "--arm", "mine"), "--arm mine: not NAME=POLICY"),
        (("--simulate", "h100", "--arm", "a=b,c"), "--arm a=b,c: an arm has one policy"),
        (("--simulate", "h100", "--arm", "default=observe"), "there is an arm of that name"),
        (("--simulate", "h100", "--arm", "a=nowhere"), "there is no policy `nowhere`"),
        (
            ("--simulate", "h100", "--paper"),
            "help: the published method is a policy, GPU-paper: --arm paper=",
        ),
        (("--try", "X=1", "--grid"), "help: each --try goes on top of the best arm so far; to try X under "),
        ((), "there is nothing to compare: no GPU driver on this machine"),
        (("--resume", "tune-1"), "--resume takes all but --limit and --json from DIR"),
    ],
)
def test_a_wrong_word_is_an_error_before_any_run(program: Program, words: tuple[str, ...], said: str) -> None:
    done = program.tune(*words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and done.stdout == ""
    assert ("help: a machine with a GPU, or --simulate GPU " in done.stderr) is ("no GPU driver" in said)
    assert program.runs == [] and not (program.folder / "tune-1").exists()


def test_a_policy_with_a_mistake_is_an_error_before_any_run(program: Program) -> None:
    (program.folder / "mine.yaml").write_text("policy: 1\nname: mine\nstreams: {raised: off}\n")
    done = program.tune("--simulate", "h100", "--arm", "mine=./mine.yaml")
    assert done.returncode == 2 and "mine.yaml:3:11: error[" in done.stderr
    assert program.runs == [] and not (program.folder / "tune-1").exists()


def test_what_is_about_numbers_needs_a_metric(program: Program) -> None:
    """Else the slowest arm would be kept."""
    for words in (("--higher",), ("--skip", "1")):
        done = program.tune("--try", "X=1", *words, metric=False)
        assert done.returncode == 2 and f"{words[0]} needs --metric" in done.stderr and program.runs == []


def test_a_program_that_goes_away_is_an_error_and_nothing_is_lost(program: Program) -> None:
    path = program.folder / "program"
    path.write_text(PROGRAM.replace("step=100", "step=100\n[ $(wc -l <runs.txt) -lt 3 ] || mv program old"))
    done = program.tune("--try", "X=1", "--output", "the search")
    assert done.returncode == 1 and "./program: No such file" in done.stderr
    assert "nothing is lost: overlap tune --resume 'the search' goes on" in done.stderr


def test_a_program_that_is_not_there(program: Program, overlap: Run) -> None:
    done = overlap("tune", "--try", "X=1", "--", "./nothing", cwd=program.folder)
    assert done.returncode == 2 and done.stderr.startswith("overlap: error: ./nothing: program not found\n")
    assert done.stderr.endswith("holds no nothing: build it, or name the program by its path from here\n")
    done = overlap("tune", "--", "demo-stencil", cwd=program.folder)
    assert done.returncode == 2 and "only: overlap tune --simulate h100 -- demo-stencil\n" in done.stderr
    assert "options of overlap-run" not in overlap("tune", "--", "nothing", cwd=program.folder).stderr
    done = overlap("tune", "--try", "X=1", cwd=program.folder)
    assert done.returncode == 2 and "no program to run" in done.stderr


def test_a_folder_of_no_search_cannot_be_resumed(program: Program, overlap: Run) -> None:
    for text, why in (
        ("", "it was written by another version"),
        ("x\n", "Expecting value"),
        ('{"version": 1}\n', "it was"),
        ('{"version": 3}\n', "line 1 is not whole"),
    ):
        (program.folder / "tune.jsonl").write_text(text)
        done = overlap("tune", "--resume", ".", cwd=program.folder)
        assert done.returncode == 2 and f"./tune.jsonl cannot be read: {why}" in done.stderr
    done = overlap("tune", "--resume", "nowhere", cwd=program.folder)
    assert done.returncode == 2 and "nowhere/tune.jsonl cannot be read: No such file or directory" in done.stderr


def test_a_variable_that_is_tried_twice_and_an_overlap_run_inside(program: Program, overlap: Run) -> None:
    answer = program.answer("--try", "X=fast", "--try", "X=fast,slow")
    assert verdicts(answer) == {"bare": "", "X=fast": "kept", "X=slow": "slower than X=fast"}
    assert [arm["name"] for arm in program.answer("--try", "X=fast,fast")["arms"]] == ["bare", "X=fast"]
    done = overlap("tune", "--try", "X=1", "--", "sh", "-c", "x", "overlap-run", cwd=program.folder)
    assert done.returncode == 2 and "no run would be bare" in done.stderr


def test_a_folder_that_cannot_be_made_is_an_error_before_any_run(program: Program) -> None:
    done = program.tune("--try", "X=1", "--output", "/proc/tune")
    assert done.returncode == 1 and "/proc/tune cannot be made: " in done.stderr and "--output DIR" in done.stderr
    done = program.tune("--try", "X=1", "--output", "program")
    assert done.returncode == 2 and "program is not a folder" in done.stderr
    done = program.tune("--try", "X=1", "--output", ".")
    assert done.returncode == 2 and ". is not empty" in done.stderr
    assert program.runs == []


def below(answer: Any) -> list[str]:
    """Return the rows of a table that are better than its answer, though nothing is said against them."""
    best = answer["best_so_far"]
    figures = {arm["name"]: arm["change_percent"] or 0 for arm in answer["arms"]}
    open_rows = [arm["name"] for arm in answer["arms"] if not arm["verdict"].startswith(("no gain", "slower", "out"))]
    return [name for name in open_rows if figures[name] < figures[best or "bare"] - 1e-9]


NOISY = PROGRAM.replace("step=100", "step=$((97 + (7 * $(wc -l <runs.txt)) % 6)); sleep 0.2")  # 97 to 102


@pytest.mark.parametrize("limit", ["0.7s", "1s", "1.6s", "2.5s", "4s", "9s"])
def test_whatever_the_time_the_answer_is_the_best_row_of_its_table(program: Program, limit: str) -> None:
    """A program of 0.2 s with 2 % noise whose first run is faster than later ones; also ends within a stage."""
    text = NOISY.replace("sleep 0.2", "sleep 0.2; [ $(wc -l <runs.txt) -gt 1 ] || step=93")
    (program.folder / "program").write_text(text)
    tries = ("--try", "X=slow,fast", "--try", "Y=1,2")
    answer = program.answer(*tries, "--limit", limit)
    assert below(answer) == [] and answer["answer"] and len(program.runs) == answer["runs"] > 1
    assert answer["interrupted"] is False, "the time was over"
    if answer["kept"] is None and not answer["sure"]:
        assert answer["tuned"] is answer["use"] is None and "overlap tune --resume tune-1 goes on" in answer["answer"]
    else:
        tuned = yaml.safe_load(Path(program.folder, answer["tuned"]).read_text())
        assert "environment" in tuned and tuned["streams"] == {"raise": "off"}
    for line in (program.folder / "tune-1" / "tune.jsonl").read_text().splitlines()[1:]:
        assert json.loads(line)["arm"] in {arm["name"] for arm in answer["arms"]}
    (program.folder / "program").write_text(text.replace("sleep 0.2; ", ""))  # the same numbers, and sooner
    done = program.call("tune", "--resume", "tune-1", "--limit", "60s", "--json", cwd=program.folder)
    assert done.returncode == 0, done.stderr
    resumed = json.loads(done.stdout)
    assert below(resumed) == [] and resumed["sure"]
    assert resumed["kept"] in ("X=fast", "X=fast Y=2")  # the second stage may have begun on another arm


def test_what_was_resumed_says_the_same_as_a_search_without_a_break(program: Program) -> None:
    tries = ("--try", "X=slow,fast,same", "--try", "Y=1,2")
    whole = program.answer(*tries, "--limit", "60s")
    (program.folder / "program").write_text(PROGRAM.replace("step=100", "step=100; sleep 0.2"))
    short = program.answer(*tries, "--limit", "1.5s")
    (program.folder / "program").write_text(PROGRAM)
    assert whole["sure"] and not short["sure"] and whole["kept"] == "X=fast Y=2"
    done = program.call("tune", "--resume", "tune-2", "--limit", "60s", "--json", cwd=program.folder)
    resumed = json.loads(done.stdout)
    assert resumed["kept"] == whole["kept"] and resumed["sure"]
    assert below(resumed) == [] and resumed["runs"] <= whole["runs"] + 6


def test_time_for_a_single_further_run_is_used(program: Program) -> None:
    text = PROGRAM.replace("step=100", "step=100; sleep 0.4")
    (program.folder / "program").write_text(text)
    answer = program.answer("--try", "X=fast,slow", "--limit", "1.1s")
    assert answer["runs"] == 2 and not answer["sure"]
    tried = next(arm for arm in answer["arms"][1:] if arm["runs"])
    expected = (
        f"best so far, not sure: {tried['name']}, " if tried["name"] == "X=fast" else "leave it as it is: no arm is "
    )
    assert answer["answer"].startswith(expected) and "the time is up before all was sure" in answer["answer"]
    assert "in a single run" in answer["answer"] or tried["name"] == "X=slow"
    (program.folder / "program").write_text(PROGRAM.replace("step=100", "echo password:; sleep 1000"))
    done = program.tune("--try", "X=fast", "--limit", "1s")
    assert done.returncode == 1 and "a run takes longer than --limit" in done.stderr
    assert 'it ended with "password:": tune-2/001-bare.txt' in done.stderr


def test_every_arm_runs_once_before_bare_runs_again(program: Program) -> None:
    (program.folder / "program").write_text(PROGRAM.replace("step=100", "step=100; sleep 0.4"))
    answer = program.answer("--try", "X=fast,slow", "--try", "Y=2", "--limit", "2.2s")
    runs = {arm["name"]: arm["runs"] for arm in answer["arms"]}
    assert answer["runs"] < 4 or runs["X=fast Y=2"] == 1, runs  # fewer on a loaded machine


def test_an_arm_that_is_far_slower_runs_once(program: Program) -> None:
    (program.folder / "program").write_text(PROGRAM.replace("slow) step=120", "slow) step=190"))
    answer = program.answer("--try", "X=fast,slow,same")
    runs = {arm["name"]: arm["runs"] for arm in answer["arms"]}
    assert answer["kept"] == "X=fast" and runs["X=slow"] == 1 < runs["X=same"]


def test_a_better_row_that_is_not_sure_is_named(program: Program) -> None:
    """In the second stage the time ends after one run of each."""
    text = PROGRAM.replace("step=100", 'step=100; case "$Y" in 2) sleep 1.7 ;; esac')
    (program.folder / "program").write_text(text)
    answer = program.answer("--try", "X=fast", "--try", "Y=2", "--limit", "2.5s")
    assert answer["kept"] == "X=fast" and answer["best_so_far"] == "X=fast Y=2" and not answer["sure"]
    assert answer["answer"].startswith("keep X=fast: 10.0 % less than bare (")
    assert "; X=fast Y=2 may be better: 15.0 % less than bare (" in answer["answer"]
    assert (
        "not sure; the time is up before all was sure (overlap tune --resume tune-1 goes on, and " in answer["answer"]
    )
    tuned = yaml.safe_load(Path(program.folder, answer["tuned"]).read_text())
    assert tuned["environment"] == {"X": "fast"} and verdicts(answer)["X=fast Y=2"] == "best so far, not sure"


def test_one_variable_follows_the_best_value_of_the_other(program: Program) -> None:
    answer = program.answer("--try", "X=fast,slow", "--try", "Y=1,2")
    assert answer["kept"] == "X=fast Y=2"
    assert verdicts(answer) == {
        "bare": "",
        "X=fast": "kept until then",
        "X=slow": "slower than X=fast",
        "X=fast Y=1": "slower than X=fast Y=2",
        "X=fast Y=2": "kept",
    }
    assert [round(arm["change_percent"]) for arm in answer["arms"][1:]] == [-10, 20, -10, -15]
    assert not any(run.startswith(("slow:2", ":2")) for run in program.runs)


@pytest.mark.parametrize("order", [("X=slow", "Y=2", "X=fast"), ("X=fast,slow", "Y=2", "X=fast")])
def test_a_variable_that_is_tried_twice(program: Program, order: tuple[str, ...]) -> None:
    """As in two sets: CUDA_DEVICE_MAX_CONNECTIONS."""
    answer = program.answer(*(word for one in order for word in ("--try", one)))
    assert set(answer["kept"].split()) == {"X=fast", "Y=2"} and "X=slow" in verdicts(answer)


def test_a_gain_below_worth_is_none(program: Program) -> None:
    answer = program.answer("--try", "X=faster", "--worth", "22")
    assert answer["kept"] is None and answer["answer"].endswith("no arm is better than bare by 22 % or more")
    assert verdicts(answer)["X=faster"] == "no gain over bare"
    assert program.answer("--try", "X=slow", "--worth", "21", "--higher")["kept"] is None


def test_what_the_user_has_set_is_an_arm_and_not_overwritten(program: Program) -> None:
    done = program.tune("--json", "--try", "X=slow,fast", env={"X": "fast"})
    assert "X is set here: bare, and arms that do not try it, keep fast" in done.stderr
    answer = json.loads(done.stdout)
    assert verdicts(answer) == {"bare": "", "X=slow": "slower than bare"}
    answer = program.answer("--try", "X=faster", env={"X": "fast"})
    assert answer["use"] == "X=faster overlap-run --policy tune-2/tuned.yaml ./program"
    assert "environment" not in yaml.safe_load(Path(program.folder, answer["tuned"]).read_text())


def test_what_all_ranks_must_agree_on_is_set_in_front(program: Program) -> None:
    answer = program.answer("--try", "NCCL_MAX_CTAS=4,8", "--try", "Y=2")
    assert answer["kept"] == "NCCL_MAX_CTAS=8 Y=2"
    assert answer["use"] == "NCCL_MAX_CTAS=8 overlap-run --policy tune-1/tuned.yaml ./program"
    text = Path(program.folder, answer["tuned"]).read_text()
    assert yaml.safe_load(text)["environment"] == {"Y": "2"}
    assert f"# not all of it can be in a policy; the whole command: {answer['use']}" in text


@pytest.mark.parametrize("name", ["mpirun", "mpiexec", "mpiexec.openmpi", "orterun", "setsid"])
def test_open_mpi_is_told_what_ranks_on_other_hosts_must_agree_on(program: Program, name: str) -> None:
    launcher = program.folder / name
    launcher.write_text('#!/bin/sh\nexec "$@"\n')
    launcher.chmod(0o755)
    words = (*METRIC, "--json", "--try", "NCCL_MAX_CTAS=8", "--", f"./{name}", "./program")
    done = program.call("tune", *words, cwd=program.folder)
    use = f"NCCL_MAX_CTAS=8 overlap-run --policy tune-1/tuned.yaml ./{name} ./program"
    listed = "OMPI_MCA_mca_base_env_list=NCCL_MAX_CTAS=8 " if name != "setsid" else ""
    assert json.loads(done.stdout)["use"] == listed + use, done.stderr


def test_a_set_tries_its_variables_one_after_the_other(program: Program) -> None:
    answer = program.answer("--set", "nccl")
    assert answer["kept"] == "NCCL_MIN_CTAS=8"
    assert len(answer["arms"]) == 1 + 3 + 1


def test_without_a_metric_the_time_of_the_run_counts(program: Program) -> None:
    (program.folder / "program").write_text('#!/bin/sh\n[ "$X" ] || sleep 0.5\n')
    done = program.tune("--json", "--try", "X=fast", metric=False)
    answer = json.loads(done.stdout)
    assert answer["kept"] == "X=fast" and answer["metric"] == "seconds of the run"


def test_a_policy_on_a_simulated_gpu(overlap: Run, tmp_path: Path) -> None:
    words = ("--simulate", "h100", "--metric", "([0-9.]+) ms an iteration", "--arm", "idle=observe")
    done = overlap("tune", *words, "--", "demo-stencil", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "keep default: " in done.stdout and "less than bare on a simulated GPU" in done.stdout
    assert "slower than default" in next(line for line in done.stdout.splitlines() if line.startswith("idle"))
    text = (tmp_path / "tune-1" / "tuned.yaml").read_text()
    assert yaml.safe_load(text) == {"policy": 1, "name": "tuned", "extends": "default"}
    assert "# GPU: simulated NVIDIA H100" in text
    assert done.stdout.splitlines()[-1].endswith("--simulate h100 --policy tune-1/tuned.yaml demo-stencil")


@pytest.mark.parametrize("word", ["sbatch", "salloc", "qsub", "srun"])
def test_it_never_queues_jobs(program: Program, overlap: Run, word: str) -> None:
    done = overlap("tune", "--try", "X=1", "--", word, "./program", cwd=program.folder)
    assert done.returncode == 2 and "queues a job for every run" in done.stderr
    assert "inside of one job" in done.stderr and program.runs == []


def test_a_launcher_that_drops_the_environment_is_refused(program: Program, overlap: Run) -> None:
    command = ("srun", "--export=NONE", "./program")
    (program.folder / "srun").write_text("#!/bin/sh\n")
    (program.folder / "srun").chmod(0o755)
    env = {"SLURM_JOB_ID": "1", "PATH": f"{program.folder}:{os.environ['PATH']}"}
    done = overlap("tune", "--try", "X=1", "--", *command, cwd=program.folder, env=env)
    assert done.returncode == 1 and "so all arms would be alike" in done.stderr


def test_switched_off_it_says_so(program: Program) -> None:
    done = program.tune("--try", "X=1", env={"OVERLAP_RUN": "off"})
    assert done.returncode == 2 and "OVERLAP_RUN=off turns everything off" in done.stderr


def test_nothing_of_an_overlap_run_around_it_reaches_the_arms(program: Program) -> None:
    answer = program.answer("--try", "X=fast", env={"OVERLAP_TABLE": "x", "LD_PRELOAD": "/x/liboverlap.so"})
    assert answer["kept"] == "X=fast" and set(program.runs) == {"::::", "fast::::"}


# ---- ended early ----


def begun(program: Program, env: dict[str, str], *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pyshim", "tune", *METRIC, *words, "--", "./program"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=program.folder, env={**env, "OVERLAP_PROGRESS": "off"}, **pipes)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_says_what_is_known_and_resumes(
    program: Program, clean_environment: dict[str, str], number: int, status: int
) -> None:
    waits = 'case "$Y" in wait) echo $$ >pid; mv pid waiting.txt; sleep 1000 ;;'
    (program.folder / "program").write_text(PROGRAM.replace('case "$Y" in', waits))
    process = begun(program, clean_environment, "--try", "X=fast", "--try", "Y=wait,2")
    until((program.folder / "waiting.txt").exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert "answer  keep X=fast: 10.0 % less than bare (" in out and "; interrupted before all was sure" in out
    assert (program.folder / "tune-1" / "tuned.yaml").exists()
    assert session(int((program.folder / "waiting.txt").read_text())) == []
    (program.folder / "program").write_text(PROGRAM)
    before = len(program.runs)
    done = program.call("tune", "--resume", "tune-1", cwd=program.folder)
    assert done.returncode == 0, done.stderr
    assert "answer  keep X=fast Y=2: 15.0 % less than bare" in done.stdout
    assert len(program.runs) < before + 25


def test_what_was_measured_of_something_else_is_not_resumed(
    program: Program, clean_environment: dict[str, str]
) -> None:
    """Of an arm whose policy was edited meanwhile, or of another GPU."""
    mine = program.folder / "mine.yaml"
    mine.write_text("policy: 1\nname: mine\n")
    process = begun(program, clean_environment, "--simulate", "h100", "--arm", "mine=./mine.yaml", "--try", "X=wait")
    until((program.folder / "waiting.txt").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    (program.folder / "program").write_text(PROGRAM)
    before = len(program.runs)
    mine.write_text("policy: 1\nname: mine\nstreams: {raise: {share: 20%}}\n")
    done = program.call("tune", "--resume", "tune-1", cwd=program.folder)
    assert done.returncode == 2 and "mine is no longer what it was: its policy" in done.stderr
    mine.write_text("policy: 1\nname: mine\n")
    kept = program.folder / "tune-1" / "tune.jsonl"
    kept.write_text(kept.read_text().replace("simulated NVIDIA H100", "simulated NVIDIA H200"))
    done = program.call("tune", "--resume", "tune-1", cwd=program.folder)
    assert done.returncode == 2 and "tune-1 was begun on simulated NVIDIA H200" in done.stderr
    assert len(program.runs) == before


def test_interrupted_before_it_is_sure_it_writes_no_policy(program: Program, clean_environment: dict[str, str]) -> None:
    process = begun(program, clean_environment, "--try", "X=wait")
    until((program.folder / "waiting.txt").exists)
    other = program.call("tune", "--resume", "tune-1", "--limit", "1s", cwd=program.folder)
    assert (other.returncode, other.stdout) == (2, "") and "tune-1 is in use by another overlap tune" in other.stderr
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "answer  not known: interrupted, and nothing but the program as it is has run" in out
    assert "overlap tune --resume tune-1 goes on" in out
    assert not (program.folder / "tune-1" / "tuned.yaml").exists()


def test_killed_it_loses_at_most_one_run(program: Program, clean_environment: dict[str, str]) -> None:
    process = begun(program, clean_environment, "--try", "X=fast,wait")
    until((program.folder / "waiting.txt").exists)
    process.kill()
    process.communicate(timeout=60)
    os.killpg(int((program.folder / "waiting.txt").read_text()), signal.SIGKILL)  # the program goes on until its end
    (program.folder / "program").write_text(PROGRAM.replace("wait) ", "wait) exit 1 ;;\nx) "))
    known = len((program.folder / "tune-1" / "tune.jsonl").read_text().splitlines()) - 1
    with (program.folder / "tune-1" / "tune.jsonl").open("a") as file:
        file.write('{"stage": 0, "round"')  # a line that was being written
    done = program.call("tune", "--resume", "tune-1", "--json", cwd=program.folder)
    answer = json.loads(done.stdout)
    assert answer["kept"] == "X=fast" and verdicts(answer)["X=wait"] == "out: exit status 1"
    runs = answer["runs"]
    assert len(program.runs) - 1 == runs > known and runs < 10
    assert json.loads(program.call("tune", "--resume", "tune-1", "--json", cwd=program.folder).stdout) == answer
    assert len(program.runs) - 1 == runs
    done = program.call("tune", "--resume", "../tune-1", cwd=program.folder / "tune-1")
    assert done.returncode == 2 and f"help: cd {program.folder}" in done.stderr


def test_the_time_of_a_run_on_a_simulated_gpu_is_no_metric(program: Program, overlap: Run) -> None:
    done = overlap("tune", "--simulate", "h100", "--try", "X=fast", "--", "./program", cwd=program.folder)
    assert done.returncode == 2 and len(program.runs) == 1  # which shows what it prints
    assert "--simulate needs --metric: how long a run takes is the host's time" in done.stderr
    assert "help: it prints \"step 100 ms\": --metric '([0-9.]+) ms' compares that\n" in done.stderr


def on_a_small_disk(program: Program, environment: dict[str, str], script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which `disk` has 256 KiB."""
    (program.folder / "disk").mkdir()
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=256k none disk || exit 77\n{script}"],
        cwd=program.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no file system can be mounted here")
    return done


def test_a_full_disk_loses_nothing(program: Program, clean_environment: dict[str, str]) -> None:
    """An arm whose output finds no room is not called wrong, and the search goes on once there is some."""
    text = PROGRAM.replace("crash) exit 3 ;;", "big) head -c 300000 /dev/zero || exit 9 ;;")
    (program.folder / "program").write_text(text)
    options = "--metric 'step ([0-9.]+) ms' --try X=fast,big --output disk/t"
    script = f"""{sys.executable} -m pyshim tune {options} -- ./program
echo "status $?"; rm disk/t/*big*
sed -i 's/300000/3000/' program
{sys.executable} -m pyshim tune --resume disk/t; echo "status $?\""""
    done = on_a_small_disk(program, clean_environment, script)
    assert "the disk of disk/t is full" in done.stderr and "overlap tune --resume disk/t goes on" in done.stderr
    assert "status 1" in done.stdout and done.stdout.endswith("status 0\n")
    assert "keep X=fast" in done.stdout and "slower than X=fast" in done.stdout


@pytest.mark.parametrize("own", [False, True])
def test_a_disk_that_is_full_from_the_start(program: Program, clean_environment: dict[str, str], own: bool) -> None:
    """Nothing is begun, so nothing is left but a folder that was there, and nothing can be resumed."""
    script = f"""{"mkdir disk/t" if own else ":"}; head -c 1000000 /dev/zero >disk/fill 2>&-
{sys.executable} -m pyshim tune --try X=fast --output disk/t -- ./program; echo "status $?"; ls disk"""
    done = on_a_small_disk(program, clean_environment, script)
    assert "disk/t/tune.jsonl cannot be written: No space left on device" in done.stderr
    assert "help: --output DIR names a folder on a disk with room" in done.stderr and "resume" not in done.stderr
    assert done.stdout == f"status 1\nfill\n{'t' * own}".strip() + "\n" and program.runs == []


def test_of_two_that_come_at_once_one_has_the_folder(tmp_path: Path) -> None:
    setup.begin({"version": setup.VERSION}, str(tmp_path), False)
    with pytest.raises(OverlapError, match="is in use by another overlap tune"):
        setup.begin({"version": setup.VERSION}, str(tmp_path), False)
    assert (tmp_path / "tune.jsonl").read_text().count("version") == 1


def test_a_run_that_fails_once_is_repeated(program: Program) -> None:
    """The fifth run fails, whichever arm it is, after all of them have run once."""
    text = PROGRAM.replace("step=100", "step=100\n[ $(wc -l <runs.txt) -ne 5 ] || exit 3")
    (program.folder / "program").write_text(text)
    done = program.tune("--try", "X=fast,same")
    assert done.returncode == 0 and "answer  keep X=fast" in done.stdout, done.stdout + done.stderr
    assert "out: " not in done.stdout and "failed (exit status 3), and is repeated: tune-1/005-" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_the_first_run_it_says_that_nothing_is_known(
    program: Program, clean_environment: dict[str, str], number: int
) -> None:
    process = begun(program, {**clean_environment, "X": "wait"}, "--try", "X=fast")
    until((program.folder / "waiting.txt").exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number and "mistake" not in err, err
    assert "answer  not known: interrupted, and no run has ended (overlap tune --resume tune-1 goes on)" in out


def test_what_is_not_better_in_the_table_is_not_called_better(program: Program) -> None:
    """Noise of 0.01 % in favour of an arm is shown as 0.0 %, and two arms alike are told by the one that sets less."""
    text = PROGRAM.replace("step=100", "step=10000").replace("step=90", "step=9000")
    text = text.replace('case "$Y" in 2) step=$((step - 5))', 'case "$Y" in 2) step=$((step - 1))')
    (program.folder / "program").write_text(text + "sleep 0.3\n")
    answer = program.answer("--try", "Y=2", "--limit", "1.4s")
    assert answer["best_so_far"] is None or answer["sure"], answer
    answer = program.answer("--try", "X=fast", "--try", "Y=2", "--limit", "4s")
    assert answer["best_so_far"] in ("X=fast", None) and "may be better" not in answer["answer"], answer


def test_resume_goes_on_for_as_long_as_before(program: Program) -> None:
    (program.folder / "program").write_text(NOISY)
    program.tune("--try", "X=same,alike", "--limit", "1.5s")
    program.call("tune", "--resume", "tune-1", cwd=program.folder)
    assert len(program.runs) < 20  # of 0.2 s each; in the 30 minutes of a search without --limit many more


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("./program 5", "help: leave the quotes out: ./program 5"),
        ("sh program", "help: leave the quotes out: sh program"),
        ("X=fast", "help: a variable is set by env: env X=fast PROGRAM"),
    ],
)
def test_a_command_in_quotes_and_a_variable_in_front(program: Program, command: str, said: str) -> None:
    done = program.call("tune", "--try", "X=1", "--", command, cwd=program.folder)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_what_same_and_metric_both_match_is_told_at_the_first_run(program: Program) -> None:
    """Otherwise every arm that changes the time is out, and the answer is that none is better."""
    done = program.tune("--try", "X=fast", "--same", "step .*")
    assert done.returncode == 2, done.stdout
    assert (
        'overlap: error: --same matches "step 100 ms", with the number that --metric reads: every arm changes it\n'
        "overlap: help: name in --same only what must not change"
    ) in done.stderr
    assert len(program.runs) == 1
    answer = program.answer("--try", "X=fast", "--same", "(?:energy .*|step|ms)")
    assert answer["kept"] == "X=fast"


def test_results_that_differ_between_two_bare_runs_are_an_error(program: Program) -> None:
    text = PROGRAM.replace('echo "energy 1.5"', 'echo "energy $(wc -l <runs.txt)"')
    (program.folder / "program").write_text(text)
    done = program.tune("--try", "X=fast", "--same", "energy .*")
    assert done.returncode == 1 and "tuned" not in done.stdout
    found = re.search(r'print different results where --same matches: "energy 1" and "energy (\d)"\n', done.stderr)
    assert found and int(found[1]) == len(program.runs) and program.runs[int(found[1]) - 1].startswith(":"), done.stderr
    assert "overlap: help: name in --same only what is the same in every run" in done.stderr


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("total 12.5 s", 'it prints numbers in "total 12.5 s": --metric takes one of them, with ( ) around the number'),
        ("it took 3 ms a step", "it prints \"it took 3 ms a step\": --metric '([0-9.]+) ms a step' compares that"),
        ("done", "it prints no number: let the program print the time of a step, and name that with --metric"),
    ],
)
def test_a_metric_that_matches_nothing_shows_what_was_printed(program: Program, printed: str, said: str) -> None:
    (program.folder / "program").write_text(f"#!/bin/sh\necho {printed}\n")
    done = program.tune("--try", "X=1")
    assert done.returncode == 1
    assert "error: the program as it is: nothing that it printed matches --metric\n" in done.stderr
    assert f"overlap: help: {said} (tune-1/001-bare.txt)\n" in done.stderr


@pytest.mark.parametrize("words", [(), ("-", "plain", "6", "host-staged/stream")])
def test_the_metric_that_is_offered_for_a_simulated_run_fits_it(
    overlap: Run, library: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    program = ("--", "demo-stencil", *words)
    done = overlap("tune", "--simulate", "h200", *program, cwd=tmp_path)
    assert done.returncode == 2 and "error: --simulate needs --metric: " in done.stderr
    assert list(tmp_path.iterdir()) == []
    (offered,) = re.findall(r"--metric '([^']+)' compares that\n", done.stderr)
    done = overlap("tune", "--simulate", "h200", "--metric", offered, "--try", "X=1", *program, cwd=tmp_path)
    assert done.returncode == 0 and "answer  keep default" in done.stdout, done.stderr


def test_a_simulated_run_that_fails_offers_no_metric(overlap: Run, library: Any, program: Program) -> None:
    (program.folder / "program").write_text("#!/bin/sh\necho no input file\nexit 3\n")
    done = overlap("tune", "--simulate", "h200", "--", "./program", cwd=program.folder)
    assert done.returncode == 2
    assert done.stderr == (
        "overlap: --simulate needs --metric; runs the program once, for at most 60 s, to see what it prints\n"
        "overlap: error: --simulate needs --metric; a run of the program to offer one failed: exit status 3\n"
        'overlap: help: it ended with "no input file"; --metric REGEX names the number to compare, with ( ) around it\n'
    )


def test_a_simulated_run_that_takes_long_is_announced_and_needs_metric(
    overlap: Run, library: Any, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a word, the user waited a minute, and was then told of a program that takes too long."""
    monkeypatch.setattr(setup, "_PATIENCE", 1.0)
    (program.folder / "program").write_text("#!/bin/sh\necho a 5\nsleep 100\n")
    done = overlap("tune", "--simulate", "h200", "--", "./program", cwd=program.folder)
    assert done.returncode == 2
    assert done.stderr == (
        "overlap: --simulate needs --metric; runs the program once, for at most 1 s, to see what it prints\n"
        "overlap: error: --simulate needs --metric; a run of the program to offer one failed: took more than 1 s\n"
        'overlap: help: it ended with "a 5"; --metric REGEX names the number to compare, with ( ) around it\n'
    )


@pytest.mark.parametrize("limit", ["721h", "3000000h", "99999999h", "43201m", "9" * 400 + "s"])
def test_a_limit_longer_than_a_timer_takes_is_refused(program: Program, limit: str) -> None:
    done = program.tune("--try", "X=fast", "--limit", limit)
    assert done.returncode == 2 and not program.runs
    assert done.stderr == (
        f"overlap: error: --limit {limit}: too long\n"
        "overlap: help: 720h, which are 30 days, is the longest; --resume DIR goes on with an earlier search\n"
    )


def test_the_longest_limit_is_taken(program: Program) -> None:
    assert program.answer("--try", "X=fast", "--limit", "720h")["kept"] == "X=fast"


@pytest.mark.parametrize("same", ["", "^", "$", ".*", "(energy)?"])
def test_a_same_that_matches_nothing_is_refused(program: Program, same: str) -> None:
    """It was counted as a check, and an arm with other results was kept."""
    done = program.tune("--try", "X=fast", "--same", same)
    assert done.returncode == 2 and not program.runs
    assert done.stderr == (
        f"overlap: error: --same {same!r} matches an empty string: an output without results would pass the check\n"
        "overlap: help: name what must not change: --same 'energy .*', or --same '.+' for every line\n"
    )


def test_a_same_that_matches_between_letters_only_is_no_check(program: Program) -> None:
    done = program.tune("--try", "X=fast", "--same", r"\b")
    assert done.returncode == 1 and "nothing that it printed matches --same" in done.stderr
