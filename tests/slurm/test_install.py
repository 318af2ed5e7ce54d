"""The folder of a site: what is in it, and who may read it."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import readers

from pyshim import __version__, _native
from pyshim.errors import OverlapError
from pyshim.policy import files as policies
from tests import in_process

TREE = Path(__file__).resolve().parent.parent.parent
INSTALL = TREE / "tools" / "deploy" / "install"


@pytest.fixture
def install(clean_environment):
    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        command = partial(runpy.run_path, str(INSTALL), run_name="__main__")
        return in_process.forked(command, list(map(str, words)), clean_environment | environment, umask=0o077)

    return run


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_holds_what_jobs_need(install, overlap, tmp_path, library):
    (tmp_path / "own.yaml").write_text("policy: 1\nname: mine\nextends: h100\n")
    prefix = tmp_path / "deep" / "overlap"
    done = install(prefix, tmp_path / "own.yaml", "--default", "mine")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"slurm.conf: TaskProlog={prefix}/libexec/task-prolog" in done.stderr
    made = everything(prefix)
    names = ["auto", "mine", *policies.names({})]
    modulefiles = [f"modulefiles/{name}/{__version__}" for name in ("overlap", "overlap-preload")]
    files = ["default", "libexec/task-prolog", "lib/liboverlap.so", *modulefiles]
    assert set(made) == {*files, *(f"env/{name}.env" for name in names)}
    for name in modulefiles:
        assert str(prefix).encode() in made[name] and b"@PREFIX@" not in made[name]
    assert made["default"] == b"mine\n"
    assert made["lib/liboverlap.so"] == _native.SHIM.read_bytes()
    assert made["libexec/task-prolog"] == (TREE / "tools/deploy/task-prolog").read_bytes()
    for name in ("auto", "mi300x", "mine"):
        policy = str(tmp_path / "own.yaml") if name == "mine" else name
        words = ("env", "--policy", policy, "--library", f"{prefix}/lib/liboverlap.so", "--format", "docker")
        lines = [f"export {line}\n" for line in overlap(*words).stdout.splitlines()]
        assert made[f"env/{name}.env"].decode() == "".join(lines)


def test_everybody_may_read_it(install, tmp_path, library):
    prefix = tmp_path / "deep" / "overlap"
    assert install(prefix).returncode == 0
    for path in [prefix.parent, prefix, *prefix.rglob("*")]:
        wanted = 0o755 if path.is_dir() or path.name in ("task-prolog", "liboverlap.so") else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_again_it_is_the_same_and_what_is_not_asked_for_goes(install, tmp_path, library):
    (tmp_path / "own.yaml").write_text("policy: 1\nname: mine\n")
    prefix = tmp_path / "overlap"
    assert install(prefix).returncode == 0
    first = everything(prefix)
    old = [prefix / "modulefiles" / name / "0.0.1" for name in ("overlap", "overlap-preload")]
    for path in old:
        shutil.copy(path.with_name(__version__), path)
    done = install(prefix, tmp_path / "own.yaml", "--default", "h100")
    assert everything(prefix).keys() - first.keys() == {"default", "env/mine.env"}
    done = install(prefix)
    assert everything(prefix) == first
    assert f"removed {prefix}/env/mine.env" in done.stderr and f"removed {prefix}/default" in done.stderr


def test_what_others_have_put_there_stays(install, tmp_path, library):
    prefix = tmp_path / "overlap"
    assert install(prefix).returncode == 0
    files = ("overlap/.version", "overlap/.modulerc.lua", "overlap/old/1.0", "overlap-site/1.0", "other/1.0", "x")
    theirs = {f"modulefiles/{name}": b"theirs" for name in files}
    for name, data in theirs.items():
        (prefix / name).parent.mkdir(exist_ok=True)
        (prefix / name).write_bytes(data)
    chosen = prefix / "modulefiles" / "overlap" / "default"
    chosen.symlink_to(__version__)  # as Lmod is told of a version
    first = everything(prefix)
    (prefix / "env" / "a.env").mkdir()
    done = install(prefix)
    assert (done.returncode, everything(prefix)) == (0, first), done.stderr
    assert first.items() >= theirs.items() and "removed" not in done.stderr
    assert chosen.is_symlink()


THEIRS = ["env/mine.env", "default", "lib/libother.so", "libexec/task-prolog", "halo.c", ".hidden", "deep/in/it/x"]


@pytest.mark.parametrize("theirs", THEIRS)
def test_a_folder_of_somebody_else_is_refused_and_stays_as_it_is(theirs, install, tmp_path, library):
    """Whatever is in there: nodes and containers would get it with ours."""
    (tmp_path / theirs).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / theirs).write_text("theirs")
    done = install(tmp_path)
    assert done.returncode == 2 and f"holds {theirs.partition('/')[0]}, which no earlier run made" in done.stderr
    assert f"help: name a folder of its own: PREFIX={tmp_path}/overlap-{__version__}" in done.stderr
    assert everything(tmp_path) == {theirs: b"theirs"}


def test_a_folder_without_a_file_is_taken(install, tmp_path, library):
    """As an administrator makes it, or as a new file system is."""
    (tmp_path / "overlap" / "lost+found").mkdir(parents=True)
    assert install(tmp_path / "overlap").returncode == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to("/nowhere")
    done = install(tmp_path / "other")
    assert done.returncode == 2 and "holds link, which no earlier run made" in done.stderr


@pytest.mark.parametrize("words", ["o", "./o", "../x/o", "~/o"])
def test_a_relative_path_is_refused_and_the_whole_one_is_named(words, install, tmp_path, library, monkeypatch):
    """No node could find it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = install(words, HOME="/srv/me")
    whole = os.path.abspath(words) if "~" not in words else "/srv/me/o"
    assert done.returncode == 2 and "PREFIX must be a whole path, the same on every node, and " in done.stderr
    assert f"help: its whole path: PREFIX={whole}\n" in done.stderr
    assert not os.path.exists(whole)


