"""What takes more than two seconds says so on stderr, and what does not says nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.terminal import on_a_terminal

SHOWN = {"OVERLAP_PROGRESS": "on"}
SCRIPT = """
import sys, time
from pyshim.cli import ui
ui.choose("quiet" in sys.argv)
ui._PATIENCE = 0.1 if "slow" in sys.argv else 60.0
def work():
    with ui.progress("reading a.json"):
        time.sleep(1.0 if "slow" in sys.argv else 0.0)
        if "fail" in sys.argv:
            raise KeyboardInterrupt
        ui.show("answer")
    return 0
from pyshim.cli.ui import guarded
sys.exit(guarded(work))
"""


def run(clean_environment, *words, **more):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        env={**clean_environment, **SHOWN},
        capture_output=True,
        text=True,
        timeout=300,
        **more,
    )


@pytest.mark.parametrize(("words", "said"), [
    (["slow"], "overlap: reading a.json ...\n"),
    ([], ""),
    (["slow", "quiet"], ""),
])  # fmt: skip
def test_into_a_pipe_it_is_one_line(words, said, clean_environment):
    done = run(clean_environment, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "answer\n", said)


def test_a_failure_ends_it(clean_environment):
    assert run(clean_environment, "slow", "fail").returncode == 130


def screen(clean_environment, *words):
    """Return what is written to a terminal on stderr."""
    environment = {**clean_environment, **SHOWN, "TERM": "xterm-256color"}
    command = [sys.executable, "-c", SCRIPT, *words]
    return on_a_terminal(command, environment, stdout=subprocess.DEVNULL, stderr=None, stdin=None)


def test_on_a_terminal_it_goes_again(clean_environment):
    seen = screen(clean_environment, "slow")
    assert "reading a.json" in seen and "overlap: " not in seen
    assert seen.rstrip().endswith(("\x1b[2K", "\x1b[?25h"))  # the line is gone, the cursor is there again


@pytest.mark.parametrize("words", [[], ["slow", "quiet"]])
def test_a_terminal_stays_empty_where_nothing_is_to_be_said(words, clean_environment):
    assert screen(clean_environment, *words) == ""


# The command waits in the step named first, before any of its output.
SLOW = """
import importlib, sys, time
from pyshim.cli import main, ui
ui._PATIENCE = 0.1
module, _, name = sys.argv.pop(1).rpartition(".")
module = importlib.import_module(module)
quick = getattr(module, name)
def slow(*words):
    time.sleep(1.0)
    return quick(*words)
setattr(module, name, slow)
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def two_folders(tmp_path_factory, library, overlap_run):
    """Two runs with communication."""
    folder = tmp_path_factory.mktemp("reports")
    for name in ("one", "two"):
        words = ["--simulate", "h100", "-q", "--report", name, "demo-stencil"]
        assert overlap_run(*words, cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize(("step", "words", "said"), [
    ("pyshim.report.collect.collect", ["report", "one"], "making the report of one"),
    ("pyshim.report.findings.findings", ["report", "one"], "making the report of one"),
    ("pyshim.doctor.checks.run", ["doctor", "--simulate", "h100"], "checking this machine"),
])  # fmt: skip
def test_what_may_take_long_says_so(step, words, said, two_folders, clean_environment):
    done = subprocess.run(
        [sys.executable, "-c", SLOW, step, *words],
        env={**clean_environment, **SHOWN},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=two_folders,
    )
    assert done.returncode == 0 and done.stdout
    assert done.stderr == f"overlap: {said} ...\n"
