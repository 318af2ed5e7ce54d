"""The task-prolog by itself, under three shells, with nothing set but what a test sets: no PATH, no HOME."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import debian
import pytest
import readers
from readers import EVIL, FOREIGN, OWN, elf

from pyshim.start import folder
from pyshim.start.environment import preload

SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"], "bash": ["bash", "--posix"]}
SET = {"LD_PRELOAD", "OVERLAP_TABLE"}


@pytest.fixture
def site(installed: Path, tmp_path: Path) -> Path:
    """A folder that a test may change. Its library is a symlink to the real one."""
    folder = tmp_path / "overlap"
    shutil.copytree(installed, folder, ignore=shutil.ignore_patterns("lib"))
    for file in (folder / "env").iterdir():
        file.write_text(file.read_text().replace(str(installed), str(folder)))
    (folder / "lib").mkdir()
    (folder / "lib" / "liboverlap.so").symlink_to(installed / "lib" / "liboverlap.so")
    return folder


@pytest.fixture(params=SHELLS)
def shell(request):
    """Its command."""
    name, *words = SHELLS[request.param]
    if not shutil.which(name):
        try:
            debian.install([name], [name])
        except debian.Missing as reason:
            pytest.skip(str(reason))
    return [shutil.which(name), *words]


@pytest.fixture
def prolog(shell, tmp_path):
    """Runs it as Slurm does, and returns what Slurm takes from it."""
    work = tmp_path / "work"
    work.mkdir()

    def run(path: Path, *words: str, **environment: str) -> dict[str, str]:
        done = subprocess.run(
            [*shell, str(path), *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=work,
            timeout=300,
        )
        assert done.returncode == 0
        # Slurm reads this, too. The loader complains of the task's own libraries before our first line.
        assert done.stderr == b"" or environment.get("LD_PRELOAD")
        assert not list(work.iterdir())
        return readers.exports(done.stdout.decode())

    return run


def script(folder: Path) -> Path:
    return folder / "libexec" / "task-prolog"


def policy_of(folder: Path, name: str) -> dict[str, str]:
    return readers.exports((folder / "env" / f"{name}.env").read_text())


@pytest.fixture
def chosen(site, tmp_path):
    """A user and an administrator, who may choose a policy."""
    (tmp_path / "home" / ".config" / "overlap-run").mkdir(parents=True)

    def choose(user: str | None = None, default: str | None = None) -> dict[str, str]:
        for file, text in ((tmp_path / "home/.config/overlap-run/policy", user), (site / "default", default)):
            file.unlink(missing_ok=True)
            if text is not None:
                file.write_text(text)
        return {"HOME": str(tmp_path / "home")}

    return choose


@pytest.mark.parametrize(
    ("job", "user", "default", "expected"),
    [
        pytest.param(None, None, None, None, id="nobody chooses"),
        pytest.param(None, None, "h100\n", "h100", id="the site"),
        pytest.param(None, "a100\n", "h100\n", "a100", id="the user, over the site"),
        pytest.param("a40", "a100\n", "h100\n", "a40", id="the job, over both"),
        pytest.param("off", "a100\n", "h100\n", None, id="off for a job"),
        pytest.param(None, "off\n", "h100\n", None, id="off for a user"),
        pytest.param("a40", "off\n", "off", "a40", id="a job, though it is off for the user"),
        pytest.param("", "a100\n", None, "a100", id="an empty variable is no choice"),
        pytest.param("", "\n", "h100", "h100", id="an empty file is no choice"),
        pytest.param(None, "  a100  \nh100\n", None, "a100", id="the first line, without spaces"),
        pytest.param(None, "a100", None, "a100", id="a file without an end of line"),
        pytest.param(None, " \t\n\n a100", "h100", "a100", id="behind lines that are blank"),
        pytest.param(None, "a100\r\n", "h100", None, id="a file of another system"),
        pytest.param("no-such", "a100\n", "h100\n", None, id="an unknown name is not replaced by another choice"),
        pytest.param(".hidden", None, "h100\n", None, id="a name that begins with a dot"),
        pytest.param("own", None, None, "own", id="a policy of the site"),
    ],
)
def test_who_chooses(prolog, site, chosen, job, user, default, expected):
    environment = chosen(user, default) | ({} if job is None else {"OVERLAP_POLICY": job})
    assert prolog(script(site), **environment) == (policy_of(site, expected) if expected else {})


def test_a_user_may_keep_the_choice_elsewhere(prolog, site, chosen, tmp_path):
    (tmp_path / "xdg" / "overlap-run").mkdir(parents=True)
    (tmp_path / "xdg" / "overlap-run" / "policy").write_text("a40\n")
    assert prolog(script(site), **chosen("a100"), XDG_CONFIG_HOME=str(tmp_path / "xdg")) == policy_of(site, "a40")


def test_off_is_off_whatever_else_is_set(prolog, site, chosen):
    more = {"OVERLAP_RUN": "off", "OVERLAP_POLICY": "h100", "OVERLAP_TABLE": "x", "OVERLAP_REPORT": "/r"}
    assert prolog(script(site), **chosen("a100", "h100"), **more) == {}


def test_twice_is_once(prolog, site):
    first = {"OVERLAP_POLICY": "own", "LD_PRELOAD": "/x.so", "OVERLAP_REPORT": "r", "SLURM_JOB_ID": "1"}
    task = first | prolog(script(site), **first)
    assert task["LD_PRELOAD"] == f"{site}/lib/liboverlap.so:/x.so"
    assert task | prolog(script(site), **task) == task


def test_an_outer_choice_stands_with_the_library_that_reads_it(prolog, site, tmp_path):
    other = tmp_path / "venv" / "liboverlap.so"
    other.parent.mkdir()
    shutil.copy(site / "lib" / "liboverlap.so", other)
    outer = {"OVERLAP_TABLE": "outer", "OVERLAP_POLICY": "h100"}
    assert prolog(script(site), **outer, LD_PRELOAD=f"/x.so:{other}") == {"LD_PRELOAD": f"{other}:/x.so"}
    ours = {"LD_PRELOAD": f"{site}/lib/liboverlap.so"}
    assert prolog(script(site), **outer) == ours
    assert prolog(script(site), **outer, LD_PRELOAD="/not/on/this/node/liboverlap.so") == ours


@pytest.mark.parametrize(
    "value",
    [
        "",
        "/a.so",
        "/a.so:/b.so",
        "/a.so /b.so",
        ":/a.so:: /b.so ",
        "/old/liboverlap.so:/a.so",
        "/a.so:/old/liboverlap.so:/older/liboverlap.so",
        "/usr/lib/libasan.so.8",
        "/a.so:/usr/lib/libasan.so.8:/b.so:/c/libtsan.so.0",
        "/llvm/libclang_rt.asan-x86_64.so:/a.so",
        "libasan.so",
        "/x/libasanity.so:/y/asan.so:/z/libubsan.so.1",
        "/opt/xalt/$LIB/libxalt_init.so:/a/${PLATFORM}/b.so",
    ],
)
def test_the_preload_of_the_task_is_kept(prolog, site, value):
    said = prolog(script(site), OVERLAP_POLICY="observe", **({"LD_PRELOAD": value} if value else {}))
    assert said["LD_PRELOAD"] == preload(value, f"{site}/lib/liboverlap.so")


@pytest.mark.parametrize("evil", EVIL, ids=repr)
def test_no_value_of_the_task_brings_in_another(prolog, site, chosen, evil):
    """Where a choice is odd nothing is exported; where something else is, it is not used."""
    run = script(site)
    assert prolog(run, OVERLAP_POLICY=evil) == {}
    said = prolog(run, **chosen(user=evil))
    assert said == {} or evil.startswith("a\n")
    assert prolog(run, **chosen(default=evil)) == {}
    fine = {"OVERLAP_POLICY": "own"}
    expected = policy_of(site, "own")
    (site / "default").unlink()
    names = ("HOME", "XDG_CONFIG_HOME", "NCCL_CONF_FILE", "OVERLAP_REPORT", "PATH", "IFS", "ENV")
    assert prolog(run, **fine, **dict.fromkeys(names, evil)) == expected
    for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"):
        numbers = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "2", name: evil}
        assert prolog(run, **fine, OVERLAP_REPORT="r", **numbers) == expected
    said = prolog(run, **fine, LD_PRELOAD=f"/x{evil}.so")
    assert said == {} or said["LD_PRELOAD"] == preload(f"/x{evil}.so", f"{site}/lib/liboverlap.so")


@pytest.mark.parametrize("evil", [*EVIL, ""], ids=repr)
def test_no_value_of_a_file_brings_in_another(prolog, site, evil):
    def with_lines(*lines: str) -> dict[str, str]:
        (site / "env" / "x.env").write_text("".join(f"{line}\n" for line in lines))
        return prolog(script(site), OVERLAP_POLICY="x")

    table, ours = "export OVERLAP_TABLE=abc", f"export LD_PRELOAD={site}/lib/liboverlap.so"
    fine = {"OVERLAP_TABLE": "abc", "LD_PRELOAD": f"{site}/lib/liboverlap.so"}
    assert with_lines(table, ours) == fine
    assert with_lines(table, f"export LD_PRELOAD={evil}") == {}
    said = with_lines(f"export OVERLAP_TABLE={evil}", ours)
    assert said == {} or set(said) == SET
    said = with_lines(table, ours, f"export NCCL_X={evil}", f"export OVERLAP_X={evil}")
    assert said == fine | {name: said[name] for name in ("NCCL_X", "OVERLAP_X") if name in said}
    more = (f"export {evil}=1", evil, f"print {evil}", f"unset {evil}", " export EVIL=1", "EVIL=1", "export EVIL")
    assert with_lines(table, ours, *more) == fine


@pytest.mark.parametrize(("size", "fits"), [(122_880, True), (122_881, False), (300_000, False)])
def test_a_value_that_no_task_can_hold(prolog, site, size, fits):
    """Slurm says so of every such line, and sets the rest; of a very long file the end is not read."""
    own = policy_of(site, "own")
    for name in ("OVERLAP_TABLE", "NCCL_LONG"):
        wanted = {**own, name: "A" * size}
        (site / "env" / "long.env").write_text("".join(f"export {one}={wanted[one]}\n" for one in wanted))
        left = {} if name == "OVERLAP_TABLE" or size > 262_144 else own
        assert prolog(script(site), OVERLAP_POLICY="long") == (wanted if fits else left)


NEVER = """PATH LD_LIBRARY_PATH LD_AUDIT BASH_ENV ENV IFS HOME PYTHONPATH GCONV_PATH SLURM_NTASKS RANK
    CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES nccl_algo NCCL_algo NCCL_ 1NCCL OVERLAP_ OVERLAP_a"""


def test_names_that_are_never_set(prolog, site):
    with (site / "env" / "observe.env").open("a") as file:
        file.writelines(f"export {name}=1\n" for name in [*NEVER.split(), "NCCL_OK"])
    assert set(prolog(script(site), OVERLAP_POLICY="observe")) == SET | {"NCCL_OK"}


def test_what_the_task_has_set_is_left(prolog, site):
    own = {"OVERLAP_POLICY": "own"}
    names = SET | {"NCCL_CGA_CLUSTER_SIZE", "TORCH_NCCL_HIGH_PRIORITY"}
    assert set(prolog(script(site), **own)) == names
    assert set(prolog(script(site), **own, NCCL_CGA_CLUSTER_SIZE="4")) == names - {"NCCL_CGA_CLUSTER_SIZE"}
    assert set(prolog(script(site), **own, TORCH_NCCL_HIGH_PRIORITY="")) == names - {"TORCH_NCCL_HIGH_PRIORITY"}


@pytest.mark.parametrize("outer", [False, True], ids=["chosen here", "chosen outside"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\x7fELF\2\1", id="cut off"),
        pytest.param(elf(OWN), id="a header alone"),
        pytest.param(b"#!/bin/sh\n" + bytes(100), id="a script"),
        pytest.param(elf(FOREIGN), id="another architecture"),
        pytest.param(elf(21), id="an architecture without a library"),
        pytest.param(elf(OWN, bits=1), id="32 bits"),
        pytest.param(elf(OWN, order=2), id="another order of bytes"),
    ],
)
def test_a_library_that_cannot_be_loaded_here(prolog, site, data, outer):
    library = site / "lib" / "liboverlap.so"
    library.unlink()
    if data is not None:
        library.write_bytes(data)
    assert prolog(script(site), **({"OVERLAP_TABLE": "x"} if outer else {"OVERLAP_POLICY": "h100"})) == {}


@pytest.mark.parametrize("part", ["a page", "its code", "its data", "its symbols", "all but a byte"])
def test_a_copy_of_the_library_that_has_come_in_part_is_not_exported(prolog, site, part):
    """The loader takes such a file, and the program ends by a signal, or runs with a library that is not whole."""
    library = site / "lib" / "liboverlap.so"
    whole = library.read_bytes()
    size = {"a page": 4096, "its code": 100_000, "its data": 200_000, "its symbols": 300_000}.get(part, len(whole) - 1)
    assert size < len(whole)
    library.unlink()
    library.write_bytes(whole[:size])
    assert prolog(script(site), OVERLAP_POLICY="h100") == {}
    done = check(site, OVERLAP_POLICY="h100")
    assert (done.returncode, f"{library} is damaged: its end is missing" in done.stderr) == (1, True)
    assert done.stderr.splitlines()[-1].startswith(f"overlap: help: make site PREFIX={site}, ")


@pytest.mark.parametrize("what", ["zeros", "ones"])
def test_a_library_of_its_size_with_damage_inside_is_not_exported(prolog, site, what):
    """As a file system leaves it behind a crash."""
    library = site / "lib" / "liboverlap.so"
    data = bytearray(library.read_bytes())
    data[4096:90_000] = (b"\0" if what == "zeros" else b"\xff") * (90_000 - 4096)
    library.unlink()
    library.write_bytes(data)
    assert prolog(script(site), OVERLAP_POLICY="h100") == {}
    done = check(site, OVERLAP_POLICY="h100")
    assert (done.returncode, "a program does not start with it" in done.stderr) == (1, True)


def check(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(script(folder)), "--check"], env=environment, capture_output=True, text=True)


def spoil(path: Path, how: str) -> None:
    path.unlink(missing_ok=True)
    if how == "a pipe":
        os.mkfifo(path)  # whoever opens it waits
    elif how == "a folder":
        path.mkdir()
    elif how == "a link to nowhere":
        path.symlink_to("/no/such")
    elif how == "a device":
        path.symlink_to("/dev/zero")
    elif how == "noise":
        path.write_bytes(bytes(range(256)) * 1000)
    elif how == "very long":
        path.write_bytes(b"a" * (64 << 20))


@pytest.mark.parametrize("how", ["a pipe", "a folder", "a link to nowhere", "a device", "noise", "very long"])
def test_files_that_are_not_what_they_should_be(prolog, site, chosen, how):
    home = Path(chosen(default="h100")["HOME"])
    spoil(home / ".config/overlap-run/policy", how)
    nothing = how in ("noise", "very long")  # somebody chose something
    assert prolog(script(site), HOME=str(home)) == ({} if nothing else policy_of(site, "h100"))
    for name in ("default", "env/h100.env"):
        kept = (site / name).read_bytes()
        spoil(site / name, how)
        choice = {"OVERLAP_POLICY": "h100"} if name != "default" else {}
        assert prolog(script(site), **choice) == {}
        shutil.rmtree(site / name) if how == "a folder" else (site / name).unlink()
        (site / name).write_bytes(kept)
    spoil(home / ".nccl.conf", how)
    assert set(prolog(script(site), OVERLAP_POLICY="own", HOME=str(home))) >= SET
    spoil(site / "lib/liboverlap.so", how)
    assert prolog(script(site), OVERLAP_POLICY="h100") == {}


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    (tmp_path / "reports").mkdir()
    return tmp_path / "reports"


def run_of(prolog, site, report: Path, **environment: str) -> str | None:
    more = {"OVERLAP_POLICY": "observe", "OVERLAP_REPORT": str(report), **environment}
    return prolog(script(site), **more).get("OVERLAP_REPORT")


@pytest.mark.parametrize("restarts", [None, "", "0", "1", "300"])
def test_a_run_has_a_folder_named_after_job_step_and_attempt(prolog, site, reports, restarts):
    slurm = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "3", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    slurm |= {} if restarts is None else {"SLURM_RESTART_COUNT": restarts}
    name = folder.step(slurm)
    for rank in "01":
        assert run_of(prolog, site, reports, **{**slurm, "SLURM_PROCID": rank}) == f"{reports}/{name}"
    assert os.readlink(reports / "last") == name and (reports / name).stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in reports.iterdir()) == ["last", name]
    later = {**slurm, "SLURM_STEP_ID": "4"}
    assert run_of(prolog, site, reports, **later) == f"{reports}/{os.readlink(reports / 'last')}"
    assert os.readlink(reports / "last") == folder.step(later)


def test_what_runs_inside_of_a_run_belongs_to_it(prolog, site, reports):
    """A step of a batch script, which the ranks of its mpirun on other nodes are, too; or of an overlap-run."""
    batch = run_of(prolog, site, reports, SLURM_JOB_ID="4711")
    assert batch == f"{reports}/slurm-4711.batch"
    assert run_of(prolog, site, Path(batch), SLURM_JOB_ID="4711", SLURM_STEP_ID="0") is None
    assert run_of(prolog, site, Path(batch), SLURM_JOB_ID="4712", SLURM_STEP_ID="0") == f"{batch}/slurm-4712.0"
    (reports / "run.json").write_text("{}")
    assert run_of(prolog, site, reports, SLURM_JOB_ID="4711") is None


def test_where_no_folder_of_a_run_can_be_made_the_report_is_what_it_was(prolog, site, reports):
    step = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "3"}
    assert run_of(prolog, site, reports / "missing", **step) is None
    assert run_of(prolog, site, reports) is None
    for number in ("4294967296", "99999999999", "007", "-1", "0x10", "1e3"):
        assert run_of(prolog, site, reports, SLURM_JOB_ID=number, SLURM_STEP_ID="0") is None
    (reports / "slurm-4711.3").symlink_to("/")
    assert run_of(prolog, site, reports, **step) is None
    assert [path.name for path in reports.iterdir()] == ["slurm-4711.3"]


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_last_that_is_not_ours_stays(prolog, site, reports, kind):
    last = reports / "last"
    {"file": last.touch, "folder": last.mkdir, "link": lambda: last.symlink_to("/etc")}[kind]()
    before = last.lstat().st_ino
    assert run_of(prolog, site, reports, SLURM_JOB_ID="7", SLURM_STEP_ID="0") == f"{reports}/slurm-7.0"
    assert last.lstat().st_ino == before and len(list(reports.iterdir())) == 2


def test_it_is_found_by_a_link_and_works_only_where_it_belongs(prolog, site, tmp_path):
    (tmp_path / "link").symlink_to(script(site))
    (tmp_path / "current").symlink_to(site)
    assert prolog(tmp_path / "link", OVERLAP_POLICY="h100") == policy_of(site, "h100")
    assert prolog(script(tmp_path / "current"), OVERLAP_POLICY="h100") == policy_of(site, "h100")
    for name in ("a b", "a:b", "a$b", "a\nb"):
        shutil.copytree(site, tmp_path / name)
        assert prolog(script(tmp_path / name), OVERLAP_TABLE="x") == {}
    shutil.copy(script(site), tmp_path / "alone")
    assert prolog(tmp_path / "alone", OVERLAP_POLICY="h100") == {}


def test_a_closed_or_broken_pipe_is_no_failure(site, shell):
    for redirection in (">&-", "2>&-", ">/dev/full", "<&-"):
        command = f'exec "$@" {redirection}'
        words = ["sh", "-c", command, "sh", *shell, str(script(site))]
        environment = {"OVERLAP_POLICY": "h100", "PATH": os.environ["PATH"]}
        done = subprocess.run(words, env=environment, capture_output=True, timeout=300)
        assert done.returncode == 0


@pytest.mark.parametrize(
    ("environment", "status", "words"),
    [
        ({"OVERLAP_POLICY": "h100"}, 0, "policy h100, says OVERLAP_POLICY"),
        ({"OVERLAP_POLICY": "h100"}, 0, "would export LD_PRELOAD="),
        ({}, 1, "nothing is exported: nobody chose a policy (OVERLAP_POLICY, "),
        ({}, 1, pwd.getpwuid(os.geteuid()).pw_dir + "/.config/overlap-run/policy"),
        ({"OVERLAP_POLICY": "no-such"}, 1, "OVERLAP_POLICY says no-such, and there is no such policy: no "),
        ({"OVERLAP_POLICY": "a;b"}, 1, "no policy is called what OVERLAP_POLICY says"),
        ({"OVERLAP_POLICY": "a;b"}, 1, "help: OVERLAP_POLICY may say one of a100-paper a100 "),
        ({}, 1, "help: OVERLAP_POLICY=auto, or another one of "),
        ({"OVERLAP_POLICY": "off"}, 1, "off, says OVERLAP_POLICY"),
        ({"OVERLAP_RUN": "off"}, 1, "OVERLAP_RUN=off"),
        (
            {"OVERLAP_POLICY": "h100", "OVERLAP_REPORT": "/nowhere/run1"},
            0,
            "no report will be written: the folder /nowhere/run1 (OVERLAP_REPORT) is missing",
        ),
        ({"OVERLAP_TABLE": "x"}, 0, "the policy is already chosen (OVERLAP_TABLE is set)"),
        ({"OVERLAP_POLICY": "h100", "LD_PRELOAD": "/a\nb.so"}, 1, "LD_PRELOAD of the task holds what"),
        (
            {"OVERLAP_POLICY": "own", "NCCL_CGA_CLUSTER_SIZE": "1"},
            0,
            "NCCL_CGA_CLUSTER_SIZE is left as the task has it",
        ),
    ],
)
def test_check_says_what_and_why(installed, environment, status, words):
    done = check(installed, **environment)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert done.stderr.splitlines()[-1].startswith("overlap: ")


def test_check_of_an_unknown_policy_names_those_that_are_there_and_how_to_add_it(site):
    (*_, said, helped) = check(site, OVERLAP_POLICY="no-such").stderr.splitlines()
    assert said.endswith(f"OVERLAP_POLICY says no-such, and there is no such policy: no {site}/env/no-such.env")
    known, _, add = helped.removeprefix("overlap: help: known: ").partition("; ")
    assert sorted(known.split()) == sorted([*(path.stem for path in (site / "env").iterdir()), "off"])
    assert add.endswith(f": make site PREFIX={site} ARGS=no-such.yaml")
    (site / "env" / "h100.env").write_text("nothing of ours\n")
    (*_, said, helped) = check(site, OVERLAP_POLICY="h100").stderr.splitlines()
    assert said.endswith("/env/h100.env holds no policy") and f": make site PREFIX={site}, " in helped


def test_the_prolog_of_the_page_takes_check_as_ours_does(installed, tmp_path):
    """A site's own TaskProlog, which ends with ours: docs/how-to/who-gains.md."""
    page = (Path(__file__).resolve().parents[2] / "docs/how-to/who-gains.md").read_text()
    (text,) = [block for block in page.split("```text\n") if block.startswith("#!/bin/sh\n")]
    own = tmp_path / "prolog"
    text = text.partition("```")[0].replace("/opt/overlap", str(installed)).replace("/var/spool", str(tmp_path))
    own.write_text(text)
    own.chmod(0o755)
    (tmp_path / "overlap").mkdir()
    environment = {"OVERLAP_POLICY": "observe", "PATH": os.environ["PATH"]}
    for words, stream in (([], "stdout"), (["--check"], "stderr")):
        done = subprocess.run([str(own), *words], env=environment, capture_output=True, text=True)
        said = {"stdout": done.stdout, "stderr": done.stderr}
        assert done.returncode == 0 and f"export LD_PRELOAD={installed}" in said.pop(stream)
        assert list(said.values()) == [""]


def test_a_preload_that_the_loader_complains_of_is_complained_of_once(installed):
    """By the shell that runs the script, and by none of the programs that it starts."""
    environment = {"OVERLAP_POLICY": "own", "LD_PRELOAD": "/nowhere/libforeign.so"}
    done = check(installed, **environment)
    assert (done.returncode, done.stderr.count("libforeign.so' from LD_PRELOAD cannot be preloaded")) == (0, 1)
