"""What the SPANK plugin makes of a task's environment: who chooses, and what is there already."""

from __future__ import annotations

import platform
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import readers
import spank
from spank_double import BATCH, IN_VAIN, INHERITED, PLAIN, Double, default, users

# --- who chooses

CHOICES = {
    "nobody": ({}, None),
    "the option": ({"option": "h100"}, "h100"),
    "the job": ({"OVERLAP_POLICY": "h100"}, "h100"),
    "the user": ({"user": "h100\nmore\n"}, "h100"),
    "the user, with blanks": ({"user": " \th100 \t\n"}, "h100"),
    "the administrator of Slurm": ({"arguments": ("default=h100",)}, "h100"),
    "the site": ({"site": "h100"}, "h100"),
    "the option before the job": ({"option": "h100", "OVERLAP_POLICY": "observe"}, "h100"),
    "the job before the user": ({"OVERLAP_POLICY": "h100", "user": "observe"}, "h100"),
    "the user before the administrator": ({"user": "h100", "arguments": ("default=observe",)}, "h100"),
    "the administrator before the site": ({"arguments": ("default=h100",), "site": "observe"}, "h100"),
    "an empty word is none": ({"OVERLAP_POLICY": "", "user": "\n", "site": "h100"}, "h100"),
    "off by the job": ({"OVERLAP_POLICY": "off", "site": "h100"}, None),
    "off by the user": ({"user": "off\n", "site": "h100"}, None),
    "off by the environment": ({"OVERLAP_RUN": "off", "option": "h100", "site": "h100"}, None),
    "unknown is not the next one": ({"OVERLAP_POLICY": "h999", "site": "h100"}, None),
    "ill-formed is not the next one": ({"user": "../env/h100", "site": "h100"}, None),
    "too long": ({"user": "h" * 300, "site": "h100"}, None),
    "a default that is no name": ({"arguments": ("default=../h100",)}, None),
}


@pytest.mark.parametrize("given, wanted", CHOICES.values(), ids=CHOICES)
def test_the_first_who_says_anything_chooses(double: Double, given: dict[str, object], wanted: str | None) -> None:
    words = dict(given)
    users(double, str(words.pop("user", "")))
    if "site" in words:
        default(double, f"{words.pop('site')}\n")
    done = double.task(**words)
    if wanted is None:
        assert done.variables == {name: word for name, word in words.items() if name.isupper()}
        return
    assert done.table == double.tables[wanted]
    assert done.variables["LD_PRELOAD"] == double.library
    assert done.variables["TORCH_NCCL_OF"] == wanted


def test_the_folder_of_the_users_settings_may_be_elsewhere(double: Double, tmp_path: Path) -> None:
    users(double, "observe")
    (tmp_path / "xdg" / "overlap-run").mkdir(parents=True)
    (tmp_path / "xdg" / "overlap-run" / "policy").write_text("h100")
    assert double.task(XDG_CONFIG_HOME=str(tmp_path / "xdg")).table == double.tables["h100"]
    assert double.task(XDG_CONFIG_HOME="").table == double.tables["observe"]


def test_a_word_of_any_length_may_come_from_elsewhere(double: Double) -> None:
    """Not from our srun, which has refused it."""
    for word in ("h" * 251, "h" * 252, "h" * 5000):
        assert double.task(word, **PLAIN).variables == {**PLAIN, **(IN_VAIN if len(word) < 252 else {})}
        assert double.task(step=BATCH, **{INHERITED: word}).table is None


def test_a_task_without_a_home_has_that_of_its_user(double: Double) -> None:
    users(double, "h100")
    assert double.task(HOME="", home_of_user=str(double.home)).table == double.tables["h100"]
    assert double.task(HOME="", home_of_user="/nowhere").table is None


# --- what is inside of something else


def test_a_policy_from_outside_stands_and_its_library_is_put_in(double: Double) -> None:
    default(double, "h100")
    outer = {**PLAIN, "OVERLAP_TABLE": "outer"}
    for inherited in ({}, {"option": "h100", INHERITED: "h100"}):  # what sbatch was given does not overrule it
        done = double.task(**inherited, **outer)
        expected = {**outer, "LD_PRELOAD": f"{double.library}:/lib/libmine.so"}
        assert {name: done.variables[name] for name in done.variables if name != INHERITED} == expected


def test_the_library_that_reads_the_policy_from_outside_stays(double: Double, tmp_path: Path) -> None:
    other = tmp_path / "other" / spank.NAME
    other.parent.mkdir()
    other.write_bytes(Path(double.library).read_bytes())
    preloaded = f"/lib/libmine.so:{other}"
    for library in (str(other), double.library):
        done = double.task(OVERLAP_TABLE="outer", LD_PRELOAD=preloaded)
        assert done.variables["LD_PRELOAD"] == f"{library}:/lib/libmine.so"
        other.unlink(missing_ok=True)


