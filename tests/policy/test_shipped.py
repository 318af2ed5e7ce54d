"""What the shipped policies may do and what they claim, asked of the library's own planner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native
from pyshim.policy import gpus, places
from pyshim.policy.layout import encode
from pyshim.policy.library import DEFAULTS, load
from pyshim.policy.model import Policy
from pyshim.policy.reader import read_file
from pyshim.policy.table import compile_table

ROOT = Path(__file__).resolve().parents[2]


def policy(name: str) -> Policy:
    (found,) = load(name, {})
    return found


def known(library: Any, key: str) -> Any:
    gpu = _native.ffi.new("struct overlap_gpu *")
    library.overlap_gpu_known([item.key for item in gpus.known()].index(key), gpu)
    return gpu


Block = tuple[int, int, int, int]  # threads, registers, static, dynamic


def control(library: Any, key: str, kernel: Block, beside: Block) -> str:
    """What the planner would do to let communication in."""
    gpu = known(library, key)
    launch, other, plan = (_native.ffi.new(f"struct overlap_{kind} *") for kind in ("launch", "footprint", "plan"))
    launch.blocks, launch.maximum_dynamic = 1 << 20, gpu.shared_optin - kernel[2]
    for footprint, block in ((launch.footprint, kernel), (other, beside)):
        footprint.threads, footprint.registers, footprint.static_shared, footprint.dynamic_shared = block
    library.overlap_plan_of(gpu, launch, other, library.OVERLAP_SHAPE_MAKE_ROOM, 0, 50, plan)
    words = ("leave", "room_already", "make_room", "priority", "cap")
    return words[plan.control]


@pytest.mark.parametrize("name", [*(key for key in places.names({}) if "-" not in key)])
def test_no_default_policy_shapes_a_kernel(name: str) -> None:
    assert policy(name).rules == ()


@pytest.mark.parametrize("name", [name for name in places.names({}) if "-" in name])
def test_each_policy_about_sizes_carries_those_of_its_gpu(name: str) -> None:
    text = places.find(name, {}).read_text(encoding="utf-8")
    begin = f"\n# --- table for {name.split('-')[0]}: .venv/bin/python -m tools.generate.policy_tables --write ---\n"
    assert text.count(begin) == 1
    assert text.index(begin) < text.index("\n# --- end of table ---\n") < text.index("\npolicy: 1\n")


def tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.generate.policy_tables", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_sizes_in_the_files_are_those_of_the_planner(library: Any, tmp_path: Path) -> None:
    done = tool("--check")
    assert (done.returncode, done.stderr) == (0, "")
    text = places.find("h100-paper", {}).read_text(encoding="utf-8")
    copy = tmp_path / "h100-paper.yaml"
    copy.write_text(text.replace("115,713", "115,712"), encoding="utf-8")
    done = tool("--check", str(copy))
    assert done.returncode == 1 and done.stderr.startswith(f"{copy}: not of today")
    assert tool("--write", str(copy)).returncode == 0
    assert copy.read_text(encoding="utf-8") == text


def test_the_published_method_on_amd_takes_the_sizes_that_make_room(library: Any) -> None:
    (rule,) = policy("mi250x-paper").rules
    assert (rule.shape.kind, rule.when, rule.keep_at_least) == ("make_room", "always", 25)
    table = compile_table([policy("mi250x-paper")])
    ffi = _native.ffi
    launch, decision = ffi.new("struct overlap_launch *"), ffi.new("struct overlap_decision *")
    beside = ffi.new("struct overlap_footprint *", (256, 280, 19808, 0, 0, 0))
    launch.blocks, launch.maximum_dynamic = 1 << 20, 65536 - 8192
    launch.footprint.threads, launch.footprint.registers, launch.footprint.static_shared = 256, 64, 8192
    library.overlap_decide(table, 0, known(library, "mi250x"), b"Cijk_A", ffi.NULL, launch, beside, decision)
    assert decision.native_blocks == 8 and 13313 <= decision.dynamic_shared <= 14336


def test_the_published_method_on_an_h200_is_that_of_an_h100() -> None:
    from dataclasses import replace

    own, other = policy("h200-paper"), policy("h100-paper")
    assert own.gpus == ("NVIDIA H200*",)
    lines = [replace(rule, line=0, file="") for rule in own.rules]
    assert lines == [replace(rule, line=0, file="") for rule in other.rules]
    assert replace(own, name="", gpus=(), rules=()) == replace(other, name="", gpus=(), rules=())


@pytest.mark.parametrize("name", places.names({}))
def test_a_shipped_policy_has_no_finding_not_even_a_note(library: Any, name: str) -> None:
    assert read_file(places.find(name, {})).findings == ()


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_table_of_one_gpu_is_short_enough_for_a_module_in_csh(name: str) -> None:
    """Environment Modules in Tcl cut a line at 4,000 characters (tools/modulefiles)."""
    line = f"export OVERLAP_TABLE={encode(compile_table(load(name, {})))}"
    assert len(line) <= 4000