def test_what_a_run_that_failed_has_left_is_no_folder_of_somebody_else(install, tmp_path, library):
    prefix = tmp_path / "overlap"
    full = f"ulimit -f 64; exec {shlex.join([sys.executable, str(INSTALL), str(prefix)])}"
    done = subprocess.run(["sh", "-c", full], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"{prefix} cannot be written" in done.stderr, done.stderr
    assert (prefix / "lib").exists()
    assert install(prefix).returncode == 0


def test_a_program_that_runs_keeps_the_library_it_has(install, tmp_path, library):
    """Written in place, the library would change under whoever has it mapped."""
    prefix = tmp_path / "overlap"
    install(prefix)
    with (prefix / "lib/liboverlap.so").open("rb") as held:
        install(prefix)
        assert os.fstat(held.fileno()).st_ino != (prefix / "lib/liboverlap.so").stat().st_ino
    assert not list(prefix.rglob(".*"))


def test_the_command_of_the_page_works_as_it_is_written(install, tmp_path, library, clean_environment):
    page = (TREE / "docs/how-to/deploy.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("    sudo make site ")]
    words = shlex.split(line, comments=True)
    make = ["make", "--dry-run", "--no-print-directory", *words[2:]]
    shown = subprocess.run(make, cwd=TREE, env=clean_environment, capture_output=True, text=True, check=True).stdout
    _, installer, folder, *rest = shlex.split(shown.splitlines()[-1])
    assert (installer, folder) == ("tools/deploy/install", "/opt/overlap-1") and rest[-1] == "site.yaml"
    (tmp_path / "site.yaml").write_text("policy: 1\nname: mine\nextends: h100\n")
    done = install(tmp_path / "made", *rest[:-1], tmp_path / "site.yaml")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made/env/mine.env").exists() and not (tmp_path / "made/default").exists()


def test_the_lines_for_configurations_name_the_symlink(install, tmp_path, library):
    """An upgrade exchanges the symlink, so no configuration may name the folder of one version."""
    done = install(tmp_path / "overlap-0.3.0")
    assert f"slurm.conf: TaskProlog={tmp_path}/overlap/libexec/task-prolog\n" in done.stderr
    assert f"modules: module use {tmp_path}/overlap/modulefiles\n" in done.stderr
    assert f": ln -sfn overlap-0.3.0 {tmp_path}/overlap\n" in done.stderr
    assert "ln -sfn" not in install(tmp_path / "plain").stderr


def test_what_is_set_for_the_administrator_is_not_for_jobs(install, tmp_path, library):
    own = {"LD_PRELOAD": "/lib/x.so", "OVERLAP_POLICY": "off", "OVERLAP_RUN": "off", "TORCH_NCCL_HIGH_PRIORITY": "0"}
    own["OVERLAP_REPORT"] = str(tmp_path)
    install(tmp_path / "a")
    install(tmp_path / "b", **own)
    for name in ("auto", "mi300x"):
        one, two = (readers.exports((tmp_path / x / "env" / f"{name}.env").read_text()) for x in "ab")
        assert one.pop("LD_PRELOAD") == f"{tmp_path}/a/lib/liboverlap.so"
        assert two.pop("LD_PRELOAD") == f"{tmp_path}/b/lib/liboverlap.so"
        assert one == two


def test_a_value_that_a_prolog_leaves_out_is_said(install, tmp_path, library):
    (tmp_path / "own.yaml").write_text("policy: 1\nname: mine\nenvironment: {NCCL_X: a b, MY_OWN: 1, NCCL_Y: fine}\n")
    done = install(tmp_path / "overlap", tmp_path / "own.yaml")
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "left out" in line]
    assert [line.split()[1:4] for line in said] == [["policy", "mine:", "MY_OWN"], ["policy", "mine:", "NCCL_X"]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}/a b"], "LD_PRELOAD cannot hold the path"),
        (["{}/a:b"], "LD_PRELOAD cannot hold the path"),
        (["{}/o", "--default", "no-such"], "--default: there is no policy 'no-such'"),
        (["{}/o", "{}/none.yaml"], "none.yaml"),
        (["{}/o", "{}/wrong.yaml"], "wrong.yaml:3:1: error[unknown-key]"),
        (["{}/o", "{}/h100.yaml"], "'h100' is taken"),
        (["{}/o", "{}/off.yaml"], "jobs cannot ask for 'off'"),
        (["{}/o", "{}/spaces.yaml"], "`my own` is not a name"),
        (["{}/o", "{}/dot.yaml"], "`.x` is not a name"),
        (["{}/file/o"], "cannot be written"),
        (["{}/file"], "file is a file"),
        ([], "the following arguments are required: PREFIX"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(install, tmp_path, words, sentence, library):
    for name, text in {
        "h100": "name: h100",
        "off": 'name: "off"',
        "spaces": "name: my own",
        "dot": "name: .x",
        "wrong": "name: x\nx: y",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(f"policy: 1\n{text}\n")
    (tmp_path / "file").touch()
    done = install(*(word.format(tmp_path) for word in words))
    assert done.returncode in (1, 2)
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "o").exists()


def test_a_folder_that_cannot_be_written_has_a_next_step(install, tmp_path, library):
    (tmp_path / "file").touch()
    for prefix, why in (
        ("/proc/x", "No such file or directory (/proc/x)"),
        (f"{tmp_path}/file/o", f"Not a directory ({tmp_path}/file/o)"),
    ):
        done = install(prefix)
        assert done.returncode == 1
        assert done.stderr == (
            f"overlap: error: {prefix} cannot be written: {why}\n"
            "overlap: help: name a folder that this user may write to, on a disk with room: "
            f"PREFIX=/opt/overlap-{__version__}\n"
        )


def test_the_root_folder_is_named_with_one_slash(install, library):
    done = install("/")
    assert done.returncode == 2 and "which no earlier run made" in done.stderr
    assert done.stderr.endswith(f"overlap: help: name a folder of its own: PREFIX=/overlap-{__version__}\n")


def test_a_folder_from_which_jobs_get_nothing_has_the_help_of_its_task_prolog(install, tmp_path, library):
    prefix = tmp_path / "overlap"
    assert install(prefix).returncode == 0
    made = runpy.run_path(str(INSTALL), run_name="install")
    with pytest.raises(OverlapError) as caught:
        made["check"](prefix, ["auto", "nope"])
    assert "OVERLAP_POLICY=nope" in caught.value.sentence and "there is no such policy" in caught.value.sentence
    assert caught.value.hint.startswith("known: ")
    (prefix / "libexec/task-prolog").write_text("#!/bin/sh\necho overlap: broken >&2\nexit 1\n")
    with pytest.raises(OverlapError) as caught:
        made["check"](prefix, ["auto"])
    assert caught.value.sentence.endswith(": broken")
    assert caught.value.hint == f"jobs would get nothing from {prefix}: name another PREFIX, or run this again"


def test_make_asks_for_the_folder():
    done = subprocess.run(["make", "-s", "site"], cwd=TREE, capture_output=True, text=True)
    assert done.returncode == 2 and "make site PREFIX=/opt/overlap" in done.stderr


def test_make_makes_it(tmp_path):
    command = ["make", "-s", "site", f"PREFIX={tmp_path}/o", "ARGS=--default observe"]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "default").read_text() == "observe\n"
