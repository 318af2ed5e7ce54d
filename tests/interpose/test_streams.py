"""Streams of communication libraries are created at the greatest priority (`created_by`); and who is communication."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from interposing import BLOCKS, PROGRAMS, Build, Runner, rule, same, smallest_size

RAISED = rule("{blocks_per_sm: 1}", more="streams: {created_by: [nccl]}")


def test_it_stays_raised_whatever_the_rule_says(preloaded: Runner, build: Build) -> None:
    """It carries all of the computation, and nothing waits for it."""
    policy = rule("leave", more="streams: {raise: auto, created_by: [nccl]}")
    words = f"nccl={build.nccl()} ptx=k ncclp=0 stream=0 " + f"launch=k,{BLOCKS},256,0,1 launch=k,9,32,0,2 sync " * 40
    assert preloaded(words, policy).priorities == [-5, 0] * 40


def test_a_library_with_a_name_like_it_is_not_taken_for_it(preloaded: Runner, build: Build) -> None:
    other = build.library("libmynccl.so.2", "nccl.c")
    done = preloaded(f"nccl={other} ptx=k nccls ncclk=k,9,32,0,1", "h100-paper")
    assert done.priorities == [0]
    assert done.totals["communication"] == done.totals["streams_created_raised"] == 0


def test_the_policys_own_kernels_and_libraries_are_communication(preloaded: Runner, build: Build) -> None:
    ours = build.library("libours.so.1", "nccl.c", link=["-L" + str(Path(build.nccl()).parent)])
    launches = [f"{how},{BLOCKS},256,0" for how in ("launch=mine", "ncclk=k", "launch=k")]
    policy = rule("{blocks_per_sm: 1}", more='communication: {kernels: [all, "mine*"], libraries: ["libours.so*"]}')
    done = preloaded(f"nccl={ours} ptx=mine,k {' '.join(launches)}", policy)
    assert [size > 0 for size in done.sizes] == [False, False, True]
    assert done.totals["communication"] == 2


@pytest.mark.parametrize("switch", [{}, {"OVERLAP_RUN": "off"}], ids=["on", "off"])
def test_nccl_loaded_by_ctypes_hangs(switch: dict[str, str], build: Build, bare: Runner, preloaded: Runner) -> None:
    words = [str(PROGRAMS / "nccl_by_ctypes.py"), str(build.nccl())]
    without = bare(words, program=sys.executable)
    assert without.stdout.split() == ["0"] * 11, without.stdout + without.stderr
    done = preloaded(words, RAISED, program=sys.executable, env=switch, timeout=300)
    same(done, without, but=[] if switch else ["dynamic_shared", "priority", "entry"])
    if switch:
        assert done.report["processes"] == []
    else:
        assert (done.priorities, done.sizes) == ([-5] * 3 + [0], [0] * 3 + [smallest_size(1)])
        assert done.totals["communication"] == 3
