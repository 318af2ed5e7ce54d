"""Programs of nvcc's on our libcudart.so.12 and .13: what nvcc makes, where it is installed, and the same by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same, smallest_size
from nvidia_packages import runtime_folder, runtime_library
from repository import check_exports

from pyshim.launch import plan

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OURS = Path(plan.SIMULATED_DRIVER).parent
FATBIN = ROOT / "tests" / "simgpu" / "data" / "kernels.fatbin"
END = 3  # what the program ends with if all went well
LAUNCHES, GRAPH_LAUNCHES = 13, 2
# How a launch of stub.c gets into the runtime: nvcc 12, nvcc 13, and either with per-thread default streams.
STUBS = {
    "nvcc12": ("-DRUNTIME=12",),
    "nvcc13": ("-DRUNTIME=13",),
    "per_thread12": ("-DRUNTIME=12", "-DPER_THREAD"),
    "per_thread13": ("-DRUNTIME=13", "-DPER_THREAD"),
}
EXPECTED = """\
1 of NVIDIA H100 80GB HBM3, 9.0, 132 multiprocessors, runtime {version}
saxpy: 10 registers, 1024 bytes, 8 blocks
memory 0 4, counter 7 8, 4 bytes
priorities 0 to -5, -5; time passed: 1
graph of 3, the same function: 1, 10 blocks
no block: cudaErrorInvalidConfiguration
too much: cudaErrorInvalidValue cudaErrorInvalidValue cudaSuccess
allowed: cudaSuccess
end
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def stub(build: Build, kind: str, image: Path = FATBIN, folder: Path = OURS, *flags: str) -> Path:
    """stub.c as nvcc would have compiled it; folder: whose runtime it is linked with."""
    more = STUBS[kind]
    version = more[0][-2:]
    name = f"stub-{kind}-{image.stem}" + "".join(flags).replace("/", "_").replace(",", "_")
    link = [folder / f"libcudart.so.{version}"]
    return build(name, str(HERE / "runtime" / "stub.c"), *more, *flags, f'-DIMAGE="{image}"', link=link)


