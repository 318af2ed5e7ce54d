"""tools/gpu/run: the table of sets, limits, what is missing, and the files that it writes. No GPU: sets are made up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import build, files, machine, needs, runner
from tools.gpu.sets import CUBIN, SETS, Set, Step

ROOT = Path(__file__).resolve().parents[2]
GPU = ROOT / "tools" / "gpu"
HEAD = {"begun", "commit", "gpus", "driver", "nvcc", "torch", "cuda", "nccl"}


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As a user calls it, on a machine without a GPU: nvidia-smi is not found."""
    words = [sys.executable, str(GPU / "run"), *arguments]
    environment = {**os.environ, "PATH": "/nowhere", **variables}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)


# ---- The table ----


def test_sets_are_whole() -> None:
    assert len({one.name for one in SETS}) == len(SETS)
    places = dict.fromkeys(("python", "gpu", "bin", "cubin", "nccl", "rounds", "limit", "work", "out"), "x")
    for one in SETS:
        assert one.steps and one.seconds > 0 and one.question, one.name
        assert set(one.builds) <= build.lines().keys(), one.name
        assert needs.missing(one.needs, one.gpus), one.name  # no GPU here; an unknown need raises
        for step in one.steps:
            assert step.command.format_map(places)
            for target in re.findall(r"{bin}/([a-z_.]+)", step.command):
                assert target in (*one.builds, build.LINKED), (one.name, target)
            assert ("{rounds}" in step.command) <= (one.rounds is not None), one.name
        if any("{cubin}" in step.command for step in one.steps):
            assert CUBIN in one.builds, one.name
        if any("overlap" in step.command.split("/")[0].split() for step in one.steps):
            assert "overlap-run" in one.needs, one.name


def test_the_line_that_builds_is_in_the_head_of_the_source(tmp_path: Path) -> None:
    for source in GPU.rglob("*.cu"):
        built = [line for path, line in build.lines().values() if path == source]
        assert built, f"{source}: its head does not say how it is built"
    words = build.command("driver", "sm_100", tmp_path / "driver")
    assert words[0] == "nvcc" and "-arch=sm_100" in words and str(tmp_path / "driver") in words
    assert "-lcuda" in words and f"-L{tmp_path / build.LINKED}" in words
    assert "-cudart" in build.command("kinds_shared", "sm_90", tmp_path / "kinds_shared")


def test_a_program_is_built_again_when_its_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "made_up.c"
    source.write_text("/* cc made_up.c -o made_up */\nint main(void) { return 3; }\n", encoding="utf-8")
    monkeypatch.setattr(build, "HERE", tmp_path)
    build.lines.cache_clear()
    try:
        build.build(["made_up"], tmp_path / "bin", "sm_90")
        assert subprocess.run([tmp_path / "bin/made_up"], check=False).returncode == 3
        os.utime(tmp_path / "bin/made_up", (1, 1))
        build.build(["made_up"], tmp_path / "bin", "sm_90")
        assert (tmp_path / "bin/made_up").stat().st_mtime == 1, "nothing changed"
        source.write_text(source.read_text(encoding="utf-8").replace("3", "4"), encoding="utf-8")
        build.build(["made_up"], tmp_path / "bin", "sm_90")
        assert subprocess.run([tmp_path / "bin/made_up"], check=False).returncode == 4
        source.write_text("/* cc made_up.c -o made_up */\nint main(void) { return }\n", encoding="utf-8")
        with pytest.raises(build.NotBuilt, match="made_up was not built: "):
            build.build(["made_up"], tmp_path / "bin", "sm_90")
    finally:
        build.lines.cache_clear()


# ---- From outside ----


def test_an_unknown_set_is_one_clear_error() -> None:
    done = command("profiler")
    assert done.returncode == 2 and done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert error == "overlap: error: no set is called 'profiler'"
    assert hint.startswith("overlap: help: did you mean profilers? known: ") and "correctness" in hint


@pytest.mark.parametrize("words", [("--limit", "0"), ("--rounds", "0")])
def test_bad_options_are_errors(words: tuple[str, ...]) -> None:
    done = command("launch-latency", *words)
    assert done.returncode == 2 and done.stderr.startswith("overlap: error: ") and "Traceback" not in done.stderr