def led(double: Double) -> str:
    return str(Path(double.library).parent / "$PLATFORM" / spank.NAME)


def test_with_folders_for_the_platforms_beside_it_32_bit_programs_find_a_library_too(double: Double) -> None:
    before = double.task("h100", **PLAIN).variables
    assert before["LD_PRELOAD"] == f"{double.library}:/lib/libmine.so"
    folder = Path(double.library).parent / platform.machine()
    folder.mkdir()
    (folder / spank.NAME).touch()
    first = double.task("h100", BATCH, **PLAIN).variables
    assert first["LD_PRELOAD"] == f"{led(double)}:/lib/libmine.so"
    again = double.task("observe", **{**first, INHERITED: "h100"}).variables
    assert (again["LD_PRELOAD"], again["OVERLAP_TABLE"]) == (first["LD_PRELOAD"], double.tables["observe"])
    off = double.task("off", **{**first, INHERITED: "h100"}).variables
    assert off["LD_PRELOAD"] == "/lib/libmine.so"
    other = shutil.copytree(Path(double.library).parent, double.prefix / "venv")
    entry = f"{other}/$PLATFORM/{spank.NAME}"
    outer = {"OVERLAP_TABLE": "outer", "LD_PRELOAD": f"/lib/libmine.so:{entry}"}
    assert double.task(**outer).variables["LD_PRELOAD"] == f"{entry}:/lib/libmine.so"
    shutil.rmtree(other)
    assert double.task(**outer).variables["LD_PRELOAD"] == first["LD_PRELOAD"]
    Path(double.library).unlink()
    assert double.task(**outer).variables["LD_PRELOAD"] == "/lib/libmine.so"


def test_twice_is_as_once(double: Double) -> None:
    once = double.task("h100", **PLAIN, OVERLAP_REPORT="/r")
    again = double.task("h100", **{**once.variables, INHERITED: "h100"})
    del again.variables[INHERITED]
    assert again.variables == once.variables


def test_off_takes_back_what_was_added_and_nothing_else(double: Double) -> None:
    outside = double.task("h100", BATCH, **PLAIN, OVERLAP_REPORT="/r", OVERLAP_POLICY="observe").variables
    assert outside["LD_PRELOAD"] == f"{double.library}:/lib/libmine.so"
    kept = {**PLAIN, "OVERLAP_REPORT": "/r", "OVERLAP_POLICY": "observe", INHERITED: "h100"}
    inside = double.task("off", **{**outside, INHERITED: "h100"}).variables
    assert inside == {**kept, "OVERLAP_RUN": "off", "OVERLAP_ADDED_OVERLAP_RUN": "off"}
    changed = double.task("off", **{**outside, INHERITED: "h100", "TORCH_NCCL_OF": "mine"}).variables
    assert changed["TORCH_NCCL_OF"] == "mine", "the script has set it since"


def test_off_removes_every_copy_and_leaves_no_empty_variable(double: Double) -> None:
    done = double.task("off", LD_PRELOAD=f"/a/{spank.NAME}:{double.library}", OVERLAP_TABLE="x")
    assert done.variables == {"OVERLAP_RUN": "off", "OVERLAP_ADDED_OVERLAP_RUN": "off"}


def test_a_step_of_its_own_mind(double: Double) -> None:
    outside = double.task("h100", BATCH, **PLAIN).variables
    inside = double.task("observe", **{**outside, INHERITED: "h100"}).variables
    assert inside["OVERLAP_TABLE"] == double.tables["observe"]
    assert inside["TORCH_NCCL_OF"] == "observe"
    assert inside["LD_PRELOAD"] == outside["LD_PRELOAD"]


def test_a_step_inside_of_off_may_choose(double: Double) -> None:
    outside = double.task("off", BATCH).variables
    inside = double.task("h100", **{**outside, INHERITED: "off"}).variables
    assert inside["OVERLAP_TABLE"] == double.tables["h100"]
    assert "OVERLAP_RUN" not in inside
    by_the_user = double.task("h100", OVERLAP_RUN="off", **{INHERITED: "off"}).variables
    assert by_the_user == {"OVERLAP_RUN": "off", INHERITED: "off"}, "what the user has set stands"


def test_a_batch_script_is_told_by_its_environment_alone(double: Double) -> None:
    """sbatch --export=NONE."""
    assert double.task(step=BATCH, **{INHERITED: "h100"}).table == double.tables["h100"]
    assert double.task(step=BATCH, **{INHERITED: "off"}).variables["OVERLAP_RUN"] == "off"
    assert double.task(step=BATCH, **{INHERITED: "../h100"}).table is None