@pytest.fixture
def nvcc(tmp_path: Path) -> Callable[..., Path]:
    """Compiles program.cu with the nvcc of this machine."""
    found = shutil.which("nvcc")
    if not found:
        pytest.skip("needs nvcc of a CUDA toolkit, 12 or 13")

    def compiled(*flags: str) -> Path:
        out = tmp_path / "program"
        command = [str(found), "-cudart", "shared", *flags, str(HERE / "runtime" / "program.cu"), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and "Unsupported gpu architecture" in done.stderr:
            pytest.skip(f"this nvcc does not know {' '.join(flags)}")
        assert done.returncode == 0, done.stderr
        return out

    return compiled


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
    assert sum(with_library.ways.values()) == LAUNCHES
    assert set(with_library.ways) <= {"proc_address", "runtime"}
    assert sum(with_library.reasons.values()) == LAUNCHES


@pytest.mark.parametrize("kind", STUBS)
def test_a_program_runs_to_its_end_and_every_launch_is_seen(
    kind: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    check_whole_run(stub(build, kind), bare, preloaded)


@pytest.mark.parametrize("flags", [("-arch=sm_90",), ("-arch=sm_90", "-default-stream", "per-thread")])
def test_a_program_of_nvcc_runs_to_its_end_and_every_launch_is_seen(
    flags: Sequence[str], nvcc: Callable[..., Path], bare: Runner, preloaded: Runner
) -> None:
    check_whole_run(nvcc(*flags), bare, preloaded)


@pytest.mark.parametrize("kind", STUBS)
def test_per_thread_default_streams_reach_the_driver_as_such(kind: str, build: Build, bare: Runner) -> None:
    launches = [launch for launch in bare(program=stub(build, kind)).launches if not launch["graph"]]
    own = [launch for launch in launches if launch["entry"].endswith("_ptsz")]
    assert {launch["stream"] for launch in launches if launch["blocks"] <= 1} == {"0x2" if own else "0x1"}
    assert len(own) == (len(launches) if kind.startswith("per_thread") else 0)


@pytest.mark.parametrize("kind", ["nvcc12", "nvcc13"])
def test_kernels_are_shaped(kind: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    program = stub(build, kind)
    alone, shaped = bare(program=program), preloaded(program=program, policy=ONE)
    assert (shaped.status, shaped.stdout) == (alone.status, alone.stdout)
    assert [made["result"] for made in shaped.launches] == [asked["result"] for asked in alone.launches]
    larger = 0
    for made, asked in zip(shaped.launches, alone.launches):
        if asked["graph"] or asked["result"]:
            continue  # what a graph launches was captured before; what is refused stays refused
        static = 1024 if asked["kernel"] == "saxpy" else 0
        large = asked["blocks"] == BLOCKS
        assert made["dynamic_shared"] == (smallest_size(1) - static if large else asked["dynamic_shared"])
        larger += large
    assert shaped.totals["shaped"] == larger == 7


def test_what_is_said_of_the_launches(overlap_run: Run, overlap: Run, build: Build, tmp_path: Path) -> None:
    """Through the commands, as a user has it: status, registers of the real code, who launched."""
    report, program = tmp_path / "report", stub(build, "nvcc13")
    options = ["--simulate", "h100", "--policy", "observe", "--report", str(report), "--trace"]
    timeline = tmp_path / "timeline"
    done = overlap_run(*options, str(program), env={"SIMGPU_TIMELINE": str(timeline)})
    assert (done.returncode, done.stdout) == (END, EXPECTED.format(version=13))
    lines = overlap("report", str(report), "--launches", "--json").stdout.splitlines()
    traced: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert len(traced) == LAUNCHES
    assert {launch["kernel"] for launch in traced} == {"saxpy", "bounded"}
    # Whose call it was: the program's where the library stands before the runtime too, else the runtime's.
    runtime_hooks = b"\0cudaLaunchKernel\0" in Path(plan.LIBRARY).read_bytes()
    assert {launch["library"] for launch in traced} == {program.name if runtime_hooks else "libcudart.so.13"}
    ran = [json.loads(line) for line in timeline.read_text().splitlines()]
    assert {row["registers"] for row in ran if row["kernel"] == "saxpy"} == {10}
    assert {row["dynamic_shared"] for row in ran if row["kernel"] == "bounded"} == {0, 1024, 100000}


@pytest.mark.parametrize("gpu", ["a100", "h100:backfill,2", "h200"])
def test_other_gpus(gpu: str, build: Build, overlap_run: Run) -> None:
    done = overlap_run("--simulate", gpu, "--policy", "observe", str(stub(build, "nvcc13")))
    assert done.returncode == END, done.stdout + done.stderr
    assert ("2 of" in done.stdout) == (",2" in gpu)


def test_code_for_another_gpu_is_the_error_of_a_real_gpu(build: Build, bare: Runner) -> None:
    """Every time that it is launched, not only the first."""
    cubin = FATBIN.with_name("kernels.sm_90.cubin")
    done = bare(program=stub(build, "nvcc13", cubin), env={"SIMGPU": "a100"})
    assert done.status == 1
    assert "cudaFuncGetAttributes(&attributes, (const void *)saxpy): no kernel image is available" in done.stdout
    assert "no block: cudaErrorNoKernelImageForDevice\n" in done.stdout
    assert "allowed: cudaErrorNoKernelImageForDevice\n" in done.stdout


@pytest.mark.parametrize(("driver", "kind", "status"), [("12090", "nvcc12", END), ("12090", "nvcc13", 1)])
def test_a_driver_that_is_too_old(driver: str, kind: str, status: int, build: Build, bare: Runner) -> None:
    done = bare(program=stub(build, kind), env={"SIMGPU_DRIVER_VERSION": driver})
    assert done.status == status
    assert ("CUDA driver version is insufficient for CUDA runtime version" in done.stdout) == (status == 1)


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
    if check_exports.DT_RPATH not in check_exports.Reader(program.read_bytes()).read().tags:
        pytest.skip("this linker writes RUNPATH only, which comes after LD_LIBRARY_PATH")
    done = overlap_run("--simulate", "h100", "--policy", "observe", str(program))
    assert "cudaGetDeviceCount(&count): named symbol not found" in done.stdout
    assert done.stderr.count("simgpu: this program uses NVIDIA's CUDA runtime (cudart)") == 1


def test_the_real_library_is_another(build: Build) -> None:
    """Else the test above would prove nothing."""
    assert runtime_library(13).read_bytes() != (OURS / "libcudart.so.13").read_bytes()
