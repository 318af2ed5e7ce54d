"""Named pipes, sockets and devices where files are expected: one finding each, at once."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

POLICY = "policy: 1\nname: good\n"
SECONDS = 300  # a command that waits, waits for ever


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "policies"
    made.mkdir()
    (made / "good.yaml").write_text(POLICY)
    os.mkfifo(made / "pipe.yaml")
    (made / "link.yaml").symlink_to("pipe.yaml")
    (made / "zero.yaml").symlink_to("/dev/zero")
    here = os.getcwd()
    os.chdir(made)  # a socket's path may have 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("socket.yaml")
    finally:
        os.chdir(here)
    return made


ODD = ("link", "pipe", "socket", "zero")


def test_check_of_a_folder(overlap, folder):
    done = overlap("policy", "check", str(folder), timeout=SECONDS)
    assert done.returncode == 1
    for name in ODD:
        file = folder / f"{name}.yaml"
        assert done.stdout.count(f"{file}: ") == 2, done.stdout  # the finding, and the count
        assert f"{file}: error[not-a-file]: this is a pipe, a socket or a device" in done.stdout
    assert f"{folder}/good.yaml: ok" in done.stdout


@pytest.mark.parametrize("name", ODD)
def test_one_of_them_by_its_name(overlap, overlap_run, folder, name):
    file = str(folder / f"{name}.yaml")
    assert overlap("policy", "check", file, timeout=SECONDS).returncode == 1
    done = overlap_run("--policy", file, "true", timeout=SECONDS)
    assert (done.returncode, done.stderr.count("\n")) == (125, 2), done.stderr
    assert "pipe, a socket or a device" in done.stderr
    for command in ((overlap, "policy", "show", name), (overlap_run, "--policy", name, "true")):
        done = command[0](*command[1:], env={"OVERLAP_POLICY_PATH": str(folder)}, timeout=SECONDS)
        assert done.returncode in (1, 125) and "there is no policy" in done.stderr, done.stderr
        assert f"did you mean `{name}`" not in done.stderr


def test_what_a_shell_substitutes_is_read(overlap):
    read, write = os.pipe()
    os.write(write, POLICY.encode())
    os.close(write)
    try:
        done = overlap("policy", "check", f"/dev/fd/{read}", pass_fds=(read,), timeout=SECONDS)
    finally:
        os.close(read)
    assert (done.returncode, done.stdout) == (0, f"/dev/fd/{read}: ok, 0 rules\n")


@pytest.mark.parametrize("kind", ["so", "cubin", "json", "json.gz", "sqlite"])
def test_kernels_and_traces(overlap, tmp_path, kind):
    file = tmp_path / f"pipe.{kind}"
    os.mkfifo(file)
    for arguments in (["explain", str(file)], ["explain", str(tmp_path)], ["report", str(file)]):
        assert overlap(*arguments, timeout=SECONDS).returncode in (1, 2)


@pytest.mark.parametrize("writer", [False, True])
def test_a_list_of_hosts_that_is_a_pipe_is_the_launchers(overlap_run, tmp_path, writer):
    (tmp_path / "deepspeed").write_text(f"#!{sys.executable}\nprint(open('{tmp_path}/hosts').read())\n")
    (tmp_path / "deepspeed").chmod(0o755)
    os.mkfifo(tmp_path / "hosts")
    writing = threading.Thread(target=(tmp_path / "hosts").write_text, args=("a\nb\n",))
    dry = ["--dry-run"]
    if writer:
        writing.start()
        dry = []
    done = overlap_run(
        "--quiet", *dry, str(tmp_path / "deepspeed"), "--hostfile", str(tmp_path / "hosts"), timeout=SECONDS
    )
    assert (done.returncode, done.stdout) == (0, "a\nb\n\n" if writer else ""), done.stderr
