"""Beside profilers: what Nsight Systems and Nsight Compute bring into a process, with stand-ins for both."""

from __future__ import annotations

import platform

import pytest
from interposing import BLOCKS, NCCL, WAYS, Build, Done, Runner, rule, smallest_size
from peers import forwarding_driver

from pyshim.start import plan

NODE = "GLIBC_2.2.5" if platform.machine() == "x86_64" else "GLIBC_2.17"
WORDS = f"ptx=k,{NCCL} repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 launch={NCCL},16,256,0"
RAISED = rule("{blocks_per_sm: 1}", more="streams: {raise: auto}")
SIZES = [smallest_size(1)] * 4 + [0]


def program(done: Done) -> str:
    """What the program said, without the profiler."""
    return "".join(line for line in done.stdout.splitlines(True) if not line.startswith("profiler"))


def profiler(done: Done) -> str:
    return "".join(line for line in done.stdout.splitlines(True) if line.startswith("profiler"))


@pytest.mark.parametrize("way", WAYS)
def test_what_the_driver_loads_by_cuda_injection64_path(
    way: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """It is loaded inside of cuInit, and has looked everything up before the program does; it sees what was changed."""
    library = build.library("libinjected.so", "injected.c")
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "TELLS").parent)}
    injected = {**env, "CUDA_INJECTION64_PATH": str(library), "NVTX_INJECTION64_PATH": str(library)}
    alone, without = bare(WORDS, way, env=env), bare(WORDS, way, env=injected)
    assert profiler(without) == "profiler: 5 launches, 0 with shared memory\n"
    done = preloaded(WORDS, RAISED, way, env=injected, timeout=300)
    assert (done.status, done.stderr, program(done)) == (0, "", alone.stdout)
    assert profiler(done) == "profiler: 5 launches, 4 with shared memory\n"
    assert done.sizes == SIZES
    assert (done.totals["launches"], done.totals["shaped"]) == (5, 4)


def test_a_profiler_that_is_not_there(build: Build, bare: Runner, preloaded: Runner) -> None:
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "TELLS").parent)}
    env |= {"CUDA_INJECTION64_PATH": "/nonexistent/libToolsInjection64.so"}
    without, done = bare(WORDS, env=env), preloaded(WORDS, RAISED, env=env)
    assert "no injection\n" in without.stdout
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, without.stderr)
    assert done.totals["launches"] == 5


@pytest.mark.parametrize("order", ["{{}}:{other}", "{other}:{{}}"], ids=["ours first", "profiler first"])
@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
def test_what_is_preloaded_and_hooks_the_driver_itself(
    way: str, order: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """It has cuLaunchKernel, dlsym and cuGetProcAddress_v2. In front of us it sees what was asked, and we see all of
    it. Behind us, as overlap-run puts it, nothing is lost, but only one of the two sees a launch
    (docs/how-to/profile.md): by dlsym and cuGetProcAddress it gives out functions of its own, of which nobody knows
    whose they are."""
    flags = ["-DPRELOADED", f'-DNODE="{NODE}"', "-fno-builtin"]
    other = build.library("libprofiling.so", "injected.c", *flags)
    words = WORDS.replace("ex=", "launch=").replace(f"launch={NCCL}", f"ex={NCCL}")
    alone, without = bare(words, way), bare(words, way, env={"LD_PRELOAD": str(other)})
    assert profiler(without) == "profiler: 4 launches, 0 with shared memory\n"
    done = preloaded(words, RAISED, way, preload=order.format(other=other), timeout=300)
    assert (done.status, done.stderr, program(done)) == (0, "", alone.stdout)
    assert len(done.launches) == 5
    ours_behind = order.startswith("{other}")
    if ours_behind:
        assert done.totals["launches"] == 5
        assert profiler(done) == profiler(without)
    seen_by_us = ours_behind or way == "symbol"
    assert done.sizes == (SIZES if seen_by_us else [0] * 5)
    assert profiler(done) == profiler(without) or seen_by_us


@pytest.mark.parametrize("order", ["{{}}:{other}", "{other}:{{}}"], ids=["ours first", "profiler first"])
@pytest.mark.parametrize("way", ["dlsym", "proc_address_v2"])
def test_what_defines_dlopen_and_looks_for_itself_by_it(
    way: str, order: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Under the name libcuda.so.1 it opens the library that contains the symbol dlopen, which must be the injection.

    It then sees every launch. The library sees launches only where it comes behind the injection."""
    flags = ["-DPRELOADED", "-DIS_DRIVER", f'-DNODE="{NODE}"', "-fno-builtin", "-Wl,--no-as-needed"]
    other = build.library("libcuda-injection.so", "injected.c", *flags, link=[plan.SIMULATED_DRIVER])
    words = WORDS.replace("ex=", "launch=").replace(f"launch={NCCL}", f"ex={NCCL}")
    alone, without = bare(words, way), bare(words, way, env={"LD_PRELOAD": str(other)})
    assert (profiler(without), program(without)) == ("profiler: 4 launches, 0 with shared memory\n", alone.stdout)
    done = preloaded(words, RAISED, way, preload=order.format(other=other), timeout=300)
    assert (done.status, done.stderr, program(done)) == (0, "", alone.stdout)
    assert profiler(done) == profiler(without)
    assert done.sizes == (SIZES if order.startswith("{other}") else [0] * 5)
