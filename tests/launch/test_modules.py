"""A start stands before every rank of every job: it imports little, and computes nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

MOST = 10
ASK = """
import json, os, sys

def ask(*_):
    ours = sorted(name for name in sys.modules if name.startswith("pyshim"))
    print(json.dumps([ours, "argparse" in sys.modules, calls]))
    sys.stdout.flush()
    os._exit(0)

os.execve = ask
from pyshim.start import environment, folder, plan, program

calls = {}
for module in (environment, folder, plan, program):
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__module__", "") == module.__name__ and not isinstance(value, type):
            def counted(*words, value=value, name=name, **named):
                key = f"{name}{words}"
                calls[key] = calls.get(key, 0) + 1
                return value(*words, **named)
            for other in (environment, folder, plan, program):
                if getattr(other, name, None) is value and len(sys.argv) > 1 and sys.argv[1] == "count":
                    setattr(other, name, counted)
counting = sys.argv.pop(1) == "count"
if not counting:
    for name in [name for name in sys.modules if name.startswith("pyshim")]:
        del sys.modules[name]
from pyshim.cli.run import main

sys.exit(main())
"""


def start(
    clean: Mapping[str, str], cwd: Path, kind: str, *words: str, **more: str
) -> tuple[list[str], bool, dict[str, int]]:
    command = [sys.executable, "-c", ASK, kind, *words]
    done = subprocess.run(command, env={**clean, **more}, cwd=cwd, capture_output=True, text=True, check=True)
    modules, argparse, calls = json.loads(done.stdout)
    return modules, argparse, calls


@pytest.mark.parametrize("options", [[], ["--policy", "observe"], ["--report", "{}/out", "--quiet"], ["-qo", "{}/out"]])
@pytest.mark.parametrize("driver", [True, False])
def test_a_start_imports_ten_modules_of_ours_at_most(
    clean_environment: Mapping[str, str], library: object, tmp_path: Path, options: list[str], driver: bool
) -> None:
    (tmp_path / "libcuda.so.1").write_text("")
    (tmp_path / "observe").mkdir()  # as `--policy observe --report observe` makes it
    words = [word.format(tmp_path) for word in options]
    path = {"LD_LIBRARY_PATH": str(tmp_path)} if driver else {}
    modules, argparse, _ = start(clean_environment, tmp_path, "list", *words, "true", **path)
    assert len(modules) <= MOST and not argparse, modules


def test_a_start_computes_nothing_twice(clean_environment: Mapping[str, str], library: object, tmp_path: Path) -> None:
    words = ("--report", str(tmp_path / "out"), "--policy", "observe", "true")
    _, _, calls = start(clean_environment, tmp_path, "count", *words)
    assert {name for name in calls if name.startswith(("shipped(", "inspect(", "make(", "begin("))}
    heavy = ("shipped(", "inspect(", "obstacle(", "vendors(", "cached(", "find(", "make(", "begin(", "environment(")
    assert {name: count for name, count in calls.items() if count > 1 and name.startswith(heavy)} == {}
