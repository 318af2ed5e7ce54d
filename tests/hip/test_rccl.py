"""The real librccl of Debian: bound to the shim, and its kernels on the simulated GPU with and without a policy."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hip_world
import pytest
from hip_world import FOOTPRINTS, LARGE, LIBRARIES, PROGRAMS, ROOT, Done, compile_hip, link, run, start
from test_hip_shim import Planned, planned, policy, shaped, totals

__all__ = ["planned", "policy"]  # fixtures

Clean = Mapping[str, str]
SHIM = ROOT / "pyshim" / "_lib" / "liboverlap.so"
COMMUNICATION = (1728, 264)  # LDS and registers of RCCL 2.13's kernel on gfx90a, as its code object says


@pytest.fixture(scope="session")
def rccl(trixie: Path) -> Path:
    """Libraries with librccl 5.4.3 among them, and its header."""
    return hip_world.parts("trixie", hip_world.RCCL) / LIBRARIES


@pytest.fixture(scope="session")
def step(bookworm: Path, rccl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    header = rccl.parent.parent / "include"
    flags = ["-idirafter", str(header), f"-Wl,{rccl}/librccl.so.1"]
    output = tmp_path_factory.mktemp("rccl") / "step"
    return compile_hip(bookworm, PROGRAMS / "rccl.hip", output, *flags, runtime=rccl)


def symbols(library: Path, *flags: str) -> set[str]:
    listed = run(["nm", "-D", *flags, str(library)], os.environ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in listed}


@pytest.fixture(scope="session", params=["5.4.3", "OVERLAP_TEST_RCCL"])
def release(request: pytest.FixtureRequest) -> Path:
    """Libraries with a librccl among them; another release by a variable that names the folder."""
    if request.param == "5.4.3":
        return Path(request.getfixturevalue("rccl"))
    if request.param not in os.environ:
        pytest.skip("OVERLAP_TEST_RCCL names no folder of unpacked libraries")
    return Path(os.environ[request.param])


def test_librccl_is_bound_to_the_shim(release: Path, clean_environment: Clean, tmp_path: Path) -> None:
    program = tmp_path / "rccl_load"
    command = [*shlex.split(os.environ.get("CC", "cc")), str(PROGRAMS / "rccl_load.c"), "-o", str(program), "-ldl"]
    run([*command, *link(release)], os.environ)
    library = release / "librccl.so.1"
    debug = {"LD_PRELOAD": str(SHIM), "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"}
    debug["LD_DEBUG_OUTPUT"] = str(tmp_path / "log")
    done = start([program, library], clean_environment, tmp_path, **debug)
    assert done.status == 0, done.stderr
    assert re.fullmatch(r"\d{5} no error\n", done.stdout)
    log = "".join(path.read_text() for path in tmp_path.glob("log.*"))
    bound = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\w+)'", log)
    targets = {name: Path(to).name for user, to, name in bound if Path(user).name.startswith("librccl")}
    ours = {name for name in symbols(library, "--undefined-only") if name.startswith("hip")}
    ours &= symbols(SHIM, "--defined-only")
    assert "hipLaunchKernel" in ours or "hipExtLaunchKernel" in ours
    assert {name: targets.get(name) for name in ours} == dict.fromkeys(ours, SHIM.name)


def launches(done: Done) -> dict[str, set[tuple[int, int, int]]]:
    """Threads, registers and LDS by kernel."""
    rows: dict[str, set[tuple[int, int, int]]] = {}
    for packet in done.packets:
        row = (packet["workgroup"][0], packet["registers"], packet["group_segment"])
        rows.setdefault(packet["kernel"], set()).add(row)
    return rows


def check(done: Done, devices: int, gemm: int) -> None:
    """Two steps on each device: one kernel of RCCL as it is, and one GEMM with so much LDS."""
    assert done.status == 0, done.stdout + done.stderr
    found = launches(done)
    (communication,) = {name for name in found if "nccl" in name}
    assert found == {communication: {(256, COMMUNICATION[1], COMMUNICATION[0])}, LARGE: {(256, 136, gemm)}}
    for kernel in found:
        on = sorted(packet["device"] for packet in done.packets if packet["kernel"] == kernel)
        assert on == sorted([*range(devices), *range(devices)])


def test_rccl_reduces_on_simulated_devices(step: Path, clean_environment: Clean, tmp_path: Path) -> None:
    check(start([step], clean_environment, tmp_path, "mi250x,2"), 2, FOOTPRINTS[LARGE][0])


def test_gemm_beside_rccl_makes_room_for_it(
    step: Path,
    clean_environment: Clean,
    overlap: Callable[..., Any],
    policy: Path,
    planned: Planned,
    tmp_path: Path,
) -> None:
    bare = start([step], clean_environment, tmp_path, "mi250x,2")
    done = shaped([step], clean_environment, tmp_path, policy, "mi250x,2")
    (raised,) = planned([(LARGE, 0)], COMMUNICATION)
    assert raised > 0
    check(done, 2, FOOTPRINTS[LARGE][0] + raised)
    assert done.stdout == bare.stdout
    counted = totals(overlap, tmp_path)
    assert (counted["shaped"], counted["communication"]) == (4, 4)
