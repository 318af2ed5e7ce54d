from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from pyshim import _native
from tests.terminal import on_a_terminal

OVERLAP = (sys.executable, "-m", "pyshim")


def read(done):
    """Return the variables of --format docker."""
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if line)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "bash --posix"])
def test_sh_can_be_evaluated(overlap, clean_environment, tmp_path, library, shell):
    if not shutil.which(shell.split()[0]):
        pytest.skip(f"no {shell} here")
    done = overlap("env", "--policy", "observe", "--report", str(tmp_path / "it's a b"), env={"LD_PRELOAD": "/a.so"})
    assert done.returncode == 0, done.stderr
    name = os.readlink(tmp_path / "it's a b" / "last")
    script = done.stdout + 'printf "%s\\n" "$LD_PRELOAD" "$OVERLAP_REPORT"\n'
    env = dict(clean_environment)
    said = subprocess.run(shell.split(), input=script, env=env, capture_output=True, text=True, check=True)
    assert said.stdout == f"{_native.SHIM}:/a.so\n{tmp_path}/it%27s%20a%20b/{name}\n"


@pytest.mark.parametrize("form", ["sh", "docker"])
def test_both_formats_say_the_same(overlap, library, form):
    lines = {"sh": r"export (\w+)='([^']*)'", "docker": r"(\w+)=(.*)"}
    said = overlap("env", "--policy", "observe", "--format", form).stdout.splitlines()
    values = dict(re.fullmatch(lines[form], line).groups() for line in said)
    assert values == read(overlap("env", "--policy", "observe", "--format", "docker"))
    assert set(values) == {"LD_PRELOAD", "OVERLAP_TABLE"} and values["LD_PRELOAD"] == str(_native.SHIM)


def test_what_an_outer_run_has_set_does_not_leak_in(overlap, library):
    outer = {"OVERLAP_TABLE": "old", "OVERLAP_REPORT": "/old", "LD_PRELOAD": str(_native.SHIM)}
    values = read(overlap("env", "--policy", "observe", "--format", "docker", env=outer))
    assert set(values) == {"LD_PRELOAD", "OVERLAP_TABLE"}
    assert values["OVERLAP_TABLE"] != "old"


def test_a_line_break_never_reaches_a_file_of_lines(overlap, library):
    done = overlap("env", "--policy", "observe", "--format", "docker", env={"LD_PRELOAD": "/a.so\nX=1"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "holds a line break" in done.stderr


def test_a_missing_policy_prints_nothing(overlap):
    done = overlap("env", "--policy", "no-such")
    assert (done.stdout, "there is no policy" in done.stderr) == ("", True)
    assert done.returncode == 2


def test_an_outer_run_does_not_stand_for_a_policy_here(overlap, library):
    plain = overlap("env").stdout
    assert overlap("env", env={"OVERLAP_TABLE": "old"}).stdout == plain
    assert "OVERLAP_TABLE" in plain


def test_variables_of_a_policy_are_printed_as_overlap_run_would_set_them(overlap, tmp_path, library):
    (tmp_path / "p.yaml").write_text("policy: 1\nname: p\nenvironment: {A: it's, B: 1}\n")
    policy = ("env", "--policy", str(tmp_path / "p.yaml"), "--format", "docker")
    env = {"B": "2", "HOME": str(tmp_path)}
    values = read(overlap(*policy, env=env))
    assert set(values) == {"LD_PRELOAD", "OVERLAP_TABLE", "A"}
    assert values["A"] == "it's"
    script = overlap(*policy[:3], env=env).stdout
    said = subprocess.run(["sh"], input=script + 'printf %s "$A"', capture_output=True, text=True, check=True, env=env)
    assert said.stdout == "it's"


def test_the_library_is_where_the_place_of_use_has_it(overlap):
    path = "/opt/no/such/lib/liboverlap.so"
    done = overlap("env", "--policy", "observe", "--library", path, "--format", "docker")
    assert done.returncode == 0, done.stderr
    assert f"LD_PRELOAD={path}" in done.stdout.splitlines()


@pytest.mark.parametrize("path", ["lib/liboverlap.so", "/opt/a b/x.so", "/opt/a:b/x.so", "/opt/$ORIGIN/x.so", ""])
def test_a_path_that_a_preload_cannot_hold_is_refused(overlap, path):
    done = overlap("env", "--policy", "observe", "--library", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--library {path}: LD_PRELOAD cannot hold that" in done.stderr
    assert "help: write a path from / on" in done.stderr


def test_a_job_chooses_by_variable(overlap, library):
    def said(*options, **env):
        done = overlap("env", *options, "--format", "docker", env=env)
        assert done.returncode == 0, done.stderr
        return read(done)

    observe = said("--policy", "observe")
    assert said(OVERLAP_POLICY="observe") == observe != said()
    assert said("--policy", "observe", OVERLAP_POLICY="off") == observe
    assert said(OVERLAP_POLICY="off") == {}


def test_a_person_and_a_shell_read_the_same(overlap, library, clean_environment):
    words = ("env", "--policy", "h100,a100-paper")
    assert on_a_terminal([*OVERLAP, *words], clean_environment) == overlap(*words).stdout
