"""What no program should do and drivers should not say, and more of everything than anybody has."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Runner, rule, same, smallest_size

from pyshim.start import plan

BIG = f"launch=k,{BLOCKS},256,0"
SIZE = smallest_size(1)
EVEN = rule("{blocks_per_sm: 1}", match='kernel: "k*[02468]"')


def odd(build: Build) -> tuple[Path, dict[str, str]]:
    stub = build.library("odd/libcuda.so.1", "stub_driver.c", "-DCOUNTS")
    return build("odd-program", "odd.c", link=[stub]), {"LD_LIBRARY_PATH": str(stub.parent)}


@pytest.mark.parametrize(
    ("registers", "static", "limit"),
    [
        (0, 0, 0),
        (1, 0, 49152),
        (255, 0, 49152),
        (256, 0, 49152),
        (2147483647, 0, 49152),
        (-1, 0, 49152),
        (32, -1, 49152),
        (32, 232448, 0),
        (32, 232449, 49152),
        (32, 2147483647, 2147483647),
        (32, 0, -1),
        (32, 0, 2147483647),
        (-2147483648, -2147483648, -2147483648),
    ],
)
@pytest.mark.parametrize("shape", ["{blocks_per_sm: 1}", "make_room", "{dynamic_shared_memory: 200KiB}"])
def test_footprints_of_nothing_and_beyond_the_hardware(
    shape: str, registers: int, static: int, limit: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    program, env = odd(build)
    env |= {"STUB_REGISTERS": str(registers), "STUB_STATIC": str(static), "STUB_LIMIT": str(limit)}
    policy = rule(shape, more="streams: {raise: off}\ncommunication: {kernels: [k0]}")
    done = preloaded("kernels 4", policy, program=program, env=env)
    assert done.status == 0
    assert done.stdout.startswith("failed: 0, ")
    assert (done.stderr, done.totals["launches"]) == ("", 8)
    if not 0 <= registers <= 255 or not 0 <= static <= 232448 - (233472 - 232448):
        assert done.totals["shaped"] == 0


def test_names_that_are_long_or_no_text(build: Build, bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    program, env = odd(build)
    for policy in (ONE, rule("{blocks_per_sm: 1}", match='kernel: ["x*y", "*gemm*", "a::b"]'), "observe"):
        done = preloaded("names", policy, program=program, env=env)
        without = bare("names", program=program, env=env)
        assert done.status == without.status == 0
        assert done.stdout.startswith("failed: 0")
        assert done.totals["launches"] == 3 * (3 * 8 + 5)


@pytest.mark.parametrize("kernels", [70_000, 200_000])
def test_very_many_kernels(kernels: int, build: Build, preloaded: Runner) -> None:
    """None is taken for another; beyond 131,072 they are left alone for lack of room."""
    program, env = odd(build)
    done = preloaded(f"kernels {kernels}", EVEN, program=program, env=env)
    assert done.stdout.startswith(f"failed: 0, odd: 0 of {kernels} changed, even: ")
    changed = int(done.stdout.split("even: ")[1].split()[0])
    assert changed > 10000, "hardly anything was tested"
    assert done.totals["launches"] == 2 * kernels
    assert done.totals["shaped"] == changed
    assert kernels > 131_072 or done.reasons == {"shaped": kernels, "no_rule": kernels}


# ---- Devices ----

A100_SHARED = 167936


def smallest(shared: int, blocks: int) -> int:
    return next(size for size in range(0, 166912) if shared // (-(-(size + 1024) // 128) * 128) <= blocks)


@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_two_gpus_of_different_kinds(load: str, bare: Runner, preloaded: Runner) -> None:
    env = {"SIMGPU": "h100+a100"}
    per_device = f"repeat=3 {BIG} get=k,8 get=k,9 "
    if load == "lib":
        words = f"lib=k {per_device} device=1 {per_device} device=0 {per_device} device=1 {BIG}"
    else:
        words = f"ptx=k {per_device} device=1 ptx=k {per_device} {BIG}"
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    same(done, without, but=["dynamic_shared"])
    other = smallest(A100_SHARED, 1)
    assert done.sizes == [SIZE] * 3 + [other] * 3 + ([SIZE] * 3 if load == "lib" else []) + [other]
    assert done.totals["refused"] == 0
    devices = done.report["processes"][0]["devices"]
    assert [device["multiprocessors"] for device in devices] == [132, 108]


def test_a_policy_for_one_of_two_kinds(bare: Runner, preloaded: Runner) -> None:
    env = {"SIMGPU": "h100+a100"}
    words = f"lib=k {BIG} device=1 {BIG} device=0 {BIG} device=1 {BIG}"
    done, without = preloaded(words, "h100-paper", env=env), bare(words, env=env)
    assert done.stdout == without.stdout
    assert done.stderr.count("no policy is for NVIDIA A100") == 1
    assert done.sizes[1::2] == [0, 0]
    assert done.sizes[0::2] == [smallest_size(4)] * 2
    assert done.reasons["observe_only"] == 2


# ---- Much of it ----

FEW = {"SIMGPU_MULTIPROCESSORS": "4"}  # so that few blocks are many waves


def test_sixty_four_threads_while_everything_comes_and_goes(build: Build, bare: Runner, preloaded: Runner) -> None:
    program = build("churn", "churn.c", link=[plan.SIMULATED_DRIVER])
    policy = """streams: {raise: auto, created_by: [nccl]}
compute:
  - {match: {kernel: "shape_*"}, shape: {blocks_per_sm: 2}, when: always}
  - {match: {kernel: room}, shape: make_room, when: always}"""
    without = bare("64 10", program=program, env=FEW)
    done = preloaded("64 10", policy, program=program, env=FEW)
    made = 64 * 10 * 12 + 48 * 10 * 6 + 64 * 4 + 1  # 4: captured
    assert without.stdout == f"failed: 0, launches: {made}\n"
    assert (done.status, done.stdout, done.stderr) == (0, without.stdout, "")
    assert len(done.launches) == len(without.launches)
    left = {launch["dynamic_shared"] for launch in done.launches if launch["kernel"].startswith("leave")}
    assert left == {0}
    shaped = {launch["dynamic_shared"] for launch in done.launches if launch["kernel"].startswith("shape")}
    assert shaped == {0, smallest_size(2)}
    assert done.totals["launches"] == made
    assert done.totals["refused"] == 0
    # Room for what communication took at last, as where that had come first; before, for less of it.
    grown = 1024 + 30000 * (64 * 10 - 1) // (64 * 10)
    last = f"ptx=room,{NCCL} launch={NCCL},4,544,{grown} launch=room,100,256,0"
    enough = preloaded(last, policy, env=FEW).sizes[-1]
    sizes = [launch["dynamic_shared"] for launch in done.launches if launch["kernel"] == "room"]
    assert sizes[-1] == enough > 0
    assert len(set(sizes)) > 1, "it was decided once"
    assert max(sizes) == enough
