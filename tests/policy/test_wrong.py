"""Ten files with the mistakes that people make, and all that is said about each.

`python tests/policy/test_wrong.py` writes the outputs anew; read the difference before you keep it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "wrong"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def check(name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyshim", "policy", "check", f"{name}.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    environment.pop("OVERLAP_POLICY_PATH", None)
    return subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)


def test_there_are_ten() -> None:
    assert len(NAMES) == 10
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_output_for(name: str, library: object) -> None:
    done = check(name)
    assert done.stdout == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert (done.stderr, done.returncode) == ("", 1)


if __name__ == "__main__":
    for each in NAMES:
        (FOLDER / f"{each}.txt").write_text(check(each).stdout, encoding="utf-8")
