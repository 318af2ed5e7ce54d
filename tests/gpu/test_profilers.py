"""Profilers beside the library, with stand-ins for what this machine lacks. No GPU."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import product, profilers
from tools.gpu.build import NotBuilt

NCU = """#!/bin/sh
while [ "$1" != --log-file ]; do shift; done
out=$2; shift 2
while case $1 in --section|--page) shift 2;; -*) shift;; *) false;; esac; do :; done
printf '==PROF== Connected\\n"ID","Kernel Name","launch__shared_mem_per_block_dynamic"\\n"","","byte/block"\\n' >$out
printf '"%s","k","1,024"\\n' 0 1 2 >>$out
exec "$@"
"""
SANITIZER = """#!/bin/sh
while case $1 in --target-processes) shift 2;; *) false;; esac; do :; done
"$@"
status=$?
echo "========= ERROR SUMMARY: 8 errors"
exit $status
"""


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Any, simulated: dict[str, str]) -> Path:
    """A program of three launches on the simulated GPU, with the real overlap-run. Profilers are stand-ins."""
    for name, value in {**simulated, "PATH": product.environment(tmp_path / "commands")["PATH"]}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / "bin"), os.environ["PATH"])))
    program = tmp_path / "program.py"
    program.write_text(
        f"import subprocess, sys\nsys.exit(subprocess.call({str(build.client())!r}.split()"
        " + 'ptx=k launch=k,4224,128,0,0 repeat=2 launch=k,4224,128,1000,0'.split()))\n"
    )
    counter = tmp_path / "counter.py"
    counter.write_text(
        "import json, subprocess, sys\nstatus = subprocess.call([sys.executable, *sys.argv[2:]])\n"
        "json.dump({'kernels': 3, 'by_name': {'ncclDevKernel': 1}}, open(sys.argv[1], 'w'))\nsys.exit(status)\n"
    )
    monkeypatch.setattr(profilers, "PROGRAM", [sys.executable, str(program)])
    monkeypatch.setattr(profilers, "COUNTER", counter)

    def without_cupti(*_: Any) -> None:
        raise NotBuilt("no CUPTI")

    monkeypatch.setattr(profilers, "build", without_cupti)
    return tmp_path


def profiled(beside: Path, *words: str) -> tuple[int, dict[str, Any]]:
    out = beside / "rows.json"
    status = profilers.main([str(beside / f"arms{time.monotonic_ns()}"), str(out), *words])
    return status, {row.pop("arm"): row for row in json.loads(out.read_text(encoding="utf-8"))}


def test_profilers_beside_us(beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(beside / "bin/ncu", NCU)
    script(beside / "bin/compute-sanitizer", SANITIZER)
    status, rows = profiled(beside)
    assert len(rows) == 12 and {arm for arm, row in rows.items() if "not_measured" in row} == {
        "CUDA_INJECTION64_PATH",
        "overlap-run, CUDA_INJECTION64_PATH",
    }
    for arm, row in rows.items():
        if "not_measured" not in row:
            assert (arm, row["exit_status"], row.get("unread")) == (arm, 0, None)
            assert (row["library"].get("launches") == 3) is ("overlap-run" in arm), arm
    assert rows["ncu overlap-run"]["profiler"] == {"launches": 3, "communication": 0, "with_dynamic": 3}
    assert rows["overlap-run compute-sanitizer"]["sanitizer_errors"] == [8]
    assert status == 1 and capsys.readouterr().err.splitlines() == [
        "CUDA_INJECTION64_PATH: not measured: no CUPTI",
        "overlap-run, CUDA_INJECTION64_PATH: not measured: no CUPTI",
    ]
