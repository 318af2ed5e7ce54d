"""Launches on HIP, by every way in: nothing but the size is changed, and each kernel has one size."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
POLICY = """policy: 1
name: doors
compute:
  - match: {{kernel: "shaped_a*"}}
    shape: {{blocks_per_sm: 50%}}
    when: {when}
  - match: {{kernel: "shaped_b*", library: "libother*"}}
    shape: {{dynamic_shared_memory: 9KiB}}
    when: {when}
"""
LAUNCHES = 20_000


@pytest.fixture(scope="module", params=(False, True), ids=("calls", "jumps"))
def jumps(request: pytest.FixtureRequest) -> bool:
    """Whether the runtime jumps from one of its entry points to another one through the dynamic linker."""
    return bool(request.param)


@pytest.fixture(scope="module")
def doors(jumps: bool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, beside the runtime that says what it was called with."""
    folder = tmp_path_factory.mktemp("doors")
    common = [os.environ.get("CC", "cc"), "-O2", "-std=c11", "-D_GNU_SOURCE"]
    driver, program = folder / "libamdhip64.so.6", folder / "hip_doors"
    shared = ["-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{driver.name}"]
    shared += ["-DJUMPS"] if jumps else ["-Wl,-Bsymbolic"]
    subprocess.run([*common, *shared, HERE / "echo_hip.c", "-o", driver, "-ldl"], check=True)
    other = folder / "libother.so"
    subprocess.run([*common, "-DOTHER", "-shared", "-fPIC", HERE / "hip_doors.c", "-o", other], check=True)
    libraries = [driver, other, f"-Wl,-rpath,{folder}", "-ldl"]
    subprocess.run([*common, HERE / "hip_doors.c", *libraries, "-o", program], check=True)
    return program


def check(launches: list[str], when: str) -> None:
    """Each got the size of its own threads, caller and grid: one size for each, and none for grids of one wave.
    Kernels of modules take so many registers that a compute unit has room for four waves."""
    sizes: dict[tuple[str, ...], str] = {}
    for line in launches:
        kernel, caller, kind, threads, blocks, asked, made = line.split()
        resident = 256 // int(threads) if kind == "module" else min(2048 // int(threads), 32 if threads == "64" else 16)
        ruled = resident > 1 and kernel.startswith("shaped_a")
        ruled |= resident > 0 and kernel.startswith("shaped_b") and caller == "other"
        if not ruled or int(blocks) <= 104 * resident or int(asked) > 65536:
            assert made == asked, line
        elif when == "always" or made != asked:
            assert made != asked, line
            assert sizes.setdefault((kernel[:8], kind, threads, asked), made) == made, line
    assert len(sizes) > 8


@pytest.mark.parametrize("table", (False, True), ids=("names", "table"))
@pytest.mark.parametrize("when", ("always", "overlapping"))
def test_every_launch_is_made_as_decided_and_counted_once(
    when: str,
    table: bool,
    jumps: bool,
    doors: Path,
    tmp_path: Path,
    overlap_run: Callable[..., Any],
    overlap: Callable[..., Any],
) -> None:
    policy, report = tmp_path / "doors.yaml", tmp_path / "report"
    policy.write_text(POLICY.format(when=when), encoding="utf-8")
    command = ["--policy", str(policy), "--quiet", "--report", str(report)]
    done = overlap_run(*command, str(doors), "7", str(LAUNCHES), env={"NULL_TABLE": "1"} if table else {})
    assert (done.returncode, done.stderr) == (0, "")
    check(done.stdout.splitlines(), when)
    counted = json.loads(overlap("report", str(report), "--json").stdout)["totals"]
    assert counted["launches"] == sum(counted["reasons"].values()) == LAUNCHES
    assert counted["shaped"] > LAUNCHES / 50
