"""`overlap demo`: what it answers for every GPU, what it draws, and where it runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native
from pyshim.demo import arms
from pyshim.demo.picture import report, style_for
from pyshim.policy.gpus import known

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def call() -> Call:
    """`overlap demo`, with a driver only where the test brings one."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        dropped = ("LD_LIBRARY_PATH", "NO_COLOR", "COLUMNS")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return subprocess.run(
            [sys.executable, "-m", "pyshim", "demo", *words],
            env={**kept, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("gpu", known(), ids=lambda gpu: gpu.key)
def test_every_simulated_gpu_has_an_answer(call: Call, gpu: Any) -> None:
    found = answer(call("--gpu", gpu.key, "--json"))
    assert (found["gpu"], found["simulated"], found["simulate"]) == (gpu.name, True, gpu.key)
    change = 100 * (found["default_ms"] / found["bare_ms"] - 1)
    assert found["change_percent"] == pytest.approx(change)
    assert found["launches"] == 32
    if gpu.vendor == "amd":
        assert (change, found["raised"]) == (0, 0)
        assert found["gained"].startswith("nothing: no stream was raised, because HIP fixes a stream's priority")
    else:
        assert change < -0.5 and found["raised"] >= 16
        said = r"\d+\.\d % less time an iteration \(simulated\): the stream of the exchange was raised; the .* of \d+"
        assert re.fullmatch(said, found["gained"])


def test_the_gpu_is_named_as_simulate_takes_it(call: Call) -> None:
    found = answer(call("--gpu", "H100,2", "--json"))
    assert (found["simulate"], found["change_percent"] < 0) == ("h100,2", True)


PICTURE = """\
overlap demo on a simulated NVIDIA H100 80GB HBM3: every number
is simulated.
A stencil: each iteration sweeps the interior (1, 2) on one
stream, and on another one the boundary planes (b), which a
collective then exchanges with the neighbours (x). ... is ready,
and waits behind the interior.

bare                             simulated 0.113 ms an iteration
  compute  1######################    2======================
  halo     ....................b##x###....................b==x==
with overlap-run                 simulated 0.099 ms an iteration
  compute  1######################2======================
  halo     ...b###x####           ...b===x====

gained: 12.6 % less time an iteration (simulated): the stream of
the exchange was raised; the boundary planes wait 11 us instead
of 87.
next: overlap doctor PROGRAM, then overlap-run --report run1
PROGRAM, on a machine with a GPU
"""


def test_the_picture_and_that_an_outer_run_does_not_reach_it(call: Call) -> None:
    outer = {"OVERLAP_RUN": "off", "SIMGPU_COSTS": "/nowhere", "OVERLAP_TABLE": "x"}
    done = call("--gpu", "h100", COLUMNS="64", PYTHONUTF8="0", PYTHONIOENCODING="ascii", **outer)
    assert (done.returncode, done.stdout) == (0, PICTURE)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_fits_the_terminal_and_colours_change_nothing_else(call: Call, width: int) -> None:
    plain = call("--gpu", "a100", COLUMNS=str(width)).stdout
    assert max(map(len, plain.splitlines())) <= width and "█" in plain and "\x1b" not in plain
    coloured = call("--gpu", "a100", COLUMNS=str(width), FORCE_COLOR="1").stdout
    assert coloured != plain and re.sub(r"\x1b\[[0-9]*m", "", coloured) == plain


@pytest.mark.parametrize(
    "words", [["--gpu", "h10"], ["--gpu", "h100:first"], ["--gpu", "h100,99"], ["--real"], ["--rule", "hold"]]
)
def test_wrong_words_are_usage(call: Call, words: list[str]) -> None:
    done = call(*words)
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr


# ---- On the GPU of the machine ----


def driver(folder: Path, state: int) -> dict[str, str]:
    """A driver whose cuInit returns `state`, and whose other functions do nothing."""
    names = re.findall(r"X\((\w+),", (ROOT / "tools/demo/stencil_api.h").read_text())
    source = "".join(f"int {name}() {{ return {state if name == 'cuInit' else 1}; }}\n" for name in names)
    (folder / "driver.c").write_text(source)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", "libcuda.so.1", "driver.c"], cwd=folder, check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


def test_a_driver_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(_native.SIMULATED_DRIVER, tmp_path)
    monkeypatch.setattr(arms, "REAL_STEPS", 10)
    lines = report(arms.measure({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}), None, 100, style_for("utf-8", False))
    said = " ".join(lines)
    assert lines[0] == "overlap demo on NVIDIA H100 80GB HBM3: medians, measured by events."
    assert "simulated" not in said and re.search(r"gained: \d+\.\d % less time .*bare runs differ by 0.0 %", said)
    halo = [line for line in lines if line.startswith("  halo ")]
    assert len(halo) == 2 and all(line.count("b") == 2 and "·" not in line for line in halo)


def test_an_error_of_a_driver_is_an_error(call: Call, tmp_path: Path) -> None:
    done = call(**driver(tmp_path, 999))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("overlap: error: cuInit: unknown error (999)\n")
    assert "overlap demo --gpu h100 simulates a GPU" in done.stderr


def test_a_driver_without_a_gpu_is_no_error(call: Call, tmp_path: Path) -> None:
    done = call(COLUMNS="100", **driver(tmp_path, 100))
    assert done.returncode == 0, done.stderr
    assert "a simulated NVIDIA H100 80GB HBM3 (there is no GPU of NVIDIA here)" in done.stdout.replace("\n", " ")


def test_nothing_of_ours_reaches_an_arm() -> None:
    base = {
        "PATH": "/bin",
        "OVERLAP_RUN": "off",
        "SIMGPU_COSTS": "x",
        "LD_PRELOAD": f"/opt/{_native.SHIM.name}:/opt/libjemalloc.so",
        "LD_LIBRARY_PATH": f"{_native.SIMULATED_DRIVER.parent}/hip7:{_native.SIMULATED_DRIVER.parent}:/opt/lib",
    }
    assert arms.clean(base) == {"PATH": "/bin", "LD_PRELOAD": "/opt/libjemalloc.so", "LD_LIBRARY_PATH": "/opt/lib"}
    assert arms.clean({"LD_PRELOAD": str(_native.SHIM)}) == {}
