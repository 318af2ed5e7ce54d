"""How a program is ended with all that it has started, and what is read from its output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pyshim.errors import OverlapError
from pyshim.tune import measure
from pyshim.tune.measure import Metric, TimedRun
from pyshim.tune.search import duration

# Ignores SIGTERM, as does a child in a process group of its own; both would run on.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
print(os.getpid(), os.getsid(0), flush=True)
time.sleep(40)
"""
POLITE = """
import signal, sys, time
def end(*_): print("saved", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(1000)
"""

TIME = Metric()


def run(tmp_path: Path, code: str, patience: float = 60, metric: Metric = TIME) -> tuple[TimedRun, str]:
    file = tmp_path / "output.txt"
    found = measure.run((sys.executable, "-c", code), {}, str(file), patience, metric)
    return found, file.read_text()


def test_a_program_that_is_stubborn_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "PATIENCE", 2)
    begin = time.monotonic()
    found, text = run(tmp_path, STUBBORN, 2)
    assert found.late and found.wrong == "took too long" and time.monotonic() - begin < 30
    sessions = {int(line.split()[1]) for line in text.splitlines()}
    assert len(text.splitlines()) == 2 and len(sessions) == 1
    assert measure._session(sessions.pop()) == []


def test_a_program_may_end_by_itself_first(tmp_path: Path) -> None:
    found, text = run(tmp_path, POLITE, 2)
    assert found.late and text == "ready\nsaved\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_program_is_started_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    pids = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            pids.append(self.pid)
            os.kill(os.getpid(), number)

    def take(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Popen)
    before = signal.signal(number, take)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "import time; time.sleep(40)")
        assert signal.getsignal(number) is take
    finally:
        signal.signal(number, before)
    assert len(pids) == 1 and measure._session(pids[0]) == []


LEAVES = """
import os, time
if os.fork() == 0:
    {}
    time.sleep(40)
print(os.getpid())
time.sleep(0.3)
"""


@pytest.mark.parametrize("first", ["pass", "os.setpgid(0, 0)"])
def test_what_a_program_leaves_running_is_ended(tmp_path: Path, first: str) -> None:
    """Else it takes the GPU from the next run."""
    begin = time.monotonic()
    found, text = run(tmp_path, LEAVES.format(first))
    assert found.value == found.seconds < 5 and time.monotonic() - begin < 9
    assert measure._session(int(text)) == []


def test_a_signal_in_that_moment_ends_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_MOMENT", 60.0)
    code = "import os, signal, time\nprint(os.getpid(), flush=True)\nif os.fork() == 0: "
    code += "time.sleep(0.5); os.kill(int(os.environ['OUR']), signal.SIGINT); time.sleep(40)"
    file = tmp_path / "output.txt"
    with pytest.raises(KeyboardInterrupt):
        measure.run((sys.executable, "-c", code), {"OUR": str(os.getpid())}, str(file), 60, TIME)
    assert measure._session(int(file.read_text().split()[0])) == []


def test_what_comes_just_after_the_end_is_read(tmp_path: Path) -> None:
    code = "import os, time\nif os.fork() == 0: time.sleep(0.3); print('step 3')"
    assert run(tmp_path, code, metric=Metric(r"step (\d)"))[0].value == 3


def test_the_time_of_a_run_is_not_that_of_a_poll(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "import time; time.sleep(0.3)")
    assert found.value == found.seconds >= 0.3


def test_stdout_and_stderr_are_both_read(tmp_path: Path) -> None:
    code = "import sys; print('step 1'); print('step 3', file=sys.stderr); print('step 2')"
    found, text = run(tmp_path, code, metric=Metric(r"step (\d)", same="step"))
    assert found.value == 2 and found.results and "step 3" in text


@pytest.mark.parametrize(
    ("metric", "text", "expected"),
    [
        (Metric(r"^t=(\S+)"), "t=1e-3\nx t=9\nt=3e-3\n", 2e-3),
        (Metric(r"\d+"), "9 8 7 6 5 4 3 2 1 10", 5),  # the first tenth is left out
        (Metric(r"\d+", skip=0), "9 1 2", 2),
        (Metric(r"\d+", skip=1), "9 1 2", 1.5),
        (Metric(r"(warm )?step (\d)"), "step 3\n", 3),
        (Metric(r"time (\d)|step (\d)"), "time 1\nstep 3\nstep 4", 3),
    ],
)
def test_a_metric_is_the_median_of_what_is_printed(metric: Metric, text: str, expected: float) -> None:
    assert metric.read(text) == expected


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1 nan 2 3 4"])
def test_only_positive_numbers_can_be_compared(text: str) -> None:
    with pytest.raises(ValueError, match="positive"):
        Metric(r"\S+").read(text)


def test_the_match_that_is_no_number_is_named() -> None:
    with pytest.raises(ValueError, match="matches 'x', which is no number"):
        Metric(r"\S+").read("1 x 2")


def test_results_are_the_same_or_not() -> None:
    same = Metric(same=r"energy \S+")
    assert same.results("energy 1\ntime 2\nenergy 3") == same.results("time 9\nenergy 1\nenergy 3")
    assert len({same.results(text) for text in ("energy 1", "energy 2", "energy 1\nenergy 1", "")}) == 4


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    for command, file in ((("/nowhere/x",), "output.txt"), (("true",), "no/folder")):
        with pytest.raises(OverlapError, match="No such file"):
            measure.run(command, {}, str(tmp_path / file), 1, Metric())


def test_a_process_that_has_ended_is_not_waited_for() -> None:
    """Until it is waited for, it is still there."""
    with subprocess.Popen([sys.executable, "-c", "print()"], stdout=subprocess.PIPE, start_new_session=True) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert os.getsid(process.pid) == process.pid and measure._session(process.pid) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (9.94, "9.9 s"),
        (10, "10 s"),
        (90, "90 s"),
        (120, "2 min"),
        (7180, "2 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
