"""What a program that uses no GPU pays for the library, by tools/bench/start.py: no times, which are noisy."""

from __future__ import annotations

import importlib
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from pyshim import _native

SOURCE = Path(__file__).resolve().parents[2] / "tools" / "bench" / "start.py"
TRUE = ["/bin/true"]
STATIC = 64 << 10  # bytes
# KiB over an empty preload. Locked are code and constants, too: 272 KiB of the file, which all processes share. An
# armed process is compared with an empty preload beside the same variables: 8 KiB of them lie on its stack, whatever is
# preloaded.
DATA, LOCKED = 64, 512
# Of an armed start over an unarmed one. Three of the page faults and 2,000 of the instructions are those of a longer
# environment, and 7,500 copy the policy of every GPU (7 KB).
FAULTS, INSTRUCTIONS = 8, 20_000
LOAD, WRITABLE = 1, 2

pytestmark = pytest.mark.plain("a sanitizer costs more than the library", sanitized=True, coverage=True)
NEEDS_VALGRIND = pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind: apt-get install valgrind")


@pytest.fixture(scope="module")
def start() -> ModuleType:
    return importlib.import_module("tools.bench.start")


@pytest.fixture(scope="module")
def folder(start: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("start")
    start.compile_all(made)
    return made


@pytest.fixture(scope="module")
def variants(start: ModuleType, folder: Path) -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = start.variants(folder)
    return found


def test_static_data_is_small() -> None:
    """Every process of a job maps it, and mlockall locks it."""
    image = _native.SHIM.read_bytes()
    (place,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", image, place + size * index) for index in range(count)]
    writable = [memory for kind, flags, _, _, _, _, memory, _ in segments if kind == LOAD and flags & WRITABLE]
    assert sum(writable) <= STATIC


@pytest.mark.parametrize("how", ["unarmed", "armed", "off"])
def test_memory_may_be_locked(
    how: str, start: ModuleType, folder: Path, variants: Mapping[str, Mapping[str, str]]
) -> None:
    """Within 16 MiB, or less where the hard limit of this machine is less, as a user without privileges."""
    empty = start.memory(folder, variants["empty" if how == "unarmed" else "variable"])
    ours = start.memory(folder, variants[how])
    if empty["error of mlockall"]:
        pytest.skip("this machine allows too little locked memory for any program")
    assert ours["error of mlockall"] == 0
    assert ours["data KiB"] - empty["data KiB"] <= DATA
    assert ours["locked KiB"] - empty["locked KiB"] <= LOCKED


def test_an_armed_start_touches_no_more_memory(
    start: ModuleType, folder: Path, variants: Mapping[str, Mapping[str, str]]
) -> None:
    _, faults = start.spawned(folder, 20, TRUE, variants)
    assert faults["unarmed"] - faults["empty"] <= FAULTS
    assert faults["armed"] - faults["unarmed"] <= FAULTS
    assert faults["off"] - faults["unarmed"] <= FAULTS


@NEEDS_VALGRIND
def test_an_armed_start_executes_few_instructions(start: ModuleType, variants: Mapping[str, Mapping[str, str]]) -> None:
    count = {name: start.instructions(TRUE, one) for name, one in variants.items()}
    assert count["unarmed"] - count["empty"] <= INSTRUCTIONS
    assert count["armed"] - count["unarmed"] <= INSTRUCTIONS
    assert count["off"] - count["unarmed"] <= INSTRUCTIONS


@NEEDS_VALGRIND
@pytest.mark.parametrize("how", ["unarmed", "armed", "off"])
def test_a_start_allocates_nothing(how: str, start: ModuleType, variants: Mapping[str, Mapping[str, str]]) -> None:
    """System calls, mappings and opened files among them, are in tests/interpose/test_off.py."""

    def allocations(variables: Mapping[str, str]) -> str:
        command = ["valgrind", "--tool=memcheck", *TRUE]
        done = subprocess.run(
            command, env={**start.clean(), **variables}, check=True, capture_output=True, text=True, timeout=300
        )
        return str(re.findall(r"total heap usage: ([\d,]+) allocs", done.stderr)[0])

    assert allocations(variants[how]) == allocations(variants["empty"])