def test_off_without_the_environment_of_the_batch_script(double: Double) -> None:
    """--export=NONE: a TaskProlog behind us must not choose."""
    assert double.task("off", **{INHERITED: "off"}).variables["OVERLAP_RUN"] == "off"


def test_a_step_whose_policy_is_not_there_runs_without_any(double: Double) -> None:
    outside = double.task("h100", BATCH, **PLAIN).variables
    inside = double.task("h999", **{**outside, INHERITED: "h100"}).variables
    assert inside == {**PLAIN, INHERITED: "h100", **IN_VAIN}


def test_what_the_option_asked_for_in_vain_is_stronger_than_the_job_and_is_taken_back(double: Double) -> None:
    outside = double.task("h999", BATCH, OVERLAP_POLICY="observe").variables
    assert outside == IN_VAIN
    inside = double.task("h100", **{**outside, INHERITED: "h999"}).variables
    assert inside["OVERLAP_TABLE"] == double.tables["h100"]
    assert "OVERLAP_POLICY" not in inside


# --- the name of a run


@pytest.mark.parametrize("step, wanted", [(3, "0000000700000003"), (BATCH, "00000007fffffffb")])
def test_a_run_is_named_after_job_and_step(double: Double, step: int, wanted: str) -> None:
    assert double.task("h100", step, OVERLAP_REPORT="/r").variables["OVERLAP_RUN_ID"] == wanted
    assert "OVERLAP_RUN_ID" not in double.task("h100", step).variables
    mine = {"OVERLAP_REPORT": "/r", "OVERLAP_RUN_ID": "mine"}
    assert double.task("h100", step, **mine).variables["OVERLAP_RUN_ID"] == "mine"


ATTEMPTS = {"0": 0, "1": 1, "300": 44, "4294967295": 255, "4294967297": 0, "99999999999": 0, "010": 0, "+1": 0, "x": 0}


@pytest.mark.parametrize("restarts, attempt", ATTEMPTS.items())
def test_a_job_that_is_requeued_is_another_run(double: Double, restarts: str, attempt: int) -> None:
    done = double.task("h100", 3, OVERLAP_REPORT="/r", SLURM_RESTART_COUNT=restarts)
    assert done.variables["OVERLAP_RUN_ID"] == f"00000007{attempt:02x}000003"


@pytest.mark.parametrize("around", [BATCH, 0xFFFFFFFA, 2], ids=["a script", "a shell", "a step"])
@pytest.mark.parametrize("marked", [True, False], ids=["by the plugin", "by TaskProlog"])
@pytest.mark.parametrize("command", ["python", "/usr/bin/orted"])
def test_a_step_is_a_run_of_its_own_unless_mpirun_started_it(
    double: Double, around: int, marked: bool, command: str
) -> None:
    outside = double.task("h100", around, OVERLAP_REPORT="/r").variables
    given = outside if marked else {"OVERLAP_REPORT": "/r", "OVERLAP_RUN_ID": outside["OVERLAP_RUN_ID"]}
    inside = double.task("h100", 3, command, **{**given, INHERITED: "h100"}).variables
    assert inside["OVERLAP_RUN_ID"] == f"00000007{around if command != 'python' else 3:08x}"


def test_a_run_that_another_job_has_named_stays(double: Double) -> None:
    given = {"OVERLAP_REPORT": "/r", "OVERLAP_RUN_ID": "00000008fffffffb"}
    assert double.task("h100", 3, **given).variables["OVERLAP_RUN_ID"] == given["OVERLAP_RUN_ID"]


# --- at submission


@pytest.mark.parametrize("context", ["local", "allocator"])
@pytest.mark.parametrize("word", ["h999", "", "../h100", ".h100", "h 100", "h100\n", "a" * 252, "%s%n", "auto"])
def test_a_bad_name_is_refused_with_those_that_there_are(double: Double, context: str, word: str) -> None:
    (double.prefix / "env" / ".hidden.env").touch()
    (double.prefix / "env" / "README").touch()
    done = double.submit(word, context)
    assert done.status == 1
    why = rf"there is no policy \S+ in {double.prefix}/env|a policy is named by letters, digits, dots, _ and -, [^:]*"
    assert re.fullmatch(rf"error: --comm-overlap: (?:{why}): choose off, h100, observe\n", done.said), done.said


@pytest.mark.parametrize("word", ["h100", "observe", "off"])
def test_a_good_name_is_taken_in_silence(double: Double, word: str) -> None:
    assert double.submit(word) == (0, {}, "")


def test_of_many_names_some_are_listed(double: Double) -> None:
    for number in range(1000):
        (double.prefix / "env" / f"policy-{number:03}.env").touch()
    said = double.submit("bad").said
    assert len(said) < 2300
    assert re.search(r": choose off, h100, observe, policy-000, .*, policy-\d{3}, \.\.\.$", said)


