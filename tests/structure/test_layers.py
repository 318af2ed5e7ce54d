"""The dependency law of C, and that its check notices a breach; paths of somebody's machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.checks import check_layers as layers

ROOT = Path(__file__).resolve().parents[2]


def check(root: Path) -> list[str]:
    command = [sys.executable, "-m", "tools.checks.check_layers", "--no-symbols", str(root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0), done.stderr
    return done.stderr.splitlines()


def test_the_law_is_kept() -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("shim/core/decide.c", '#include "../sys/sys.h"', "shim/core must not know shim/sys/sys.h"),
        ("shim/core/decide.c", "#include <unistd.h>", "<unistd.h>: core is pure"),
        ("shim/sys/log.c", '#include "../core/core.h"', "shim/sys must not know shim/core/core.h"),
        ("shim/sys/log.c", '#include "missing.h"', "is not there"),
    ],
)
def test_a_breach_is_noticed(file: str, line: str, says: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "shim", tmp_path / "shim")
    with (tmp_path / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    found = check(tmp_path)
    assert found and any(says in line for line in found), found


@pytest.mark.parametrize(
    ("file", "name", "home", "says"),
    [
        (
            "shim/core/decide.c",
            "overlap_say",
            "shim/sys/log.c",
            "shim/core must not need overlap_say of shim/sys/log",
        ),
        ("shim/cuda/module.c", "hip_relax", "shim/hip/hip_ops.c", "shim/cuda must not need hip_relax of shim/hip/hip"),
        ("shim/sys/process.c", "overlap_say", "shim/sys/log.c", "a cycle: "),
    ],
)
def test_a_call_against_the_law_is_noticed(file: str, name: str, home: str, says: str, tmp_path: Path) -> None:
    """That there is none now, `make lint` finds, which compiles them all."""
    shutil.copytree(ROOT / "shim", tmp_path / "shim", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / file).open("a", encoding="utf-8") as source:
        source.write(
            f'\nextern char planted[] __asm__("{name}");\nchar *plant(void);\nchar *plant(void) {{ return planted; }}\n'
        )
    found = list(layers.by_symbol(layers.symbols(tmp_path, [file, home])))
    assert len(found) == 1 and says in found[0], found
    if says == "a cycle: ":
        assert f"{file} needs {name} of " in found[0]


def sources() -> list[Path]:
    """What is, or would be, in the repository: git's word for it, or everything below the folders of sources."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return sorted(path for path in (ROOT / name for name in listed.stdout.splitlines()) if path.is_file())
    folders = (ROOT / name for name in ("shim", "pyshim", "policies", "tools", "tests"))
    return sorted(
        path for folder in folders for path in folder.rglob("*") if path.is_file() and "_lib" not in path.parts
    )


CODE = {".c", ".h", ".S", ".def", ".py", ".map", ".sh"}


def test_nothing_knows_the_machine_it_was_written_on() -> None:
    home = re.compile(rb"(?<![\w.])/(?:home/[a-z]\w*|Users/\w+|root|work)/[\w.]+")
    found = []
    for path in sources():
        data = path.read_bytes()
        if b"\0" not in data[:1024] and path != Path(__file__):
            found += [f"{path.relative_to(ROOT)}: {match[0].decode()}" for match in home.finditer(data)]
    assert found == []
