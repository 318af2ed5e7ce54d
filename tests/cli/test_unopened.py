"""What a run says where the program never used the simulated GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Call = Callable[..., "CompletedProcess[str]"]
SAID = "overlap: the program never used the simulated GPU ("


def lines(done: CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith(SAID)]


@pytest.mark.parametrize("program", [["true"], [sys.executable, "-c", "print()"], ["sh", "-c", "exec true"]])
def test_it_is_said_at_the_end(overlap_run: Call, library: object, program: list[str]) -> None:
    done = overlap_run("--simulate", "H200,2", *program)
    assert done.returncode == 0
    assert lines(done) == [f"{SAID}h200,2), so there was nothing to do; `demo-stencil` in its place does use it"]
    assert done.stderr.splitlines()[-1] == lines(done)[0]


def test_a_program_for_a_driver_of_another_vendor(overlap_run: Call, library: object) -> None:
    code = "import ctypes; raise SystemExit(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    done = overlap_run("--simulate", "mi250x", sys.executable, "-c", code)
    assert done.returncode == 100
    assert len(lines(done)) == 1


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(["demo-stencil"], id="it used it"),
        pytest.param(["sh", "-c", "demo-stencil; exit 0"], id="a child used it"),
        pytest.param([sys.executable, "-c", "import subprocess as s; s.run(['true'])"], id="a child may have used it"),
        pytest.param([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"], id="it counted"),
    ],
)
def test_it_is_not_said_where_it_may_be_wrong(overlap_run: Call, library: object, program: list[str]) -> None:
    done = overlap_run("--simulate", "h100", *program)
    assert (done.returncode, lines(done)) == (0, [])


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        pytest.param(["--quiet", "--simulate", "h100"], {}, id="quiet"),
        pytest.param(["--policy", "observe"], {}, id="a real GPU"),
        pytest.param(
            ["--simulate", "h100"], {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, id="another rank than the first"
        ),
        pytest.param(["--simulate", "h100"], {"OVERLAP_RUN": "off"}, id="off"),
    ],
)
def test_it_is_not_said_to_those_who_did_not_ask(
    overlap_run: Call, library: object, words: list[str], environment: dict[str, str]
) -> None:
    done = overlap_run(*words, "true", env=environment)
    assert (done.returncode, done.stdout, lines(done)) == (0, "", [])
