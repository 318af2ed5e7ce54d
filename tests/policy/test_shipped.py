"""What the shipped policies may do and what they claim, asked of the library's own planner."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native
from pyshim.policy import gpus
from pyshim.policy.layout import encode
from pyshim.policy.model import Policy
from pyshim.policy.table import compile_table
from pyshim.start.chosen import DEFAULTS, load


def policy(name: str) -> Policy:
    (found,) = load(name, {})
    return found


def known(library: Any, key: str) -> Any:
    gpu = _native.ffi.new("struct overlap_gpu *")
    library.overlap_gpu_known([item.key for item in gpus.known()].index(key), gpu)
    return gpu


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
    own, other = policy("h200-paper"), policy("h100-paper")
    assert own.gpus == ("NVIDIA H200*",)
    lines = [replace(rule, line=0, file="") for rule in own.rules]
    assert lines == [replace(rule, line=0, file="") for rule in other.rules]
    assert replace(own, name="", gpus=(), rules=()) == replace(other, name="", gpus=(), rules=())


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_table_of_one_gpu_is_short_enough_for_a_module_in_csh(name: str) -> None:
    """Environment Modules in Tcl cut a line at 4,000 characters (tools/deploy/modulefiles)."""
    line = f"export OVERLAP_TABLE={encode(compile_table(load(name, {})))}"
    assert len(line) <= 4000


ROOT = Path(__file__).resolve().parents[2]
OF_ONE_GPU = ("a40", "a100", "h100", "h200")


def rows() -> list[dict[str, str]]:
    """Return what was measured on real GPUs, of all tables that name their GPU as the driver does."""
    found = []
    for path in (*ROOT.glob("docs/data/*.csv"), *ROOT.glob("tools/gpu/results/*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            found += [row for row in csv.DictReader(file) if re.search(r"\bNVIDIA \w", row.get("gpu") or "")]
    assert found
    return found


def key(gpu: str) -> str:
    """Return h100 for 2 NVIDIA H100 80GB HBM3."""
    return gpu.partition("NVIDIA ")[2].split()[0].lower()


def comments(name: str) -> str:
    text = (ROOT / f"policies/{name}.yaml").read_text(encoding="utf-8")
    return " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))


def test_the_readme_the_policies_and_the_data_name_the_same_gpus_as_measured() -> None:
    measured = {key(row["gpu"]) for row in rows()}
    line = re.search(r"^Measured: ([^.]+)\.", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert line and {name.lower() for name in line[1].split(", ")} == measured
    for name in OF_ONE_GPU:
        denied = f"No {name.upper()} was measured" in comments(name)
        told = bool(re.search(rf"{name.upper()} was measured: docs/|Measured on an? {name.upper()} ", comments(name)))
        assert (told and not denied) if name in measured else denied, name


@pytest.mark.parametrize("name", OF_ONE_GPU)
def test_what_is_said_of_the_published_method_is_what_was_measured(name: str) -> None:
    own = [row for row in rows() if key(row["gpu"]) == name and row.get("published_percent")]
    said = comments(f"{name}-paper")
    assert ("Measured on " in said) is bool(own) is not ("not by measurement" in said)
    if own:
        worst = max(float(row["published_percent"]) for row in own if row["family"].startswith("stencils"))
        assert f"stencils became up to {worst:.0f} % slower" in said


@pytest.mark.parametrize("name", OF_ONE_GPU)
def test_the_policy_of_one_gpu_is_the_default_and_where_ones_own_begins(
    name: str, overlap: Any, tmp_path: Path, library: Any
) -> None:
    own, default = policy(name), policy("default")
    assert own.gpus and replace(own, name="", gpus=()) == replace(default, name="", gpus=())
    assert "exactly what `default` does" in comments(name)
    copy = (ROOT / f"policies/{name}.yaml").read_text(encoding="utf-8").replace(f"name: {name}\n", "name: mine\n")
    (tmp_path / "mine.yaml").write_text(copy, encoding="utf-8")
    assert overlap("policy", "check", "--strict", "mine.yaml", cwd=tmp_path).returncode == 0