def test_what_is_missing_is_said_and_is_a_finding(tmp_path: Path) -> None:
    done = command("launch-latency", "profilers", "--out", str(tmp_path))
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("overlap: launch-latency: skipped: it needs 1 GPU (0 here)")
    assert second.startswith("overlap: profilers: skipped: it needs 1 GPU (0 here)")
    assert not list(tmp_path.glob("*.json"))


def test_the_list_says_what_is_missing() -> None:
    wide = command("--list", COLUMNS="1000")
    assert wide.returncode == 0 and len(wide.stdout.splitlines()) == len(SETS)
    assert all("lacks" in line for line in wide.stdout.splitlines())
    narrow = command("--list", COLUMNS="60")
    assert narrow.stdout.split() == wide.stdout.split() and max(map(len, narrow.stdout.splitlines())) <= 60


def test_the_head_of_a_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERLAP_COMMIT", "made-up")
    monkeypatch.setenv("PATH", "/nowhere")
    found = machine.describe()
    assert set(found) == HEAD and found["commit"] == "made-up" and found["gpus"] == [] and found["nvcc"] is None


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


def test_an_object_over_several_lines_is_one(ran: Any) -> None:
    _, found = ran(made("one", "printf '{{\\n\"a\": 1\\n}}\\n'", "printf '1\\n{{\"b\": 2}}\\n'"))
    assert [step["lines"] for step in found["one"]["steps"]] == [[{"a": 1}], [1, {"b": 2}]]


def test_rounds(ran: Any) -> None:
    assert ran(made("one", "echo {rounds}", rounds=7), rounds=2)[1]["one"]["steps"][0]["lines"] == [2]


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
    with pytest.raises(ProcessLookupError):  # what it had started is gone too
        _wait_for_end(int((tmp_path / "child").read_text(encoding="utf-8")))


def _wait_for_end(process: int) -> None:
    for _ in range(50):
        os.kill(process, 0)
        if Path(f"/proc/{process}/stat").read_text(encoding="utf-8").split(") ")[1][0] == "Z":
            raise ProcessLookupError  # nobody has collected it yet
        time.sleep(0.1)


def test_the_limit_of_all(ran: Any) -> None:
    status, files = ran(made("slow", "sleep 60"), made("next", "echo 2"), limit=2)
    assert status == 1 and "cut" in files["slow"]
    assert files["next"]["steps"] == [{"step": "step 0", "cut": "not begun"}] and "step 0" in files["next"]["cut"]


def test_a_step_that_fails_is_a_finding_and_the_others_run(ran: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, files = ran(made("one", "sh -c 'echo why >&2; exit 3'", "no-such-program", "echo 2"))
    assert status == 1 and "cut" not in files["one"]
    first, second, third = files["one"]["steps"]
    assert (first["status"], first["said"]) == (3, "why\n")
    assert (second["status"], second["said"]) == (127, "no-such-program: No such file or directory")
    assert third["lines"] == [2]
    assert "overlap: one: step 0 ended with 3; step 1 ended with 127, " in capsys.readouterr().err


def test_a_process_that_crashes_is_a_finding(ran: Any) -> None:
    status, found = ran(made("one", "sh -c 'kill -SEGV $$'"))
    assert status == 1 and found["one"]["steps"][0]["status"] == -11


def test_a_set_that_writes_its_own_file_is_told_apart_where_it_was_cut(
    ran: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = "sh -c 'echo {{\\\"rows\\\": [1]}} >{out}; sleep %d'"
    whole, files = ran(made("whole", writes % 0))
    assert whole == 0 and files["whole"]["rows"] == [1] and "cut" not in files["whole"]


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


def test_a_row_is_a_line(tmp_path: Path) -> None:
    made = {
        "machine": {"a": [1]},
        "steps": [{"step": "one", "lines": [{"x": [1, 2]}, "text"]}, {"cut": "not begun"}],
        "e": [],
        "rows": [{"steps": 24, "ms": [1]}],
    }
    files.write(tmp_path / "file.json", made)
    text = (tmp_path / "file.json").read_text(encoding="utf-8")
    assert json.loads(text) == made
    assert '   {"x": [1, 2]},\n' in text and ' "machine": {"a": [1]},\n' in text and text.count("\n") == 17, text


def test_a_command_that_keeps_a_limit_itself_is_told_what_is_left(ran: Any) -> None:
    status, files = ran(made("one", "echo {limit}", seconds=50), limit=45)
    assert status == 0 and 20 <= files["one"]["steps"][0]["lines"][0] <= 45 - runner.MARGIN
