"""child.run(): processes that leave others running, write more than a pipe holds, hang, crash or do not exist."""

from __future__ import annotations

import os
import sys

import psutil
import pytest

from pyshim.doctor import child


def ask(source: str, seconds: float = 20) -> child.Outcome:
    return child.run([sys.executable, "-I", "-S", "-c", source, "{answer}"], os.environ, seconds)


def test_it_answers() -> None:
    outcome = ask("import os, sys; os.write(int(sys.argv[1]), b'yes'); print('well', file=sys.stderr); sys.exit(3)")
    assert outcome == (3, b"yes", "well\n")
    assert (outcome.how, outcome.last) == ("ended with status 3", "well")


def test_what_it_leaves_running_is_not_waited_for() -> None:
    """A driver may start a daemon, which inherits all descriptors."""
    source = (
        "import os, subprocess, sys; left = subprocess.Popen(['sleep', '60'], close_fds=False, start_new_session=True);"
        "os.write(int(sys.argv[1]), str(left.pid).encode()); left.returncode = 0"
    )
    outcome = ask(source)
    left = psutil.Process(int(outcome.answer))
    assert outcome.status == 0 and left.name() == "sleep" and left.status() != psutil.STATUS_ZOMBIE
    left.kill()


def test_more_than_a_pipe_holds() -> None:
    outcome = ask(
        "import sys; sys.stderr.write('x' * 3_000_000 + chr(10)); import os; os.write(int(sys.argv[1]), b'y')"
    )
    assert (outcome.status, outcome.answer, len(outcome.stderr)) == (0, b"y", 1 << 20)


def test_one_that_hangs_is_killed() -> None:
    source = "import os, sys, time; os.write(int(sys.argv[1]), str(os.getpid()).encode()); time.sleep(300)"
    tries = (ask(source, seconds) for seconds in (0.5, 5, 50))  # on a busy machine half a second is too short to begin
    outcome = next(outcome for outcome in tries if outcome.answer)
    assert outcome.status is None and outcome.how == "was killed: it did not answer in time"
    assert not psutil.pid_exists(int(outcome.answer))


def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    ask("pass")
    with pytest.raises(OSError):
        child.run(["/nowhere/program"], {}, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_signal() -> None:
    assert ask("import os; os.kill(os.getpid(), 9)").how == "died of SIGKILL"
