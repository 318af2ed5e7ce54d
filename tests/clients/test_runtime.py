"""Programs of nvcc's on our libcudart.so.12 and .13: what nvcc makes, where it is installed, and the same by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same, smallest_size
from nvcc_programs import END, EXPECTED, FATBIN, GRAPH_LAUNCHES, LAUNCHES, OURS, STUBS, Nvcc, nvcc, stub
from nvidia_packages import runtime_folder, runtime_library

from pyshim.report.collect import collect
from tools.checks import check_exports

__all__ = ["nvcc"]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def version_of(program: Path) -> str:
    """Of the libcudart that the program asks for."""
    data = program.read_bytes()
    return "12" if b"libcudart.so.12\0" in data else "13"


def check_whole_run(program: Path, bare: Runner, preloaded: Runner) -> None:
    """What the program and the driver see is what they see without the library, and every launch is counted."""
    alone = bare(program=program)
    assert alone.stderr == ""
    assert (alone.status, alone.stdout) == (END, EXPECTED.format(version=version_of(program)))
    assert all(launch["kernel"] in ("saxpy", "bounded") for launch in alone.launches)
    with_library = preloaded(program=program, env={"OVERLAP_QUIET": "1"})
    same(with_library, alone)
    totals = with_library.totals
    assert (totals["launches"], totals["graph_launches"]) == (LAUNCHES, GRAPH_LAUNCHES)
    # Every launch passes one of the runtime's names on its way to the driver; a node is added by another call.
    assert with_library.totals["launches"] == LAUNCHES
    assert sum(with_library.reasons.values()) == LAUNCHES


@pytest.mark.parametrize("kind", STUBS)
def test_a_program_runs_to_its_end_and_every_launch_is_seen(
    kind: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    check_whole_run(stub(build, kind), bare, preloaded)


@pytest.mark.parametrize("flags", [("-arch=sm_90",), ("-arch=sm_90", "-default-stream", "per-thread")])
def test_a_program_of_nvcc_runs_to_its_end_and_every_launch_is_seen(
    flags: Sequence[str], nvcc: Nvcc, bare: Runner, preloaded: Runner
) -> None:
    check_whole_run(nvcc(*flags), bare, preloaded)


@pytest.mark.parametrize("kind", STUBS)
def test_per_thread_default_streams_reach_the_driver_as_such(kind: str, build: Build, bare: Runner) -> None:
    seen = bare(program=stub(build, kind)).launches
    launches = [launch for launch in seen if not launch["graph"]]
    own = [launch for launch in launches if launch["entry"].endswith("_ptsz")]
    assert {launch["stream"] for launch in launches if launch["blocks"] <= 1} == {"0x2" if own else "0x1"}
    assert len(own) == (len(launches) if kind.startswith("per_thread") else 0)


@pytest.mark.parametrize(("flags", "shaped_launches"), [((), 1), (("-DUNASKED",), 5)])
@pytest.mark.parametrize("kind", ["nvcc12", "nvcc13"])
def test_kernels_are_shaped(
    kind: str, flags: Sequence[str], shaped_launches: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """All of them but saxpy where the program has asked for its occupancy: that answer has to stay true."""
    program = stub(build, kind, FATBIN, OURS, *flags)
    alone, shaped = bare(program=program), preloaded(program=program, policy=ONE)
    assert (shaped.status, shaped.stdout) == (alone.status, alone.stdout)
    assert [made["result"] for made in shaped.launches] == [asked["result"] for asked in alone.launches]
    larger = 0
    for made, asked in zip(shaped.launches, alone.launches):
        if asked["result"]:
            continue  # what is refused stays refused
        if asked["graph"] or asked["captured"]:
            assert made["dynamic_shared"] == asked["dynamic_shared"]
            continue
        assert made["kernel"] == asked["kernel"]
        static = 1024 if asked["kernel"] == "saxpy" else 0
        large = asked["blocks"] == BLOCKS and (asked["kernel"] == "bounded" or bool(flags))
        assert made["dynamic_shared"] == (smallest_size(1) - static if large else asked["dynamic_shared"])
        larger += large
    assert shaped.totals["shaped"] == larger == shaped_launches
    asked_about = [asked for asked in alone.launches if not flags and not asked["graph"] and asked["kernel"] == "saxpy"]
    plain = [asked for asked in asked_about if not asked["cooperative"] and asked["dynamic_shared"] == 0]
    assert shaped.reasons.get("occupancy_asked", 0) == len(plain)


def test_what_is_said_of_the_launches(overlap_run: Run, build: Build, tmp_path: Path) -> None:
    """Through the commands, as a user has it: status, registers of the real code, who launched."""
    report, program = tmp_path / "report", stub(build, "nvcc13")
    options = ["--simulate", "h100", "--policy", "observe", "--report", str(report)]
    trace = tmp_path / "trace"
    done = overlap_run(*options, str(program), env={"SIMGPU_TRACE": str(trace)})
    assert (done.returncode, done.stdout) == (END, EXPECTED.format(version=13))
    (page,) = collect(str(report)).pages
    # Whose call it was: the program's, not the runtime's.
    assert {(row.kernel, row.library) for row in page.rows} == {("saxpy", program.name), ("bounded", program.name)}
    assert sum(row.launches for row in page.rows) == LAUNCHES
    ran = [(event["name"], event["args"]) for event in json.loads(trace.read_text()) if event.get("cat") == "kernel"]
    assert {row["registers per thread"] for name, row in ran if name == "saxpy"} == {10}
    assert {row["dynamic_shared"] for name, row in ran if name == "bounded"} == {1024, 100000}


@pytest.mark.parametrize("kind", ["nvcc12", "nvcc13"])
def test_without_a_driver(kind: str, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    """The library in front must not make the machine look equipped."""
    for library in OURS.glob("libcudart.so.*"):
        shutil.copy(library, tmp_path)
    alone = bare(program=stub(build, kind), env={"LD_LIBRARY_PATH": str(tmp_path)})
    with_library = preloaded(program=stub(build, kind), env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert "cudaGetDeviceCount(&count): CUDA driver version is insufficient" in alone.stdout
    assert (with_library.status, with_library.stdout, with_library.stderr) == (1, alone.stdout, alone.stderr)


@pytest.mark.parametrize("kind", ["nvcc12", "nvcc13"])
def test_a_runtime_that_the_program_brings_itself_stays_its_own(
    kind: str, build: Build, overlap_run: Run, simulated: Mapping[str, str]
) -> None:
    """By RPATH, which comes before LD_LIBRARY_PATH: NVIDIA's runtime, which does not start here."""
    real = runtime_folder(int(kind[-2:]))
    program = stub(build, kind, FATBIN, real, "-Wl,--disable-new-dtags", f"-Wl,-rpath,{real}")
    if "DT_RPATH" not in check_exports.read(program.read_bytes()).tags:
        pytest.skip("this linker writes RUNPATH only, which comes after LD_LIBRARY_PATH")
    done = overlap_run("--simulate", "h100", "--policy", "observe", str(program))
    assert "cudaGetDeviceCount(&count): named symbol not found" in done.stdout
    assert done.stderr.count("simgpu: this program uses NVIDIA's CUDA runtime (cudart)") == 1


def test_the_real_library_is_another(build: Build) -> None:
    """Else the test above would prove nothing."""
    assert runtime_library(13).read_bytes() != (OURS / "libcudart.so.13").read_bytes()
