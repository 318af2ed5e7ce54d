"""What a program that uses no GPU pays for the library, by tools/bench/start.py: no times, which are noisy."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

TRUE = ["/bin/true"]
HOW = pytest.mark.parametrize("how", ["unarmed", "armed", "off"])

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


@HOW
def test_memory_may_be_locked(
    how: str, start: ModuleType, folder: Path, variants: Mapping[str, Mapping[str, str]]
) -> None:
    """Within 16 MiB, or less where the hard limit of this machine is less, as a user without privileges. An armed
    process is compared with an empty preload beside the same variables: some of them lie on its stack."""
    empty = start.memory(folder, variants["empty" if how == "unarmed" else "variable"])
    ours = start.memory(folder, variants[how])
    if empty["error of mlockall"]:
        pytest.skip("this machine allows too little locked memory for any program")
    assert ours["error of mlockall"] == 0
    for what in ("data KiB", "locked KiB"):
        assert ours[what] - empty[what] <= start.BUDGET[what]


def test_a_start_touches_little_memory(
    start: ModuleType, folder: Path, variants: Mapping[str, Mapping[str, str]]
) -> None:
    _, faults = start.spawned(folder, 20, TRUE, variants)
    assert max(faults[how] for how in ("unarmed", "armed", "off")) - faults["empty"] <= start.BUDGET["page faults"]


@NEEDS_VALGRIND
@HOW
def test_a_start_executes_few_instructions(
    how: str, start: ModuleType, variants: Mapping[str, Mapping[str, str]]
) -> None:
    ours, empty = (start.instructions(TRUE, variants[name]) for name in (how, "empty"))
    assert ours - empty <= start.BUDGET["instructions"]


@NEEDS_VALGRIND
@HOW
def test_a_start_allocates_nothing(how: str, start: ModuleType, variants: Mapping[str, Mapping[str, str]]) -> None:
    """System calls, mappings and opened files among them, are in tests/interpose/test_off.py."""

    def allocations(variables: Mapping[str, str]) -> str:
        command = ["valgrind", "--tool=memcheck", *TRUE]
        done = subprocess.run(
            command, env={**start.clean(), **variables}, check=True, capture_output=True, text=True, timeout=300
        )
        return str(re.findall(r"total heap usage: ([\d,]+) allocs", done.stderr)[0])

    assert allocations(variants[how]) == allocations(variants["empty"])
