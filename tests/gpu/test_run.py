"""tools/gpu/run: what it writes of a set that was cut, that failed, or that lacks something. Sets are made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tools.gpu import machine, runner
from tools.gpu.sets import Set, Step

ROOT = Path(__file__).resolve().parents[2]
GPU = ROOT / "tools" / "gpu"
HEAD = {"begun", "commit", "gpus", "driver", "nvcc", "torch", "cuda", "nccl"}


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As a user calls it, on a machine without a GPU: nvidia-smi is not found."""
    words = [sys.executable, str(GPU / "run"), *arguments]
    environment = {**os.environ, "PATH": "/nowhere", **variables}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_what_is_missing_is_said_and_is_a_finding(tmp_path: Path) -> None:
    done = command("launch-latency", "profilers", "--out", str(tmp_path))
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("overlap: launch-latency: skipped: it needs 1 GPU (0 here)")
    assert second.startswith("overlap: profilers: skipped: it needs 1 GPU (0 here)")
    assert not list(tmp_path.glob("*.json"))


# ---- Sets that are made up ----


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """ran(sets..., limit=, rounds=) -> (exit status, {set: its file})."""
    monkeypatch.setattr(runner, "missing", lambda one: [])
    monkeypatch.setattr(runner, "architecture", lambda: "sm_90")
    monkeypatch.setattr(machine, "describe", lambda: dict.fromkeys(HEAD))

    def run(*chosen: Set, limit: float = 30, rounds: int | None = None) -> tuple[int, dict[str, Any]]:
        place = runner.Place(tmp_path, tmp_path / "bin", os.environ, rounds)
        (tmp_path / "work").mkdir(exist_ok=True)
        status = runner.run(chosen, place, limit, tmp_path / "work")
        files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")}
        return status, files

    return run


def made(name: str, *commands: str, seconds: int = 10, **more: Any) -> Set:
    return Set(name, "why?", seconds, tuple(Step(f"step {i}", text) for i, text in enumerate(commands)), **more)


def test_a_file_has_the_head_and_all_that_was_printed(ran: Any) -> None:
    one = made(
        "one", "A=3 sh -c 'echo {rounds}; echo \"$A\"; echo plain text'", "sh -c 'echo [1] >{work}/kept.json'", rounds=7
    )
    one.steps[1].__dict__["file"] = "kept.json"
    status, files = ran(one)
    assert status == 0
    assert files["one"]["version"] == 1 and files["one"]["set"] == "one" and "cut" not in files["one"]
    assert set(files["one"]["machine"]) == HEAD
    first, second = files["one"]["steps"]
    assert first["lines"] == [7, 3, "plain text"] and first["status"] == 0 and first["rounds"] == 7
    assert first["command"] == one.steps[0].command and second["file"] == [1]


def test_a_set_is_cut_at_its_limit_and_keeps_what_it_had(
    ran: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Set, "limit", property(lambda self: 1.0))
    begun = time.monotonic()
    status, files = ran(
        made("slow", f"sh -c 'sleep 60 & echo $! >{tmp_path}/child; echo 1; wait'", "echo never"),
        made("next", "echo 2"),
    )
    assert status == 1 and time.monotonic() - begun < 8
    assert files["slow"]["cut"] == "ended at its limit of 1 s: step 0, step 1"
    first, second = files["slow"]["steps"]
    assert (
        first["lines"] == [1] and first["cut"].startswith("after ") and second == {"step": "step 1", "cut": "not begun"}
    )
    assert "cut" not in files["next"] and files["next"]["steps"][0]["lines"] == [2]
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    with suppress(psutil.NoSuchProcess):  # what it had started is gone too
        assert psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_step_that_fails_is_a_finding_and_the_others_run(ran: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, files = ran(made("one", "sh -c 'echo why >&2; exit 3'", "no-such-program", "echo 2"))
    assert status == 1 and "cut" not in files["one"]
    first, second, third = files["one"]["steps"]
    assert (first["status"], first["said"]) == (3, "why\n")
    assert (second["status"], second["said"]) == (127, "no-such-program: No such file or directory")
    assert third["lines"] == [2]
    assert "overlap: one: step 0 ended with 3; step 1 ended with 127, " in capsys.readouterr().err


def test_a_set_that_writes_its_own_file_and_is_cut(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Set, "limit", property(lambda self: 1.0))
    status, files = ran(
        made("kept", "sh -c 'echo {{\\\"rows\\\": [1]}} >{out}; sleep 60'"), made("none", "sh -c 'sleep 60; : {out}'")
    )
    assert status == 1 and files["kept"]["rows"] == [1] and files["kept"]["cut"] and files["none"]["cut"]
    assert set(files["none"]["machine"]) == HEAD


def test_a_file_of_before_does_not_stand_for_a_set_that_failed(ran: Any, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"rows": ["old"]}', encoding="utf-8")
    status, files = ran(made("one", "sh -c 'exit 1; : {out}'"))
    assert status == 1 and "rows" not in files["one"]
