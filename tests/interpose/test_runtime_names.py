"""The names of NVIDIA's runtime are all there, and lead to ours; what comes of calls is in words/runtime.txt."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from interposing import Build, Runner

from pyshim.start import plan
from tools.checks import check_exports

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(plan.SIMULATED_DRIVER).parent
DEFINED = (ROOT / "shim" / "cuda" / "runtime.def").read_text(encoding="utf-8")
ROWS = re.findall(r"^RUNTIME\((\w+),", DEFINED, re.M)
CREATES = [row for row in ROWS if row.startswith("cudaStreamCreate")]
LAUNCHES = [row for row in ROWS if row not in CREATES]
SHAPED = [row for row in LAUNCHES if "Cooperative" not in row]
VERSIONS = (12, 13)
NOT_READY = 3  # cudaErrorInitializationError


def host(build: Build, version: int = 13) -> Path:
    runtime = OURS / f"libcudart.so.{version}"
    return build(f"runtime-host{version}", "runtime_host.c", link=[runtime, plan.SIMULATED_DRIVER])


# ---- Every name is there, and is what programs are bound to


def test_every_name_is_exported_without_a_version() -> None:
    elf = check_exports.read(Path(plan.LIBRARY).read_bytes())
    found = {(symbol.name, symbol.version) for symbol in elf.symbols if symbol.defined and "cuda" in symbol.name}
    assert found == {(row, "") for row in ROWS}
    assert len(ROWS) == len(set(ROWS)) == len(re.findall(r"^RUNTIME\(", DEFINED, re.M)) > 10


@pytest.mark.parametrize("version", VERSIONS)
def test_every_name_is_one_of_the_runtimes_and_leads_to_ours(
    version: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Bound by the loader, although the program asks for a version of the runtime's."""
    words = " ".join(f"where={row}" for row in ROWS)
    without, done = bare(words, program=host(build, version)), preloaded(words, program=host(build, version))
    for run, file in ((without, f"libcudart.so.{version}"), (done, Path(plan.LIBRARY).name)):
        assert [line for line in run.stdout.splitlines() if " is in " in line] == [
            f"{row} is in {file}" for row in ROWS
        ]


@pytest.mark.parametrize("driver", [True, False])
def test_a_program_without_a_runtime(driver: bool, build: Build, bare: Runner, preloaded: Runner) -> None:
    """It must not look as if there was one. Weak references lead to ours, which say that nothing is there."""
    program = build("no-runtime", "no_runtime.c", "-Wno-address")
    words = [plan.SIMULATED_DRIVER] if driver else []
    without, done = bare(words, program=program), preloaded(words, program=program)
    count = len(ROWS) + driver
    # Which object the text of dlerror begins with is the loader's business.
    looked_up, seen = ([re.sub(r" /\S+:", "", line) for line in run.stdout.splitlines()] for run in (without, done))
    assert looked_up[driver:] == [f"{row} 0 undefined symbol: {row}" for row in ROWS]
    assert seen[:count] == looked_up
    assert seen[count:-1] == [f"{row} is linked" for row in ROWS]
    assert seen[-1] == " ".join([str(NOT_READY)] * len(ROWS) + ["0"])
    assert (done.status, done.stderr, done.report["processes"]) == (0, "", [])


def test_the_simulated_runtimes_are_bound_by_version(simulated: Mapping[str, str], build: Build) -> None:
    """Else nothing above would say that versioned references are bound to names without one."""
    for version in VERSIONS:
        elf = check_exports.read(host(build, version).read_bytes())
        asked = {symbol.name: symbol.version for symbol in elf.symbols if not symbol.defined}
        assert {asked[row] for row in ROWS} == {f"libcudart.so.{version}"}
    assert subprocess.run([host(build)], env=dict(simulated), check=False).returncode == 0
