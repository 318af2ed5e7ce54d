"""Programs on this machine that hand the environment on, or do not; and the terminal."""

from __future__ import annotations

import os
import pty
import sys

import debian
import pytest
from seen import OVERLAP_RUN

OUTSIDE = (OVERLAP_RUN, "--policy", "observe")


@pytest.mark.parametrize(
    "words",
    [
        ("env", "A=1"),
        ("nohup",),
        ("nice", "-n", "1"),
        ("timeout", "60"),
        ("setsid", "--wait"),
        ("stdbuf", "-oL"),
        ("setpriv", "--no-new-privs"),
        ("bash", "-c", '"$@"', "bash"),
        ("xargs", "-a", "/dev/null"),
    ],
    ids=lambda words: words[0],
)
def test_these_hand_it_on(run, show, words):
    done = run(*OUTSIDE, *words, *show)
    assert (done.status, done.mapped) == (0, [True]), done.stderr
    assert "without this environment" not in done.stderr


@pytest.mark.parametrize("words", [("env", "-i"), ("env", "-u", "LD_PRELOAD"), ("nohup", "env", "LD_PRELOAD=")])
def test_what_is_said_about_a_new_environment_helps(run, show, words):
    done = run(*OUTSIDE, *words, *show)
    assert (done.status, done.mapped) == (0, [False])
    # PYTHONPATH is what lets the program of this test find our package.
    path = f"PYTHONPATH={os.environ.get('PYTHONPATH', '.')}"
    instead = run(*words, *([path] if words[0] == "env" else []), *done.advice, *show)
    assert instead.mapped == [True], instead.stderr


def test_a_login_begins_anew(run):
    if os.geteuid() != 0:
        pytest.skip("needs root, who may become somebody without a password")
    shell = "grep -c liboverlap.so /proc/self/maps"
    done = run(*OUTSIDE, "su", "-", "root", "-c", shell)
    assert done.stdout == "0\n"
    assert "su with - starts programs without this environment: write " in done.stderr
    assert int(run("su", "-", "root", "-c", f"{OVERLAP_RUN} --quiet {shell}").stdout) > 0
    plain = run(*OUTSIDE, "su", "root", "-c", shell)
    assert (int(plain.stdout) > 0, "without this environment" in plain.stderr) == (True, False)


def test_sudo(run):
    try:
        debian.install(["sudo"], ["sudo"])
    except debian.Missing as reason:
        pytest.skip(str(reason))
    shell = ("grep", "-c", "liboverlap.so", "/proc/self/maps")
    for option in ("-n", "-nE"):
        done = run(*OUTSIDE, "sudo", option, *shell)
        assert done.stdout == "0\n", done.stderr
        assert int(run("sudo", option, *done.advice, *shell).stdout) > 0
        assert done.stderr.count("overlap: ") == 1 + done.stderr.count("no GPU driver"), "one line about sudo"


def test_interrupted_from_a_terminal_the_program_counts_one(clean_environment, tmp_path):
    """^C goes to every process of the foreground."""
    program = (
        "import signal, sys, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\nend = time.monotonic() + 300\n"
        "while not seen and time.monotonic() < end: time.sleep(0.01)\n"
        "time.sleep(0.3); print('seen', len(seen), flush=True); sys.exit(5)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        command = [OVERLAP_RUN, "--quiet", sys.executable, "-c", program]
        os.execve(command[0], command, clean_environment)
    said = read = b""
    while True:
        try:
            read = os.read(terminal, 1000)
        except OSError:  # nobody is at the other end any more
            break
        if not read:
            break
        said += read
        if said == b"ready\r\n":
            os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert b"seen 1\r\n" in said, said
    assert os.waitstatus_to_exitcode(status) == 5
