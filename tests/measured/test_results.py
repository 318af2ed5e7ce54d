"""What tools/gpu keeps of measurements: how lines become rows, and that the planner agrees with what an H200 did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.gpu import neighbours_check, pack

ROOT = Path(__file__).resolve().parents[2]
GPU = ROOT / "tools" / "gpu"

HEAD = {"begun": "2026-11-21T06:10:53+00:00", "commit": "abc", "driver": "1"}
LINES: list[dict[str, Any]] = [
    {"mode": "cost", "k": 1, "repetition": 0, "grid_us": 5.0, "held": 3},
    {"mode": "cost", "k": 2, "repetition": 0, "grid_us": 7.0, "held": 4, "lost": 1},
    {"mode": "cost", "k": 1, "repetition": 1, "grid_us": 6.0, "held": 3},
    {"mode": "cost", "k": 2, "repetition": 1, "grid_us": 8.0, "held": 4},
]
ROWS: list[dict[str, Any]] = [
    {"mode": "cost", "k": 1, "repetitions": 2, "grid_us": [5.0, 6.0], "held": 3},
    {"mode": "cost", "k": 2, "repetitions": 2, "grid_us": [7.0, 8.0], "held": 4, "lost": [1, None]},
]


def test_repetitions_become_lists() -> None:
    assert pack.pack(LINES) == ROWS


def test_the_way_back() -> None:
    lines = list(pack.unpack(ROWS))
    assert [line["grid_us"] for line in lines] == [5.0, 6.0, 7.0, 8.0]
    assert lines[3] == {"mode": "cost", "k": 2, "grid_us": 8.0, "held": 4, "lost": None}
    assert list(pack.unpack([{"arm": "bare", "us": [1, 2]}])) == [{"arm": "bare", "us": [1, 2]}]


def test_counts_are_added_up() -> None:
    lines = [{"low": "hold", "repetition": i, "gaps_ns": {"224": 2, str(192 + i): 1}} for i in range(2)]
    assert pack.pack(lines) == [{"low": "hold", "repetitions": 2, "gaps_ns": {"224": 4, "192": 1, "193": 1}}]


def test_an_arm_is_said_of_what_follows() -> None:
    lines = [{"arm": "bare", "process": 1}, {"kind": "a", "us": [1]}, {"arm": "h200", "process": 1}, {"kind": "a"}]
    arms = [(row["arm"], row["kind"]) for row in pack.pack(lines)]
    assert arms == [("bare", "a"), ("h200", "a")]


def test_the_file_has_a_head_and_all_rows(tmp_path: Path) -> None:
    description = {"question": "raised", "gpu": "NVIDIA H200", "multiprocessors": 132}
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(line) + "\n" for line in [HEAD, description, *LINES]), encoding="utf-8")
    command = [sys.executable, "-m", "tools.gpu.pack", "What waits?", "./raised cost 2", str(lines)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    assert json.loads(done.stdout) == {**HEAD, "what": "What waits?", "command": "./raised cost 2", "samples": ROWS}


def test_too_few_arguments_are_a_usage_error() -> None:
    command = [sys.executable, "-m", "tools.gpu.pack"]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2
    assert "pack WHAT COMMAND" in done.stderr


def neighbours() -> list[dict[str, Any]]:
    return list(json.loads(neighbours_check.RESULTS.read_text(encoding="utf-8"))["samples"])


def test_the_planner_promises_no_room_that_an_h200_did_not_give() -> None:
    """With the largest carve-out for computation, as shaped kernels have it."""
    found = neighbours_check.compare(neighbours())
    for carveout in ("100, -1", "100, 100"):
        cells = found["cells"][carveout]
        assert cells["too_much"] == 0
        assert cells["room"] > 100
        assert cells["no_room"] > 1000
    for one in found["wrong"]:  # warps that do not spread evenly: the planner takes the unlucky partition
        if one["said"] == "too_little":
            assert all(one[side]["threads"] // 32 % 4 for side in ("low", "high")), one


def test_the_check_finds_a_planner_that_promises_too_much() -> None:
    rows = [row for row in neighbours() if row["carveout"] == [100, -1] and row["beside"]][:1]
    found = neighbours_check.compare([{**rows[0], "beside": 0}])
    assert [one["said"] for one in found["wrong"]] == ["too_much"]
