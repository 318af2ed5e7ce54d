"""tools/footprints/families.py: the table of families, out of wheels that are made here."""

from __future__ import annotations

import csv
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from tools.footprints import families

ROOT = Path(__file__).resolve().parents[2]


def wheel(path: Path, member: str, library: Path) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(library, member)
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.footprints.families", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_kernels_are_counted_by_family_and_size(tmp_path: Path, library: Any) -> None:
    """The demo's NCCL is that of 2.30, whose shared memory leaves no size to anybody."""
    demo = ROOT / "tools" / "demo" / "demo_sm90.cubin"
    cublas = wheel(tmp_path / "nvidia_cublas-1.2-py3-none-any.whl", "nvidia/lib/libcublasLt.so.13", demo)
    nccl = wheel(tmp_path / "nvidia_nccl_cu13-3.4-py3-none-any.whl", "nvidia/nccl/lib/libnccl.so.2", demo)
    done = run(cublas, nccl)
    assert done.returncode == 0, done.stderr
    rows = [row for row in csv.DictReader(done.stdout.splitlines()) if row["gpu"] == "h100 h200"]
    assert {row["libraries"] for row in rows} == {"nvidia-cublas 1.2, nvidia-nccl-cu13 3.4"}
    assert [list(row.values())[2:] for row in rows] == [
        ["gemm, other", "1", "0", *["0"] * 6],
        ["other", "1", "0", *["0"] * 6],
    ]


def test_what_shares_and_what_would_keep_too_few_are_told_apart() -> None:
    reasons = ["shaped", "room_already", "below_keep", "priority", "no_threads", "communication"]
    answers = [{"kernel": "sm90_xmma_gemm_bf16x", "reason": reason} for reason in reasons]
    answers.append({"kernel": "_Z4gemvPf", "reason": "below_keep"})
    assert families.counted(answers) == {
        "sm90_xmma GEMM, half precision": (5, 1, 3, 1),
        "gemv": (1, 0, 0, 1),
    }


def test_a_wheel_of_something_else_is_one_sentence(tmp_path: Path) -> None:
    other = wheel(tmp_path / "other-1.0-py3-none-any.whl", "other/README.md", ROOT / "README.md")
    done = run(other, other)
    assert (done.returncode, done.stdout) == (1, "")
    assert "0 files of it are called like" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_committed_table_says_what_it_is_of() -> None:
    rows = list(csv.DictReader((ROOT / "docs/data/cublaslt-nccl.csv").open(encoding="utf-8")))
    assert {row["libraries"] for row in rows} == {"nvidia-cublas 13.10.0.20, nvidia-nccl-cu13 2.28.9"}
    assert {row["gpu"] for row in rows} == {"a40", "l40s", "a100", "h100 h200", "b200"}
    (one,) = [row for row in rows if row["gpu"] == "a40" and row["family"] == "gemv"]
    assert [one[name] for name in ("kernels", "no bound", "share 544", "share 160", "too few blocks 160")] == [
        *("2312", "0", "0", "55", "0")
    ]