def test_where_the_site_folder_is_not_to_be_seen_nothing_is_refused(double: Double) -> None:
    (double.prefix / "env").rename(double.prefix / "elsewhere")
    done = double.submit("h100")
    assert done.status == 0
    assert done.said.startswith(f"info: --comm-overlap: {double.prefix}/env cannot be read here: ")


def test_a_policy_that_went_away_does_not_stop_the_steps_of_a_job(double: Double) -> None:
    (double.prefix / "env" / "h100.env").unlink()
    assert double.submit("h100").status == 1
    assert double.submit("h100", **{INHERITED: "h100"}) == (0, {}, "")


# --- TaskProlog

SIDE_BY_SIDE = {
    "OVERLAP_RUN": ["off", "on", ""],
    "OVERLAP_TABLE": ["outer", ""],
    "OVERLAP_POLICY": ["h100", "own", "off", "no-such", ".own", "", "own "],
    "OVERLAP_REPORT": ["/r", ""],
    "OVERLAP_RUN_ID": ["mine", "", "00000007fffffffb", "0000000700000001", "00000008fffffffb", "00000007", "00000007x"],
    "SLURM_RESTART_COUNT": ["0", "1", "255", "256", "300", "4294967297", "x", "-1", "+1", " 1", "010", ""],
    "OVERLAP_QUIET": ["1"],
    "TORCH_NCCL_HIGH_PRIORITY": ["0", ""],
    "LD_PRELOAD": [
        "",
        "/x.so:/libasan.so.8",
        " /x.so ",
        "LIBRARY:/x.so",
        "LED:/x.so",
        "/x.so:/not/here/$PLATFORM/liboverlap.so",
        "/not/here/liboverlap.so /y.so",
        "liboverlap.so",
    ],
    "user": ["h100", "off\n", "\n\nown\n", " \n\t own", "\t own \t\nx", "own\r\n", "own own", "x" * 300],
    "default": ["own", "off", "h100\n", "\n"],
    "nccl": ["NCCL_CGA_CLUSTER_SIZE=1\n", "#NCCL_CGA_CLUSTER_SIZE=1", "\nTORCH_NCCL_HIGH_PRIORITY =1"],
    "lines": ["export OVERLAP_QUIET=1", "export PATH=/x\nexport FI_A=", "export HSA_A=a b\nexport UCX_A=1", "export x"],
    "break": ["library", "table", "file", "foreign"],
}


@pytest.mark.parametrize("seed", range(80))
def test_a_task_gets_what_task_prolog_gives_it(double: Double, installed: Path, seed: int, tmp_path: Path) -> None:
    """Where no option is used, the two are one."""
    dice = random.Random(seed)
    given = {name: dice.choice(values) for name, values in SIDE_BY_SIDE.items() if dice.random() < 0.25}
    if dice.random() < 0.5:
        given.update(OVERLAP_POLICY="own", OVERLAP_REPORT="/r")
    shutil.rmtree(double.prefix)
    shutil.copytree(installed, double.prefix)
    own = double.prefix / "env" / "own.env"
    for file in (double.prefix / "env").iterdir():
        file.write_text(file.read_text().replace(str(installed), str(double.prefix)))
    own.write_text(own.read_text() + given.pop("lines", ""))
    users(double, given.pop("user", ""))
    default(double, given.pop("default", ""))
    (double.home / ".nccl.conf").write_text(given.pop("nccl", ""))
    broken = given.pop("break", "")
    if broken in ("library", "foreign"):
        spank.foreign(Path(double.library)) if broken == "foreign" else Path(double.library).unlink()
    elif broken:
        own.write_text("" if broken == "table" else own.read_text()[:100])
    if "LD_PRELOAD" in given:
        given["LD_PRELOAD"] = given["LD_PRELOAD"].replace("LIBRARY", double.library)
        given["LD_PRELOAD"] = given["LD_PRELOAD"].replace("LED", led(double))
    slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3", "SLURM_SCRIPT_CONTEXT": "prolog_task"}
    base = {"HOME": str(double.home), **slurm}
    prolog = [str(double.prefix / "libexec" / "task-prolog")]
    # Its own interpreter is not to be started with what the test preloads.
    script = ["sh", "-c", 'LD_PRELOAD=$1; . "$0"', prolog[0], given.get("LD_PRELOAD", "")]
    words = {name: value for name, value in given.items() if name != "LD_PRELOAD"}
    done = subprocess.run(script, env={**base, **words}, capture_output=True, text=True, check=False)
    wanted = {**given, **readers.exports(done.stdout)}
    seen = double.task(step=3, **{**base, **given}).variables
    plain = {name: value for name, value in seen.items() if not name.startswith("OVERLAP_ADDED_")}
    assert {"HOME": base["HOME"], **plain} == {**base, **wanted}
