"""What trials found out, in the cache folder: added up, given to the next run, forgotten; nothing there can harm."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyshim.launch import plan, trials
from pyshim.launch.trials import Given, Program
from pyshim.policy import layout
from pyshim.policy.model import Policy
from pyshim.policy.table import compile_table
from pyshim.policy.trial import Arm, Trial
from pyshim.samples import Samples
from tests.launch.machine_files import VERSION, write_driver, write_gpu

PROGRAM = Program("/usr/bin/python3", ("/srv/me/train.py",), ("NVIDIA H200",), VERSION, 8, "mine", "ab")
GIVEN = Given(PROGRAM, 0, {})
TWELVE = {"fast": Samples(12, -2.4, 0.5), "slow": Samples(12, 1.2, 0.2)}
Environment = dict[str, str]


@pytest.fixture
def here(tmp_path: Path) -> Environment:
    """A user with a cache folder, on a machine below tmp_path with a GPU."""
    write_driver(tmp_path)
    write_gpu(tmp_path, "0000:3b:00.0", "NVIDIA H200")
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def file_of(here: Environment, program: Program = PROGRAM) -> Path:
    return Path(trials.folder(here) or "", f"{program.id}.json")


def test_runs_are_added_up_once(here: Environment) -> None:
    first = trials.keep("a", GIVEN, 1, TWELVE, "fast", here)
    assert first and (first.kept, first.level, first.number) == ("fast", 1, 1)
    assert trials.keep("a", GIVEN, 1, TWELVE, "mine", here) is None, "the same run again"
    second = trials.keep("b", GIVEN, 1, {"fast": TWELVE["fast"]}, None, here)
    assert second and second.levels[1] == {"fast": Samples(24, -4.8, 1.0), "slow": TWELVE["slow"]}
    assert (second.kept, second.number, second.runs) == ("fast", 2, ("a", "b")), (
        "a verdict stands until there is another"
    )
    third = trials.keep("c", GIVEN, 3, {"fast": Samples(4, 0.0, 0.1)}, "mine", here)
    assert third and (third.kept, third.level) == ("mine", 1), "most is known of the level of most samples"
    assert trials.remembered(here) == ([third], [])
    assert [path.name for path in file_of(here).parent.iterdir()] == [file_of(here).name], "nothing is left over"


def test_what_a_run_was_given_is_not_added_again(here: Environment) -> None:
    trials.keep("a", GIVEN, 1, {"fast": Samples(12, -2.4, 0.5)}, None, here)
    given = Given(PROGRAM, 1, {"fast": Samples(8, -1.6, 0.4)})
    now = trials.keep("b", given, 1, {"fast": Samples(20, -4.0, 1.0)}, None, here)
    assert now and now.levels[1]["fast"] == Samples(24, -4.8, pytest.approx(1.1))
    now = trials.keep("c", given, 2, {"fast": Samples(12, -2.4, 0.5)}, None, here)
    assert now and now.levels[2]["fast"].count == 12, "given at another level"
    damaged = Given(PROGRAM, 1, {"fast": Samples(50, 0.0, 0.0)})
    now = trials.keep("d", damaged, 1, {"fast": Samples(20, -4.0, 1.0)}, None, here)
    assert now and now.levels[1]["fast"].count == 24, "more given than there are"


def test_programs_differ_by_each_part(here: Environment) -> None:
    others = [
        PROGRAM._replace(**{name: value})
        for name, value in {
            "program": "/usr/bin/python3.12", "arguments": (), "gpus": ("NVIDIA H200",) * 2, "driver": "590.1",
            "world_size": 4, "policy": "other", "hash": "cd",
        }.items()
    ]  # fmt: skip
    assert len({program.id for program in (PROGRAM, *others)}) == 8
    for number, program in enumerate((PROGRAM, *others)):
        trials.keep(str(number), Given(program, 0, {}), 0, TWELVE, "fast", here)
    assert len(trials.remembered(here)[0]) == 8
    assert trials.forget([PROGRAM], here) == 1
    assert PROGRAM not in {one.program for one in trials.remembered(here)[0]}
    assert trials.forget(None, here) == 7
    assert trials.remembered(here) == ([], [])


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(version=2),
        lambda data: data["program"].update(world_size=-1),
        lambda data: data["program"].update(arguments="x" * 3, gpus=7),
        lambda data: data.update(levels={"5": {}}),
        lambda data: data.update(levels={"x": {}}),
        lambda data: data.update(levels={"1": {"fast": [12]}}),
        lambda data: data.update(levels={"1": {"fast": [12, float("nan"), 1.0]}}),
        lambda data: data.update(levels={"1": {"fast": [12, 30.0, 90.0]}}),
        lambda data: data.update(levels={"1": {str(n): [0, 0, 0] for n in range(17)}}),
        lambda data: data.update(levels=[]),
        lambda data: data.update(kept=5),
        lambda data: data.pop("runs"),
    ],
)
def test_a_damaged_file_counts_for_nothing(change: Callable[[Any], Any], here: Environment) -> None:
    trials.keep("a", GIVEN, 1, TWELVE, "fast", here)
    data = json.loads(file_of(here).read_text())
    change(data)
    file_of(here).write_text(json.dumps(data))
    assert trials.remembered(here) == ([], [str(file_of(here))])
    now = trials.keep("b", GIVEN, 1, TWELVE, "fast", here)
    assert now and now.number == 1, "and is replaced"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 100_000, b"\xff", b'"x"', b"7"])
def test_so_does_what_is_no_such_file(content: bytes, here: Environment, tmp_path: Path) -> None:
    trials.keep("a", GIVEN, 1, TWELVE, "fast", here)
    file_of(here).write_bytes(content)
    assert trials.remembered(here) == ([], [str(file_of(here))])
    made = begun(here, tmp_path, PROGRAM)
    assert not made.dispatch


def test_a_link_counts_for_nothing(here: Environment, tmp_path: Path) -> None:
    trials.keep("a", GIVEN, 1, TWELVE, "fast", here)
    file_of(here).rename(tmp_path / "elsewhere")
    file_of(here).symlink_to(tmp_path / "elsewhere")
    assert trials.remembered(here)[0] == []


def test_reports_that_end_at_once(here: Environment) -> None:
    def keep(number: int) -> None:
        trials.keep(str(number), GIVEN, 1, {"fast": Samples(1, -0.1, 0.01)}, None, here)

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((one,), broken) = trials.remembered(here)
    assert (one.number, one.levels[1]["fast"].count, broken) == (16, 16, [])


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for environment in ({}, {"HOME": "relative"}, {"XDG_CACHE_HOME": str(tmp_path / "file")}):
        with pytest.raises(OSError):
            trials.keep("a", GIVEN, 1, TWELVE, "fast", environment)
        assert trials.remembered(environment) == ([], [])


def test_a_folder_of_another_user_is_not_used(here: Environment, tmp_path: Path) -> None:
    folder = Path(trials.folder(here) or "")
    folder.parent.mkdir(parents=True)
    (tmp_path / "other").mkdir()
    folder.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="not a folder of yours"):
        trials.keep("a", GIVEN, 1, TWELVE, "fast", here)


# ---- At the start of a program ----


def begun(here: Environment, root: Path, like: Program, words: tuple[str, ...] = ()) -> plan.Plan:
    """Start a program under a policy with two arms."""
    fast, slow = (Arm(name, Policy(name=name)) for name in ("fast", "slow"))
    made = plan.Plan()
    made.policies = ({"name": "other", "hash": "ff"}, {"name": like.policy, "hash": like.hash})
    table = compile_table([Policy(name="other"), Policy(name=like.policy, trial=Trial(arms=(fast, slow)))])
    made.settings = made.settings._replace(table=layout.encode(table))
    trials.begin(made, like.program, [like.program, *words], {**here, "RANK": "0", "WORLD_SIZE": "8"}, str(root))
    return made


def in_table(made: plan.Plan) -> tuple[int, int, list[tuple[int, float, float]]]:
    """Return first_arm, first_level and the samples of the arms."""
    view = layout.View(layout.decode(made.settings.table or ""))
    assert [policy.trial for policy in view.policies[0:2]] == [0, 1]
    trial = view.trials[0]
    known = [(one.count, one.sum, one.squares) for one in trial.known]
    assert set(known[trial.arms.count :]) == {(0, 0, 0)}
    return trial.first_arm, trial.first_level, known[: trial.arms.count]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    script = tmp_path / "train.py"
    script.write_text("")
    file = tmp_path / "python"
    file.write_text("")
    return PROGRAM._replace(program=str(file), arguments=(str(script), "--out=run-1", "data"))


@pytest.mark.parametrize("kept, first", [("fast", 1), ("slow", 2), ("mine", 0), (None, 0), ("gone", 0)])
def test_the_next_run_gets_it(
    kept: str, first: int, here: Environment, tmp_path: Path, program: Program, library
) -> None:
    words = (program.arguments[0], "--out=/scratch/me/run-1", "/scratch/data/")
    trials.keep("a", Given(program, 0, {}), 2, {"slow": Samples(16, 1.6, 0.4), "gone": Samples(3, 0, 0.1)}, kept, here)
    made = begun(here, tmp_path, program, words)
    assert in_table(made) == (first, 2, [(0, 0.0, 0.0), (8, 0.8, 0.2)]), "at most 8 samples, of the same mean"
    table = layout.decode(made.settings.table or "")
    assert not library.overlap_table_check(table, len(table))
    ((said),) = made.dispatch
    assert ("begins with" in said) is (first > 0) and "runs: 1" in said
    (note,) = made.trials
    assert trials.given(note) == Given(program, 2, {"slow": Samples(8, 0.8, 0.2), "gone": Samples(3, 0.0, 0.1)})


def test_of_another_program_it_gets_nothing(here: Environment, tmp_path: Path, program: Program) -> None:
    trials.keep("a", Given(program, 0, {}), 2, TWELVE, "fast", here)
    made = begun(here, tmp_path, program, (program.arguments[0], "--out=run-2", "data"))
    assert in_table(made) == (0, 0, [(0, 0.0, 0.0)] * 2)
    (note,) = made.trials
    assert note["arguments"] == (program.arguments[0], "--out=run-2", "data")


def test_a_machine_that_does_not_name_its_gpus(here: Environment, tmp_path: Path, program: Program) -> None:
    made = begun(here, tmp_path / "nothing", program)
    assert made.trials == () and in_table(made)[0] == 0


def test_a_damaged_file_is_named_in_one_line(here: Environment, tmp_path: Path, program: Program) -> None:
    trials.keep("a", Given(program, 0, {}), 2, TWELVE, "fast", here)
    file_of(here, program).write_text("{")
    made = begun(here, tmp_path, program, (program.arguments[0], "--out=run-1", "data"))
    (line,) = made.remarks
    assert line.startswith(f"{file_of(here, program)} is damaged, and left out") and in_table(made)[0] == 0


@pytest.mark.parametrize("change", [{"given": None}, {"given": {}}, {"world_size": "8"}, {"arguments": None}])
def test_what_a_run_says_may_be_damaged(change: Any) -> None:
    good = json.loads(json.dumps(Given(PROGRAM, 1, TWELVE).as_json()))
    assert trials.given(good) == Given(PROGRAM, 1, TWELVE)
    assert trials.given({**good, **change}) is None


def test_the_start_needs_no_cffi() -> None:
    import subprocess
    import sys

    code = "import pyshim.launch.trials, sys; assert not {'cffi', 'pyshim._native'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
