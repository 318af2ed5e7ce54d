"""tools/verify/trials.py: a run of two effects, and what it says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_gain_and_a_loss() -> None:
    words = ["--runs", "1", "--iterations", "1500", "--effect=-10 %", "--effect=+9 %", "--json"]
    command = [sys.executable, "-m", "tools.verify.trials", *words]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300)
    rows = json.loads(done.stdout)
    assert [(row["effect"], row["runs"], row["right"], row["wrong"], row["apart"]) for row in rows] == [
        ("-10 %", 1, 1, 0, 0),
        ("+9 %", 1, 1, 0, 0),
    ]
    assert -12 < rows[0]["alone"] < -8 and rows[0]["marks"][0] < 1500
    for row in rows:
        median, least, most = row["change"]
        assert least <= median <= most and abs(median) > 2
