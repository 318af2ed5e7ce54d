"""The comment tables of policies: the planner's own answers, for real footprints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pyshim.footprints import collectives
from tools.footprints import tables

GPUS = ("a40", "a100", "l40s", "h100", "h200", "b200", "mi250x", "mi300x")


@pytest.mark.parametrize("gpu", GPUS)
def test_every_gpu_has_one(library: Any, gpu: str) -> None:
    made = tables.table(gpu)
    lines = made.splitlines()
    assert lines[0] == f"# --- table for {gpu}: .venv/bin/python -m tools.generate.policy_tables --write ---"
    assert lines[-1] == "# --- end of table ---"
    assert all(line.startswith("# ") and len(line) <= 120 for line in lines)
    heads = [line for line in lines if "threads of" in line]
    assert len(heads) >= 3
    assert not any("; 0 resident" in line for line in lines)


def test_sizes_on_h100(library: Any) -> None:
    """M / 2 < s_K <= M - s_C, less the 1,024 bytes of the system: 233,472 / 2 = 116,736 and 233,472 - 104,192."""
    gpu = tables.known_gpu("h100")
    gemm = tables.Kernel("", 128, 224, 0, 49152)
    small, whole = (tables.Kernel("", threads, 96, 20832, 82240) for threads in (288, 544))
    assert tables.verdict(gpu, gemm, small) == "room at 1 with 115,713 to 128,256"
    assert tables.verdict(gpu, gemm, whole) == "never together: registers"
    assert tables.verdict(gpu, gemm, tables.Kernel("", 32, 32, 0, 0)) == "room already"
    assert tables.verdict(gpu, gemm, tables.Kernel("", 32, 32, 0, 999999)) == "communication fits nowhere"


def test_what_priority_alone_can_do(library: Any) -> None:
    """Registers, in a quarter of an A40: 16,384 less 3 x 3,072 of NCCL's 9 warps, in portions of 32 x 32."""
    gpu, collective = tables.known_gpu("a40"), tables.Kernel("", 288, 96, 6176, 82240)
    answer = tables.verdict(gpu, tables.Kernel("", 128, 27, 0, 0), collective)
    assert answer == "priority only: 7 beside it after the others have ended"
    gemm = tables.Kernel("", 128, 146, 49152, 32768)
    assert tables.verdict(gpu, gemm, collective) == "never together: shared memory"


@pytest.mark.parametrize(
    ("architecture", "image"),
    [
        ("sm_80", "sm_80"),
        ("sm_86", "sm_80"),
        ("sm_90", "sm_90"),
        ("sm_100", "sm_100f"),
        ("sm_70", None),
        ("gfx90a", None),
    ],
)
def test_the_image_that_a_gpu_runs(architecture: str, image: str | None) -> None:
    assert collectives.image_for(architecture, {"sm_80", "sm_89", "sm_90", "sm_100", "sm_100f"}) == image


def test_write_and_check(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["tables.py", *arguments])
        return tables.main()

    assert run("h100") == 0
    printed = capsys.readouterr().out
    policy = tmp_path / "h100.yaml"
    first, last = printed.splitlines()[0], printed.splitlines()[-1]
    policy.write_text(f"# before\n{first}\n# of yesterday\n{last}\npolicy: 1\n", encoding="utf-8")
    assert run("h100", "--check", str(policy)) == 1
    assert "its table is not of today" in capsys.readouterr().err
    assert run("h100", "--write", str(policy)) == 0
    assert policy.read_text(encoding="utf-8") == f"# before\n{printed}policy: 1\n"
    assert run("h100", "--check", str(policy)) == 0
    with pytest.raises(SystemExit, match=re.escape("`# --- table for a100: ")):
        run("a100", "--check", str(policy))
    with pytest.raises(SystemExit, match="no GPU is called h1000"):
        run("h1000")
