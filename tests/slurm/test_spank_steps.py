"""The SPANK plugin behind a double of Slurm's functions, under sanitizers: what a task's environment becomes."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import debian
import pytest
import reading
import spank

from pyshim.launch import preload
from pyshim.policy import variables

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
INHERITED = "SLURM_SPANK__SLURM_SPANK_OPTION_overlap_comm_overlap"
BATCH = 0xFFFFFFFB
PLAIN = {"LD_PRELOAD": "/lib/libmine.so", "TORCH_MINE": "1"}


class Done(NamedTuple):
    status: int
    variables: dict[str, str]
    said: str

    @property
    def table(self) -> str | None:
        return self.variables.get("OVERLAP_TABLE")


class Double(NamedTuple):
    prefix: Path
    home: Path
    tables: dict[str, str]
    program: Path

    @property
    def library(self) -> str:
        return str(self.prefix / "lib" / spank.NAME)

    def task(
        self,
        option: str = "-",
        step: int = 0,
        command: str = "python",
        arguments: tuple[str, ...] = (),
        home_of_user: str = "",
        **environment: str,
    ) -> Done:
        base = {"HOME": str(self.home), **environment}
        given = "".join(f"{name}={value}\0" for name, value in base.items())
        words = ["remote", str(step), option, command, f"prefix={self.prefix}", *arguments]
        done = self._run(words, given, HOME_OF_USER=home_of_user)
        after = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
        return Done(done.returncode, {name: after[name] for name in after if name != "HOME"}, done.stderr)

    def submit(self, option: str, context: str = "local", **environment: str) -> Done:
        done = self._run([context, option, f"prefix={self.prefix}"], "", **environment)
        return Done(done.returncode, {}, done.stderr)

    def _run(self, words: list[str], given: str, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.program), *words],
            input=given,
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
            errors="surrogateescape",
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        spank.headers()
    except debian.Missing as reason:
        pytest.skip(str(reason))
    made = tmp_path_factory.mktemp("program") / "spank_steps"
    sources = [Path(__file__).with_name("spank_steps.c"), *sorted(spank.SOURCES.glob("*.c"))]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", *SANITIZED]
    subprocess.run([*spank.compiler(), *flags, *map(str, sources), "-o", str(made)], check=True)
    return made


@pytest.fixture
def double(program: Path, tmp_path: Path) -> Double:
    (tmp_path / "home" / ".config" / "overlap-run").mkdir(parents=True)
    tables = spank.site(tmp_path / "site", ["h100", "observe"])
    return Double(tmp_path / "site", tmp_path / "home", tables, program)


Change = Callable[[Double], object]


def users(double: Double, text: str) -> None:
    (double.home / ".config" / "overlap-run" / "policy").write_text(text)


def default(double: Double, text: str) -> None:
    (double.prefix / "default").write_text(text)


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
        assert double.task(word, **PLAIN).variables == PLAIN
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
    assert double.task("h999", **{**outside, INHERITED: "h100"}).variables == {**PLAIN, INHERITED: "h100"}


# --- the library

BROKEN: dict[str, Change] = {
    "missing": lambda double: Path(double.library).unlink(),
    "of another architecture": lambda double: spank.foreign(Path(double.library)),
    "of 32 bits": lambda double: spank.overwrite(Path(double.library), 4, b"\x01"),
    "a program": lambda double: spank.overwrite(Path(double.library), 16, b"\x02"),
    "short": lambda double: Path(double.library).write_bytes(b"\x7fELF"),
    "no library": lambda double: Path(double.library).write_text("export LD_PRELOAD=x\n" * 100),
    "a folder": lambda double: (Path(double.library).unlink(), Path(double.library).mkdir()),
    "a pipe": lambda double: (Path(double.library).unlink(), os.mkfifo(double.library)),
    "a dangling link": lambda double: (Path(double.library).unlink(), Path(double.library).symlink_to("nowhere")),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_without_the_library_nothing_is_set(double: Double, change: Change) -> None:
    outside = double.task("h100", BATCH, **PLAIN, OVERLAP_REPORT="/r").variables
    change(double)
    done = double.task("h100", **PLAIN, OVERLAP_REPORT="/r")
    assert done.variables == {**PLAIN, "OVERLAP_REPORT": "/r"}
    assert re.fullmatch(r"verbose: comm-overlap: \S+ cannot be loaded here: the task runs without it\n", done.said)
    leaked = double.task("h100", **{**outside, INHERITED: "h100"}).variables
    assert leaked["LD_PRELOAD"] == "/lib/libmine.so", "the loader would complain in every process"


def preloads() -> Iterator[str]:
    yield from ("", ":", " ", "a", "/a.so:/b.so", "/a.so /b.so", f"/x/{spank.NAME}", f":{spank.NAME}: :/b.so:")
    yield from (f"/b.so:/l/libasan.so.8:/x/{spank.NAME}:/l/libclang_rt.tsan-x86_64.so", "/lib/libasan", "/libasan2.so")
    yield from ("/libasan_x.so:/libubsan.so:/libhwasan.so.0", f"/x/{spank.NAME}.1", "libtsan.so/x", "/lib/$LIB/x.so")
    words = ["/l/libasan.so.8", "libtsan.so", "/usr/lib/libm.so", f"/o/{spank.NAME}", spank.NAME, "x", ""]
    dice = random.Random(6)
    for _ in range(40):
        yield "".join(dice.choice(words) + dice.choice(": ") for _ in range(dice.randrange(1, 9)))


@pytest.mark.parametrize("value", preloads())
def test_the_list_of_libraries_is_that_of_overlap_run(double: Double, value: str) -> None:
    done = double.task("h100", BATCH, LD_PRELOAD=value)
    assert done.variables["LD_PRELOAD"] == preload.merge(value, double.library)


# --- policies

FORBIDDEN = (
    *("PATH", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "HOME", "IFS", "PYTHONPATH", "GLIBC_TUNABLES", "RANK"),
    *("SLURM_JOB_ID", "PMI_RANK", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("GPU_DEVICE;X", "TORCH-A", "TORCH_", "OVERLAP_"),
)
LINES = {
    "an injected line": ("export TORCH_A=1\nLD_PRELOAD=/tmp/evil.so", {"TORCH_A": "1"}),
    "print and unset": ("print hello\nunset PATH\nexport TORCH_A=1", {"TORCH_A": "1"}),
    "a blank in front": (" export TORCH_A=1", {}),
    "no export": ("TORCH_A=1", {}),
    "no sign": ("export TORCH_A", {}),
    "no name": ("export =1", {}),
    "an empty value": ("export TORCH_A=", {"TORCH_A": ""}),
    "many signs": ("export TORCH_A=a=b", {"TORCH_A": "a=b"}),
    "the whole alphabet": ("export TORCH_A=azAZ09._/+:=@%~,-", {"TORCH_A": "azAZ09._/+:=@%~,-"}),
    "a number in front": ("export 1TORCH=1", {}),
    "small letters": ("export torch_a=1", {}),
    "ours": ("export OVERLAP_QUIET=1", {"OVERLAP_QUIET": "1"}),
    **{f"the value a{sign}b": (f"export TORCH_A=a{sign}b", {}) for sign in " \t\r\"'$`;&|<>\\(){}[]*?!#^\x1b\x7fä"},
    **{f"the variable {name}": (f"export {name}=1", {}) for name in FORBIDDEN},
}


@pytest.mark.parametrize("lines, wanted", LINES.values(), ids=LINES)
def test_of_a_policy_only_good_lines_are_taken(double: Double, lines: str, wanted: dict[str, str]) -> None:
    table = spank.policy(double.prefix, "mine", lines)
    done = double.task("mine").variables
    plain = {name: value for name, value in done.items() if not name.startswith("OVERLAP_ADDED_")}
    assert plain == {"OVERLAP_TABLE": table, "LD_PRELOAD": double.library, **wanted}


def test_of_many_lines_some_are_taken(double: Double) -> None:
    spank.policy(double.prefix, "mine", *(f"export TORCH_{number}=1" for number in range(200)))
    taken = {name for name in double.task("mine").variables if name.startswith("TORCH_")}
    assert taken == {f"TORCH_{number}" for number in range(64)}


def test_the_last_line_needs_no_end(double: Double) -> None:
    file = double.prefix / "env" / "h100.env"
    file.write_text(file.read_text().rstrip("\n"))
    assert double.task("h100").variables["TORCH_NCCL_OF"] == "h100"


def test_what_the_task_has_set_stays(double: Double) -> None:
    done = double.task("h100", TORCH_NCCL_OF="mine", OVERLAP_QUIET="0")
    assert done.variables["TORCH_NCCL_OF"] == "mine"
    assert "OVERLAP_ADDED_TORCH_NCCL_OF" not in done.variables, "nobody may take it back"


def test_what_a_file_of_nccl_sets_stays(double: Double, tmp_path: Path) -> None:
    spank.policy(double.prefix, "mine", "export NCCL_CGA_CLUSTER_SIZE=2", "export TORCH_A=1")
    (double.home / ".nccl.conf").write_text("#NCCL_A=1\nNCCL_CGA_CLUSTER_SIZE=4\n")
    assert "NCCL_CGA_CLUSTER_SIZE" not in double.task("mine").variables
    assert double.task("mine").variables["TORCH_A"] == "1"
    (double.home / ".nccl.conf").write_text("#NCCL_CGA_CLUSTER_SIZE=4\nNCCL_CGA_CLUSTER_SIZES=4\n")
    assert double.task("mine").variables["NCCL_CGA_CLUSTER_SIZE"] == "2"
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_CGA_CLUSTER_SIZE =4")
    assert "NCCL_CGA_CLUSTER_SIZE" not in double.task("mine", NCCL_CONF_FILE=str(conf)).variables


def test_what_ranks_must_agree_on_is_never_set(double: Double) -> None:
    names = [glob.replace("*", "X") for glob in variables._MUST_AGREE]
    spank.policy(double.prefix, "mine", *(f"export {name}=1" for name in names), "export NCCL_LAST=1")
    set_here = {name for name in double.task("mine").variables if name.startswith(("NCCL_", "RCCL_"))}
    assert set_here == {"NCCL_LAST"}


NO_POLICY: dict[str, Change] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "without a table": lambda path: path.write_text(f"export LD_PRELOAD=/x/{spank.NAME}\n"),
    "without a library": lambda path: path.write_text("export OVERLAP_TABLE=abc\n"),
    "with a table that is none": lambda path: path.write_bytes(path.read_bytes() + b"export OVERLAP_TABLE=a b\n"),
    "with another library": lambda path: path.write_bytes(path.read_bytes() + b"export LD_PRELOAD=/bin/true\n"),
    "with two libraries": lambda path: path.write_bytes(
        path.read_bytes() + f"export LD_PRELOAD=/a.so:/b/{spank.NAME}\n".encode()
    ),
    "with a NUL": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "with lines of Windows": lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")),
    "too long": lambda path: path.write_bytes(path.read_bytes() + b"#" * (1 << 18)),
    "with a table that no task can hold": lambda path: path.write_bytes(
        path.read_bytes() + b"export OVERLAP_TABLE=" + b"A" * 130_000 + b"\n"
    ),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("change", NO_POLICY.values(), ids=NO_POLICY)
def test_what_is_no_policy_changes_nothing(double: Double, change: Callable[[Path], object]) -> None:
    change(double.prefix / "env" / "h100.env")
    done = double.task("h100", **PLAIN)
    assert done.variables == PLAIN
    assert done.said.startswith("verbose: comm-overlap: ")


@pytest.mark.parametrize("where", ["the user", "the site"])
def test_a_pipe_in_place_of_a_choice_is_not_waited_for(double: Double, where: str) -> None:
    os.mkfifo(double.home / ".config/overlap-run/policy" if where == "the user" else double.prefix / "default")
    assert double.task(**PLAIN).variables == PLAIN


@pytest.mark.parametrize("prefix", ["relative", "/with space", "/with:colon", "/" + "x" * 5000, ""])
def test_a_prefix_that_cannot_be_used(double: Double, prefix: str) -> None:
    arguments = (f"prefix={prefix}",)
    assert double.task("h100", arguments=arguments, **PLAIN).variables == PLAIN
    assert double.task("off", arguments=arguments, **PLAIN).variables["OVERLAP_RUN"] == "off"


# --- the name of a run


@pytest.mark.parametrize("step, wanted", [(3, "0000000700000003"), (BATCH, "00000007fffffffb")])
def test_a_run_is_named_after_job_and_step(double: Double, step: int, wanted: str) -> None:
    assert double.task("h100", step, OVERLAP_REPORT="/r").variables["OVERLAP_RUN_ID"] == wanted
    assert "OVERLAP_RUN_ID" not in double.task("h100", step).variables
    mine = {"OVERLAP_REPORT": "/r", "OVERLAP_RUN_ID": "mine"}
    assert double.task("h100", step, **mine).variables["OVERLAP_RUN_ID"] == "mine"


@pytest.mark.parametrize("command, wanted", [("python", "00000003"), ("/usr/bin/orted", "fffffffb")])
def test_a_step_is_a_run_of_its_own_unless_mpirun_started_it(double: Double, command: str, wanted: str) -> None:
    outside = double.task("h100", BATCH, OVERLAP_REPORT="/r").variables
    inside = double.task("h100", 3, command, **{**outside, INHERITED: "h100"}).variables
    assert inside["OVERLAP_RUN_ID"] == f"00000007{wanted}"


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
    "OVERLAP_RUN_ID": ["mine"],
    "OVERLAP_QUIET": ["1"],
    "TORCH_NCCL_HIGH_PRIORITY": ["0", ""],
    "LD_PRELOAD": [
        "",
        "/x.so:/libasan.so.8",
        " /x.so ",
        "LIBRARY:/x.so",
        "/not/here/liboverlap.so /y.so",
        "liboverlap.so",
    ],
    "user": ["h100", "off\n", "\n\nown\n", " \nown", "\t own \t\nx", "own\r\n", "own own", "x" * 300],
    "default": ["own", "off", "h100\n", "\n"],
    "nccl": ["NCCL_CGA_CLUSTER_SIZE=1\n", "#NCCL_CGA_CLUSTER_SIZE=1", "\nTORCH_NCCL_HIGH_PRIORITY =1"],
    "lines": ["export OVERLAP_QUIET=1", "export PATH=/x\nexport FI_A=", "export HSA_A=a b\nexport UCX_A=1", "export x"],
    "break": ["library", "table", "file", "foreign"],
}


@pytest.mark.parametrize("seed", range(40))
def test_a_task_gets_what_task_prolog_gives_it(double: Double, installed: Path, seed: int, tmp_path: Path) -> None:
    """Where no option is used, the two are one."""
    dice = random.Random(seed)
    given = {name: dice.choice(values) for name, values in SIDE_BY_SIDE.items() if dice.random() < 0.25}
    if dice.random() < 0.5:
        given["OVERLAP_POLICY"] = "own"
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
    base = {"HOME": str(double.home), "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3"}
    prolog = [str(double.prefix / "libexec" / "task-prolog")]
    # Its own interpreter is not to be started with what the test preloads.
    script = ["sh", "-c", 'LD_PRELOAD=$1; . "$0"', prolog[0], given.get("LD_PRELOAD", "")]
    words = {name: value for name, value in given.items() if name != "LD_PRELOAD"}
    done = subprocess.run(script, env={**base, **words}, capture_output=True, text=True, check=False)
    wanted = {**given, **reading.exports(done.stdout)}
    seen = double.task(step=3, **{**base, **given}).variables
    assert {name: value for name, value in seen.items() if not name.startswith(("OVERLAP_ADDED_", "SLURM_"))} == wanted


# --- anything at all


@pytest.mark.parametrize("how", ["corrupt", "truncate"])
def test_nothing_is_read_outside_of_the_bytes(double: Double, tmp_path: Path, how: str) -> None:
    fuzz = tmp_path / "fuzz"
    sources = [spank.ROOT / "tests/fuzz/spank_fuzz.c", *(spank.SOURCES / f"{name}.c" for name in ("site", "preload"))]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", *SANITIZED]
    subprocess.run([*spank.compiler(), *flags, *map(str, sources), "-o", str(fuzz)], check=True)
    seeds = [double.prefix / "env" / "h100.env", tmp_path / "preload"]
    seeds[1].write_text(f"/l/libasan.so.8 :/x/{spank.NAME}:libclang_rt.tsan.so:/y")
    done = subprocess.run([str(fuzz), how, *map(str, seeds)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    tried, accepted = map(int, done.stdout.split())
    assert tried == sum(seed.stat().st_size for seed in seeds) * (10 if how == "corrupt" else 1)
    assert 0 < accepted < tried


def test_random_environments_and_files(double: Double) -> None:
    """The sanitizers are the judges; the status is 0."""
    dice = random.Random(22)
    names = ["OVERLAP_RUN", "OVERLAP_TABLE", "LD_PRELOAD", "OVERLAP_ADDED_A", "OVERLAP_ADDED_", "", "OVERLAP_POLICY"]
    words = ["off", "h100", "observe", double.library, "", "x" * 300, "=", "\udcff", "libasan.so", ":", "\n"]
    for number in range(60):
        given = {dice.choice(names): "".join(dice.choices(words, k=dice.randrange(4))) for _ in range(8)}
        lines = ("".join(map(chr, dice.choices(range(1, 127), k=60))) for _ in range(20))
        spank.policy(double.prefix, "observe", *lines)
        users(double, dice.choice(["observe", "h100", "\r\n", "\0", "x" * 9999]))
        done = double.task(dice.choice(["-", "off", "h100", "observe", "?"]), dice.choice([0, BATCH]), **given)
        assert done.status == 0, number
