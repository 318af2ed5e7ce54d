"""How a program is ended with all that it has started, and what is read from its output."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from pyshim.errors import OverlapError
from pyshim.tune import measure
from pyshim.tune.measure import Metric, Run

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


def run(tmp_path: Path, code: str, patience: float = 60, metric: Metric = TIME) -> tuple[Run, str]:
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
    ],
)
def test_a_metric_is_the_median_of_what_is_printed(metric: Metric, text: str, expected: float) -> None:
    assert metric.read(text) == expected


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf"])
def test_only_positive_numbers_can_be_compared(text: str) -> None:
    with pytest.raises(ValueError, match="positive"):
        Metric(r"\S+").read(text)


def test_results_are_the_same_or_not() -> None:
    same = Metric(same=r"energy \S+")
    assert same.results("energy 1\ntime 2\nenergy 3") == same.results("time 9\nenergy 1\nenergy 3")
    assert len({same.results(text) for text in ("energy 1", "energy 2", "energy 1\nenergy 1", "")}) == 4


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    for command, file in ((("/nowhere/x",), "output.txt"), (("true",), "no/folder")):
        with pytest.raises(OverlapError, match="No such file"):
            measure.run(command, {}, str(tmp_path / file), 1, Metric())
