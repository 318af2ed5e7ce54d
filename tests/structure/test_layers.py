"""The dependency law of C, and that its check notices a breach; sizes of files; paths of somebody's machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "check_layers.py"
LONGEST = 450
GENERATED = {"tools/simgpu/hip/names.def", "tools/simgpu/api.def"}
CONTRACT = "shim/overlap_abi.h"  # one file, which cffi reads


def check(root: Path) -> list[str]:
    done = subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0), done.stderr
    return done.stderr.splitlines()


def test_the_law_is_kept() -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("shim/core/decide.c", '#include "../sys/sys.h"', "shim/core must not know shim/sys/sys.h"),
        ("shim/core/decide.c", '#include "vendor/cuda/cuda.h"', "shim/core must not know shim/vendor/cuda/cuda.h"),
        ("shim/core/decide.c", "#include <unistd.h>", "<unistd.h>: core is pure"),
        ("shim/core/gpu.def", "#include <stdio.h>", "<stdio.h>: core is pure"),
        ("shim/sys/page.c", '#include "../core/core.h"', "shim/sys must not know shim/core/core.h"),
        ("shim/sys/page.c", '#include "../vendor/cuda/cuda_abi.h"', "must not know"),
        ("shim/sys/page.c", '#include "missing.h"', "is not there"),
        ("shim/abi.h", '#include "core/core.h"', "shim must not know"),
        ("shim/vendor/cuda/stream.c", '#include "../../../tools/simgpu/sim.h"', "is not there"),
    ],
)
def test_a_breach_is_noticed(file: str, line: str, says: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "shim", tmp_path / "shim")
    with (tmp_path / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    found = check(tmp_path)
    assert found and any(says in line for line in found), found


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


def test_no_file_is_too_long_to_be_read() -> None:
    long = {}
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in CODE and name not in {*GENERATED, CONTRACT}:
            count = path.read_bytes().count(b"\n")
            if count > LONGEST:
                long[name] = count
    assert long == {}, f"more than {LONGEST} lines"


def test_nothing_knows_the_machine_it_was_written_on() -> None:
    home = re.compile(rb"(?<![\w.])/(?:home/[a-z]\w*|Users/\w+|root|work)/[\w.]+")
    found = []
    for path in sources():
        data = path.read_bytes()
        if b"\0" not in data[:1024] and path != Path(__file__):
            found += [f"{path.relative_to(ROOT)}: {match[0].decode()}" for match in home.finditer(data)]
    assert found == []
