"""What the shipped policies may do and what they claim, asked of the library's own planner."""

from __future__ import annotations

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
    from dataclasses import replace

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
