"""overlap report keeps what a trial found out, overlap-run begins with it, and overlap trial lists and forgets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trials

from pyshim.launch import folder
from pyshim.launch.trials import Given, Program, given, keep, remembered

RUN = "0123456789abcdef"
SOME = {("symbol", "no_rule"): 9000, ("runtime", "communication"): 3000}
PROGRAM = Program("/usr/bin/python3", ("/srv/me/train.py", "-v"), ("NVIDIA H200",), "580.1", 2, "trial", "ab")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def tried(report: Path, write_page) -> Any:
    """Write the pages of a run of two ranks."""

    def write(run: str = RUN, ranks: int = 2, **fields: Any) -> None:
        policies = ({"name": "trial", "hash": "ab", "file": None},)
        note = Given(PROGRAM, 0, {}).as_json()
        path = report / f"run-{run}.json"
        path.unlink(missing_ok=True)
        folder.write(str(report), folder.Run(run, float(len(run)), ("python", "train.py"), policies, trials=(note,)))
        for rank in range(ranks):
            page = write_page(SOME, rank=rank, world=2, pid=100 + rank, run=run, flags=fields.get("flags", 5))
            trials.put(page, **{name: value for name, value in fields.items() if name != "flags"})

    return write


def known(overlap, home: dict[str, str]) -> list[Any]:
    done = overlap("trial", "--json", env=home)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["version"] == 1
    return list(found["programs"])


def test_a_verdict_is_kept_once(overlap, report, tried, home):
    tried()
    done = overlap("report", str(report), env=home)
    assert "what the trial found out in 1 run is kept for the next run of this command" in " ".join(done.stderr.split())
    again = overlap("report", str(report), "--json", env=home)
    assert again.stderr == ""
    (one,) = known(overlap, home)
    assert (one["program"], one["arguments"], one["world_size"]) == (PROGRAM.program, [*PROGRAM.arguments], 2)
    assert (one["kept"], one["level"], one["runs"]) == ("critical-streams", 1, 1)
    assert [(arm["name"], arm["samples"]) for arm in one["arms"]] == [("critical-streams", 12), ("a100-paper", 4)]
    assert one["arms"][0]["percent"] == pytest.approx(-17.8, abs=0.05)


def test_a_run_that_found_out_nothing_is_not_kept(overlap, report, tried, home):
    tried(status=trials.RUNNING, kept=0, settled=0, dropped=(), samples=((0, 0.0, 0.0),) * 3)
    assert "is kept" not in overlap("report", str(report), env=home).stderr
    assert known(overlap, home) == []


def test_an_arm_that_was_dropped_early_is_not_tried_again(overlap, report, tried, home):
    """It was dropped at level 0, and the verdict came at level 1. The next run is given it, and adds none of it."""
    tried(levels={2: 0})
    overlap("report", str(report), env=home)
    (memory,), broken = remembered(home)
    assert broken == [] and {level: [*arms] for level, arms in memory.levels.items()} == {
        0: ["a100-paper"],
        1: ["critical-streams"],
    }
    known = memory.at(memory.level)
    assert (memory.level, known["a100-paper"].count, known["critical-streams"].count) == (1, 4, 12)
    given = {"a100-paper": known["a100-paper"], "critical-streams": known["critical-streams"].at_most(8)}
    now = keep("next", Given(PROGRAM, 1, given), 1, known, "critical-streams", home)
    assert now and now.at(1)["a100-paper"] == known["a100-paper"]
    assert (now.level, now.levels[1]["critical-streams"].count) == (1, 16)


def test_samples_of_two_runs_without_a_verdict(overlap, report, tried, home):
    for run in (RUN, RUN[::-1]):
        tried(run, status=trials.RUNNING, kept=0, settled=0, dropped=())
        overlap("report", str(report), "--run", run, env=home)
    (one,) = known(overlap, home)
    assert (one["kept"], one["runs"], one["arms"][0]["samples"]) == (None, 2, 24)


@pytest.mark.parametrize("case", ["still running", "graphs", "not begun", "no note"])
def test_what_is_not_kept(case, overlap, report, tried, home, write_page, library):
    none = [(0, 0.0, 0.0)] * 3
    if case == "still running":
        tried(status=trials.RUNNING, kept=0, settled=0, flags=1)
    elif case == "not begun":
        tried(status=trials.RUNNING, kept=0, mark=0, begun=0, settled=0, samples=none)
    elif case == "graphs":
        tried(ranks=0)
        path = write_page(SOME, rank=0, world=2, counters={library.OVERLAP_COUNTER_GRAPH_LAUNCHES: 10**6})
        trials.put(path, trials.NOTHING, 0)
    else:
        trials.put(write_page(SOME, rank=0))
    assert overlap("report", str(report), env=home).returncode == 0
    assert known(overlap, home) == []


def test_ranks_that_differ_leave_no_verdict(overlap, report, tried, home, write_page):
    tried(ranks=1)
    trials.put(write_page(SOME, rank=1, world=2, pid=101), trials.NOTHING, 0)
    overlap("report", str(report), env=home)
    (one,) = known(overlap, home)
    assert (one["kept"], one["runs"]) == (None, 1)


def test_a_home_that_cannot_be_written(overlap, report, tried, tmp_path):
    tried()
    (tmp_path / "file").write_text("")
    done = overlap("report", str(report), env={"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert done.returncode == 0
    assert done.stdout.startswith("trial: critical-streams: -17.8 %")
    assert "what the trial found out is not kept for later runs" in " ".join(done.stderr.split())


def test_list_and_forget(overlap, report, tried, home):
    nothing = overlap("trial", env=home).stdout
    assert nothing == f"no trial is remembered in {home['XDG_CACHE_HOME']}/overlap-run/trials\n"
    tried()
    overlap("report", str(report), env=home)
    lines = overlap("trial", "train.py", env={**home, "COLUMNS": "200"}).stdout.splitlines()
    assert lines[0].split() == ["program", "GPUs", "ranks", "policy", "kept", "runs", "latest"]
    assert "python3 train.py -v  NVIDIA H200" in lines[1] and "critical-streams (-17.8 %)" in lines[1]
    done = overlap("trial", "--forget", "other.py", env=home)
    assert (done.returncode, "nothing is known of other.py" in done.stderr) == (1, True)
    assert "forgot 1 program" in overlap("trial", "--forget", "/srv/me/train.py", env=home).stderr
    assert known(overlap, home) == []


def test_a_damaged_file_is_named_and_forgotten(overlap, report, tried, home):
    tried()
    overlap("report", str(report), env=home)
    (file,) = Path(home["XDG_CACHE_HOME"], "overlap-run", "trials").iterdir()
    file.write_text("{")
    done = overlap("trial", env=home)
    assert done.returncode == 0 and f"{file} is damaged" in " ".join(done.stderr.split())
    assert overlap("trial", "--forget", env=home).returncode == 0
    assert not file.exists()


def test_the_next_run_begins_with_it(overlap_run, tmp_path, home):
    command = ("--simulate", "h100", "--policy", "trial", "--report", str(tmp_path / "out"), "demo-step")
    assert overlap_run(*command, env=home).returncode == 0
    (written,) = (tmp_path / "out").glob("run-*.json")
    note = json.loads(written.read_text())["trials"][0]
    assert (Path(note["program"]).name, note["policy"], note["driver"]) == ("demo-step", "trial", "simulated hold")
    own = given(note)
    assert own and keep("a run", own, 0, {}, "critical-streams", home)
    done = overlap_run("--dry-run", *command, env=home)
    assert "policy trial: its trial begins with critical-streams" in " ".join(done.stderr.split())
