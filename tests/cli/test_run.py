"""overlap-run as users meet it: real processes, whole outputs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_def import KEYS

from pyshim import __version__, _native
from pyshim.cli import run as command
from pyshim.policy import gpus, layout
from pyshim.start import chosen, plan
from pyshim.start.environment import checksum
from tests.cli.shown import SHOW, shown

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(
    ("arguments", "ours", "program"),
    [
        ([], [], []),
        (["true"], [], ["true"]),
        (["--quiet", "true", "--quiet", "--", "-x"], ["--quiet"], ["true", "--quiet", "--", "-x"]),
        (["--policy", "h100", "true"], ["--policy", "h100"], ["true"]),
        (["--policy=h100", "true"], ["--policy=h100"], ["true"]),
        (["--policy", "--quiet", "true"], ["--policy", "--quiet"], ["true"]),
        (["--dry_run", "true"], ["--dry-run"], ["true"]),
        (["--report=a_b", "./a_b"], ["--report=a_b"], ["./a_b"]),
        (["--", "--odd-name", "x"], [], ["--odd-name", "x"]),
        (["--quiet", "--", "true", "--"], ["--quiet"], ["true", "--"]),
        (["-", "x"], [], ["-", "x"]),
        (["--report"], ["--report"], []),
    ],
)
def test_everything_behind_the_program_is_the_programs(arguments, ours, program):
    assert command.split(arguments) == (ours, program)


def test_version(overlap_run):
    done = overlap_run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"overlap-run {__version__}\n", "")


def test_it_becomes_the_program(overlap_run, clean_environment):
    program = [sys.executable, "-m", "pyshim.cli.run", "--quiet", "sh", "-c", "echo $$; read line; echo $line; exit 42"]
    with subprocess.Popen(
        program, env=clean_environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        output, _ = child.communicate("in\n", timeout=300)
    assert output == f"{child.pid}\nin\n"
    assert child.returncode == 42


def test_a_signal_ends_it_once_and_as_a_signal(overlap_run):
    done = overlap_run("--quiet", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM


def test_a_dry_run_names_the_policies_and_the_checksum_of_their_table(overlap_run, overlap):
    done = overlap_run("--policy", "h100,a100-paper", "--dry-run", "true")
    lines = overlap("env", "--policy", "h100,a100-paper", "--format", "docker").stdout.splitlines()
    table = dict(line.split("=", 1) for line in lines)["OVERLAP_TABLE"]
    said = f"[h100, a100-paper: table {checksum(table)}, {len(table):,} characters]"
    assert f"overlap: would set OVERLAP_TABLE={said}\n" in done.stderr
    assert table[:20] not in done.stderr


def test_signals_that_python_ignores_are_back_at_their_default(overlap_run):
    done = overlap_run("--quiet", "grep", "SigIgn", "/proc/self/status")
    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def test_the_program_gets_the_library_and_what_it_reads(overlap_run, driver, library):
    done = overlap_run("--policy", "observe", *SHOW, env={**driver, "LD_PRELOAD": ""})
    seen = shown(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert seen["LD_PRELOAD"] == str(_native.SHIM)
    assert int(seen["OVERLAP_LAUNCHER_PID"]) > 1
    assert {name for name in seen if name.startswith("OVERLAP_")} == {"OVERLAP_TABLE", "OVERLAP_LAUNCHER_PID"}


def test_a_report_has_a_folder_a_run_and_an_absolute_path(overlap_run, driver, tmp_path, library):
    done = overlap_run("--report", "a b", "--quiet", *SHOW, env=driver, cwd=tmp_path)
    seen = shown(done)
    run = json.loads((tmp_path / "a b" / "last" / "run.json").read_text())
    name = os.readlink(tmp_path / "a b" / "last")
    assert seen["OVERLAP_REPORT"] == f"{tmp_path}/a%20b/{name}"
    assert seen["OVERLAP_QUIET"] == "1"
    assert (run["id"], run["command"]) == (name, list(SHOW))
    assert run["pid"] == int(seen["OVERLAP_LAUNCHER_PID"]) == int(name.rpartition("-")[2])


def test_the_ranks_of_a_step_share_one_run(overlap_run, driver, tmp_path):
    for rank in "01":
        step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": "2"}
        assert overlap_run("--report", str(tmp_path / "r"), "true", env={**driver, **step}).returncode == 0
    (run,) = (tmp_path / "r" / "slurm-7.0").glob("*.json")
    assert json.loads(run.read_text())["expected_world_size"] == 2


def test_an_inner_run_changes_only_what_it_is_asked_for(overlap_run, driver, tmp_path, library):
    inner = (sys.executable, "-m", "pyshim.cli.run")
    report = str(tmp_path / "r")
    env = {**driver, "LD_PRELOAD": "/lib/one.so:/lib/two.so"}
    once = overlap_run("--policy", "observe", "--report", report, *SHOW, env=driver)
    twice = overlap_run("--policy", "observe", "--report", report, *inner, "--report", report, *SHOW, env=driver)
    one, two = shown(once), shown(twice)
    for name in ("OVERLAP_REPORT", "OVERLAP_LAUNCHER_PID"):
        assert one.pop(name) and two.pop(name)
    assert one == two
    assert len(list((tmp_path / "r").iterdir())) == 3, "one run for each outer overlap-run, and the link"
    assert env["LD_PRELOAD"].count(":") == 1


def test_a_job_chooses_by_variable_where_nobody_else_does(overlap_run, driver, tmp_path, library):
    def table(*options: str, **environment: str) -> str | None:
        return shown(overlap_run(*options, *SHOW, env={**driver, **environment})).get("OVERLAP_TABLE")

    observe, a40 = table("--policy", "observe"), table("--policy", "a40")
    file = tmp_path / "own.yaml"
    file.write_text("policy: 1\nname: own\nextends: a40\n")
    assert table(OVERLAP_POLICY="observe") == observe != a40
    assert table(OVERLAP_POLICY=str(file)) == table("--policy", str(file))
    assert table(OVERLAP_POLICY="") == table() == table("--policy", "auto")
    assert table("--policy", "a40", OVERLAP_POLICY="observe") == a40
    assert table("--policy", "a40", OVERLAP_POLICY="off") == a40
    assert table(OVERLAP_POLICY="observe", OVERLAP_TABLE="outer") == "outer"
    assert table(OVERLAP_POLICY="off") is None


def test_a_variable_that_names_no_policy_is_said(overlap_run):
    done = overlap_run("true", env={"OVERLAP_POLICY": "no-such"})
    assert done.returncode == 125
    assert "there is no policy `no-such`" in done.stderr
    assert "help: OVERLAP_POLICY asks for it" in done.stderr


def test_a_choice_of_off_does_nothing_and_says_nothing(overlap_run, tmp_path):
    base = {"OVERLAP_POLICY": "off", "LD_PRELOAD": ""}
    done = overlap_run("--report", str(tmp_path / "r"), "--strict", *SHOW, env=base)
    assert (done.returncode, done.stderr) == (0, "")
    seen = shown(done)
    assert (seen["LD_PRELOAD"], "OVERLAP_TABLE" in seen) == ("", False)
    assert not (tmp_path / "r").exists()


def test_off_is_off_and_silent(overlap_run, tmp_path):
    base = {"OVERLAP_RUN": "off", "LD_PRELOAD": ""}
    done = overlap_run("--policy", "no-such", "--report", str(tmp_path / "r"), "--strict", *SHOW, env=base)
    seen = shown(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert seen["LD_PRELOAD"] == ""
    assert [name for name in seen if name.startswith("OVERLAP_")] == ["OVERLAP_RUN"]
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param([], "no program to run", id="no program"),
        pytest.param(["--polcy", "x", "true"], "unrecognized arguments: --polcy", id="unknown option"),
        pytest.param(["--dry", "true"], "unrecognized arguments: --dry", id="options are not abbreviated"),
        pytest.param(["--policy", "no-such", "true"], "there is no policy `no-such`", id="unknown policy"),
        pytest.param(["--policy", "./no.yaml", "true"], "no.yaml", id="missing file"),
        pytest.param(["--policy"], "argument -p/--policy: expected one argument", id="option without its value"),
        pytest.param(
            ["--policy", "--quiet", "true"], "argument -p/--policy: expected one argument", id="option for a value"
        ),
        pytest.param(["--report", "/proc/x", "true"], "cannot be made", id="report that cannot be made"),
        pytest.param(["--simulate", "h10", "true"], "no GPU is called `h10`", id="unknown GPU"),
        pytest.param(["--simulate", "h100,0", "true"], "'0' is not a number of GPUs", id="no GPUs"),
        pytest.param(["--simulate", "h100,999", "true"], "'999' is not a number of GPUs", id="too many GPUs"),
    ],
)
def test_125_before_the_program_starts(overlap_run, library, arguments, error):
    done = overlap_run(*arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("overlap: error: ")
    assert error in done.stderr


def test_an_invalid_policy_says_where(overlap_run, tmp_path):
    (tmp_path / "bad.yaml").write_text("policy: 1\nname: bad\nnonsense: 1\n")
    done = overlap_run("--policy", "bad.yaml", "true", cwd=tmp_path)
    assert done.returncode == 125
    assert "bad.yaml:3:1: error[unknown-key]" in done.stderr


@pytest.mark.parametrize(
    ("program", "status", "error"),
    [
        ("no-such-program", 127, "overlap: error: no-such-program: program not found\n"),
        ("./missing", 127, "overlap: error: ./missing: program not found\n"),
        (
            "demo-stencil",
            127,
            "overlap: error: demo-stencil: program not found\noverlap: help: demo-stencil ships with overlap-run and "
            "runs on simulated GPUs only: overlap-run --simulate h100 demo-stencil\n",
        ),
        ("", 127, "overlap: error: an empty name: program not found\n"),
        ("./folder", 126, "overlap: error: ./folder is a directory\n"),
        ("./data", 126, "overlap: error: ./data is not executable\noverlap: help: chmod +x ./data\n"),
        ("./train.py", 126, "overlap: error: ./train.py is not executable\noverlap: help: write: python ./train.py\n"),
        ("train.py", 127, "overlap: error: train.py: program not found\noverlap: help: write: python train.py\n"),
        (
            "./my.yaml",
            126,
            "overlap: error: ./my.yaml is not executable\n"
            "overlap: help: a policy is an option: --policy ./my.yaml PROGRAM\n",
        ),
        ("./lost", 127, "overlap: error: ./lost: the interpreter or loader that it names does not exist\n"),
        ("./astray", 126, "overlap: error: ./astray: Not a directory\n"),
    ],
)
def test_126_and_127(overlap_run, driver, tmp_path, library, program, status, error):
    (tmp_path / "folder").mkdir()
    for name in ("data", "train.py", "my.yaml"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    for name, interpreter in (("lost", "/no/such/interpreter"), ("astray", f"{tmp_path}/data/interpreter")):
        (tmp_path / name).write_text(f"#!{interpreter}\n")
        (tmp_path / name).chmod(0o755)
    done = overlap_run(program, env=driver, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(error)


def test_of_several_files_in_path_that_are_not_executable_the_first_is_named(overlap_run, driver, tmp_path, library):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").touch()
    path = f"{tmp_path}/one:{tmp_path}/two:{os.environ['PATH']}"
    done = overlap_run("data", env={**driver, "PATH": path})
    assert done.returncode == 126
    assert done.stderr.startswith(f"overlap: error: {tmp_path}/one/data is not executable\n")


def test_a_script_without_its_first_line_runs_as_everywhere(overlap_run, driver, tmp_path, library):
    (tmp_path / "script").write_text("echo $1\n")
    (tmp_path / "script").chmod(0o755)
    done = overlap_run("./script", "word", env=driver, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "word\n", "")


def static(tmp_path: Path) -> str:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 7; }\n")
    command = [*shlex.split(os.environ.get("CC", "cc")), "-static", str(source), "-o", str(tmp_path / "static")]
    done = subprocess.run(command, check=False)
    if done.returncode:
        pytest.skip("no static C library here: apt-get install gcc libc6-dev")
    return str(tmp_path / "static")


def test_the_report_names_what_keeps_the_library_out(overlap_run, overlap, driver, tmp_path, library):
    path = static(tmp_path)
    for options in ([], ["--simulate", "h100"]):
        overlap_run(*options, "--report", str(tmp_path / "out"), path, env=driver)
        said = overlap("report", str(tmp_path / "out")).stdout
        assert said.startswith("done: nothing: static is statically linked: "), said
        assert "\nnext: link it dynamically, " in said and "PyTorch" not in said
    os.unlink(path)
    assert overlap("report", str(tmp_path / "out")).stdout == said, "as it was when the run began"


def test_the_report_does_not_take_a_launcher_for_the_program(overlap_run, overlap, driver, tmp_path, library):
    os.rename(static(tmp_path), tmp_path / "nohup")
    done = overlap_run("--report", str(tmp_path / "out"), str(tmp_path / "nohup"), "true", env=driver)
    assert "nohup is statically linked: nothing is done in it, only in programs that it starts\n" in done.stderr
    said = overlap("report", str(tmp_path / "out")).stdout
    assert said.startswith("done: nothing: no process of nohup opened a GPU ")


@pytest.mark.parametrize("value", ["OFF", "0", "no", "on"])
def test_a_value_of_overlap_run_that_is_not_known_is_said_and_nothing_else_changes(overlap_run, driver, library, value):
    line = f"overlap: OVERLAP_RUN={value} is not known and does nothing: `off` turns everything off\n"
    done = overlap_run("sh", "-c", "echo ${OVERLAP_TABLE:+set}", env={**driver, "OVERLAP_RUN": value})
    assert (done.returncode, done.stdout, done.stderr) == (0, "set\n", line)
    assert overlap_run("--quiet", "true", env={**driver, "OVERLAP_RUN": value}).stderr == ""


def test_a_script_with_the_line_ends_of_windows_is_told_by_all(overlap_run, overlap, driver, tmp_path, library):
    (tmp_path / "dos").write_bytes(b"#!/bin/sh\r\ntrue\r\n")
    (tmp_path / "dos").chmod(0o755)
    hint = "its lines end as in Windows: sed -i 's/\\r$//' ./dos\n"
    done = overlap_run("./dos", env=driver, cwd=tmp_path)
    assert done.returncode == 127 and done.stderr.endswith(f"overlap: help: {hint}")
    assert hint in overlap("doctor", "./dos", cwd=tmp_path).stdout
    assert hint in overlap("tune", "--", "./dos", cwd=tmp_path).stderr


def test_a_doubt_is_one_line_and_125_only_under_strict(overlap_run, driver, tmp_path, library):
    path = static(tmp_path)
    sentence = "static is statically linked: nothing is done in it, only in programs that it starts"
    plain = overlap_run(path, env=driver)
    assert (plain.returncode, plain.stderr) == (7, f"overlap: {sentence}\n")
    assert overlap_run("--quiet", path, env=driver).stderr == ""
    assert overlap_run(path, env={**driver, "SLURM_PROCID": "3"}).stderr == "", "only rank 0 speaks"
    strict = overlap_run("--strict", path, env=driver)
    assert strict.returncode == 125
    assert strict.stderr.startswith(f"overlap: error: {sentence}\noverlap: help: ")


def test_a_program_with_a_sanitizer_runs_without_the_library(overlap_run, driver, tmp_path, library):
    (tmp_path / "main.c").write_text("int main(void) { return 7; }\n")
    flags = ["-fsanitize=address", "-fno-sanitize-recover", str(tmp_path / "main.c"), "-o", str(tmp_path / "checked")]
    if subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *flags], capture_output=True, check=False).returncode:
        pytest.skip("the compiler has no address sanitizer, which gcc has: apt-get install gcc libc6-dev")
    done = overlap_run(str(tmp_path / "checked"), env=driver)
    assert done.returncode == 7, done.stderr
    assert "must be loaded before any other library" in done.stderr


def test_the_report_says_that_there_was_no_driver(overlap_run, overlap, library, tmp_path):
    from pyshim.start.program import vendors

    if vendors({}):
        pytest.skip("this machine has one")
    report = str(tmp_path / "report")
    assert overlap_run("-q", "--report", report, "true").returncode == 0
    assert json.loads((tmp_path / "report" / "last" / "run.json").read_text())["driver"] is False
    assert f"nothing: there is no GPU driver on {os.uname().nodename}" in overlap("report", report).stdout
    assert overlap_run("-q", "--simulate", "h100", "--report", report, "true").returncode == 0
    assert json.loads((tmp_path / "report" / "last" / "run.json").read_text())["driver"] is None


def test_no_driver_is_one_line(overlap_run, library):
    from pyshim.start.program import vendors

    if vendors({}):
        pytest.skip("this machine has one")
    done = overlap_run("--policy", "observe", "true")
    line = "overlap: no GPU driver found (libcuda.so.1, /dev/kfd): the program runs unchanged\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", line)
    assert overlap_run("--strict", "--policy", "observe", "true").returncode == 125


def test_a_simulated_gpu(overlap_run, library):
    done = overlap_run("--policy", "observe", "--simulate", "H100,2", *SHOW)
    seen = shown(done)
    folder = str(_native.SIMULATED_DRIVER.parent)
    assert done.stderr.startswith("overlap: 2 simulated NVIDIA H100 80GB HBM3\n")
    assert (seen["SIMGPU"], seen["TRITON_LIBCUDA_PATH"]) == ("h100,2", folder)
    assert seen["LD_LIBRARY_PATH"].split(":")[0] == folder


def test_a_simulated_gpu_of_amd_brings_a_runtime_and_a_driver_without_gpus(overlap_run, library):
    done = overlap_run("--policy", "observe", "--simulate", "mi250x", *SHOW)
    seen = shown(done)
    folder = str(_native.SIMULATED_DRIVER.parent)
    assert done.stderr.splitlines()[0] == "overlap: simulated AMD Instinct MI250X"
    assert seen["SIMGPU"] == "mi250x"
    assert seen["LD_LIBRARY_PATH"].split(":")[:2] == [f"{folder}/hip7", folder]
    program = "import ctypes; ctypes.CDLL('libamdhip64.so.7'); c = ctypes.CDLL('libcuda.so.1')"
    done = overlap_run(
        "--policy", "observe", "--simulate", "mi250x", sys.executable, "-c", f"{program}; print(c.cuInit(0))"
    )
    assert done.stdout == "100\n", done.stderr


def test_switched_off_there_is_no_simulated_gpu_either(overlap_run, library):
    done = overlap_run("--simulate", "a40", *SHOW, env={"OVERLAP_RUN": "off"})
    seen = shown(done)
    assert done.stderr == "overlap: OVERLAP_RUN=off: --simulate does nothing; unset it\n"
    assert not {"LD_PRELOAD", "SIMGPU", "TRITON_LIBCUDA_PATH", "OVERLAP_TABLE"} & set(seen)


def test_policies_for_other_gpus_only_observe(overlap_run, library):
    done = overlap_run("--policy", "a100-paper", "--simulate", "h100", "true")
    assert done.returncode == 0
    assert "overlap: no policy for this GPU (NVIDIA H100 80GB HBM3) in a100-paper: observing; " in done.stderr
    assert overlap_run("--strict", "--policy", "a100-paper", "--simulate", "h100", "true").returncode == 125


def test_a_dry_run_says_what_would_be_and_does_nothing(overlap_run, driver, tmp_path, library):
    done = overlap_run("--dry-run", "--report", str(tmp_path / "r"), "false", env=driver)
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "r").exists()
    assert done.stderr.startswith("overlap: would run /")
    assert f"overlap: would keep a report in {tmp_path / 'r'}/" in done.stderr
    assert f"overlap: would set LD_PRELOAD={_native.SHIM}\n" in done.stderr


def test_a_mistake_of_ours_is_no_reason_to_fail(monkeypatch, capfd, clean_environment):
    def broken(*_):
        raise ZeroDivisionError("ours")

    def execute(path, words, environment):
        raise SystemExit(os.path.basename(path) + str(environment == dict(os.environ)))

    monkeypatch.setattr(plan, "make", broken)
    monkeypatch.setattr(command, "execute", execute)
    with pytest.raises(SystemExit, match="trueTrue"):
        command.main(["true"])
    assert "mistake in overlap-run (ZeroDivisionError: ours)" in capfd.readouterr().err
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit, match="trueTrue"):
        command.main(["true"])
    assert capfd.readouterr().err == "", "rank 0 says it"
    assert command.main(["--strict", "true"]) != 0


def test_a_missing_library_and_a_path_that_cannot_be_preloaded_are_doubts(tmp_path):
    request = plan.Request(policy="observe")
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "liboverlap.so").write_bytes(b"")
    for path, words in ((tmp_path / "none.so", "is missing"), (tmp_path / "a b" / "liboverlap.so", "cannot hold")):
        made = plan.make(request, {}, str(path))
        assert made.settings.library is None
        assert [words in doubt for doubt in made.doubts] == [True]


@pytest.mark.parametrize("value", [None, "auto"])
@pytest.mark.parametrize("key", KEYS)
def test_without_a_policy_there_is_one_for_every_gpu(library, value, key):
    made = plan.make(plan.Request(policy=value, simulate=key), {}, str(_native.SHIM))
    assert made.doubts == []
    gpu = gpus.named(key)
    index = chosen.index_for(layout.decode(made.settings.table), gpu.name, gpu.architecture)
    assert made.policies[index]["name"] == (key if gpu.vendor == gpus.AMD else "default")
    assert made.settings.defaults == ({"TORCH_NCCL_HIGH_PRIORITY": "1"} if gpu.vendor == gpus.AMD else {})


def test_only_policies_that_the_user_named_may_fit_no_gpu(overlap_run, library):
    named = overlap_run("--simulate", "a40", "--policy", "h100", "--strict", "true")
    assert named.returncode == 125
    assert "in h100: observing; --policy h100,default falls back to the rule for every GPU\n" in named.stderr
    assert overlap_run("--simulate", "a40", "--policy", "h100", "true").returncode == 0
    assert overlap_run("--simulate", "a40", "--policy", "h100,default", "--strict", "true").returncode == 0


def test_the_default_carries_those_of_amd_and_that_of_every_gpu(overlap_run, driver, tmp_path, library):
    """What those for AMD ask for is not set where only a driver of NVIDIA is found."""
    report = tmp_path / "r"
    done = overlap_run("--report", str(report), *SHOW, env=driver)
    assert (done.returncode, done.stderr) == (0, "")
    assert "TORCH_NCCL_HIGH_PRIORITY" not in shown(done)
    run = json.loads((report / "last" / "run.json").read_text())
    names = [policy["name"] for policy in run["policies"]]
    assert names == ["mi250x", "mi300x", "default"]
    assert "TORCH" not in overlap_run("--dry-run", "true", env=driver).stderr
    done = overlap_run("--policy", "mi250x", "--dry-run", "true", env=driver)
    assert "overlap: no variable is set: nothing here is a GPU that mi250x may be for\n" in done.stderr


def test_policies_that_no_driver_here_speaks_for_are_asked_all(overlap_run, library):
    done = overlap_run("--dry-run", "true", env={"LD_LIBRARY_PATH": ""})
    why = "TORCH_NCCL_HIGH_PRIORITY is not set, because it is not known yet which policy will apply: "
    if "no GPU driver" in done.stderr and not os.path.exists("/dev/kfd"):
        assert f"overlap: {why}TORCH_NCCL_HIGH_PRIORITY=1 in mi250x, mi300x; not in default" in done.stderr
        done = overlap_run("--policy", "mi250x", "--dry-run", "true", env={"LD_LIBRARY_PATH": ""})
        assert "overlap: would set TORCH_NCCL_HIGH_PRIORITY=1\n" in done.stderr


def test_starting_loads_nothing_heavy(clean_environment):
    """What a plain start with a shipped policy may import; each of these costs more than all the rest."""
    probe = (
        "import sys; before = set(sys.modules); from pyshim.cli import run;"
        "run.execute = lambda *a: print(*sorted({'cffi', 'yaml', 'rich', 'psutil', 'dataclasses', 'inspect',"
        " 'pathlib', 'subprocess', 'urllib'} & (set(sys.modules) - before))) or sys.exit(0);"
        "run.main(['--quiet', 'true'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], env=clean_environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_the_example_of_help_runs(overlap_run, library, tmp_path):
    (example,) = [line.split()[1:] for line in overlap_run("--help").stdout.splitlines() if "--simulate h100 " in line]
    done = overlap_run(*example, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "out").is_dir(), done.stderr


@pytest.mark.parametrize("variable", ["OVERLAP_RUN", "OVERLAP_POLICY"])
def test_switched_off_the_bundled_program_is_not_found_and_why(overlap_run, library, variable):
    done = overlap_run("--simulate", "h100", "demo-stencil", env={variable: "off"})
    hint = f"{variable}=off disables --simulate, which brings demo-stencil: unset {variable}"
    assert (done.returncode, done.stderr.splitlines()[1]) == (127, f"overlap: help: {hint}")
