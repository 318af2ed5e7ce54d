"""Launches that other libraries like this one missed or broke, by what their users saw."""

from __future__ import annotations

import sys

import pytest
from interposing import BLOCKS, NCCL, ONE, PROGRAMS, WAYS, Build, Runner, rule, same, smallest_size

SIZE = smallest_size(1)
RAISED = rule("{blocks_per_sm: 1}", more="streams: {created_by: [nccl]}")


@pytest.mark.parametrize("way", WAYS)
def test_products_on_hopper_are_never_throttled(way: str, bare: Runner, preloaded: Runner) -> None:
    """With attributes, as cuBLAS gives them, and on either kind of default stream."""
    words = f"ptx=k ex=k,{BLOCKS},256,0 attr=8:0 ex=k,{BLOCKS},256,64 ex_ptsz=k,{BLOCKS},256,0"
    without, done = bare(words, way), preloaded(words, ONE, way)
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [SIZE] * 3
    assert {launch["entry"].partition("_")[0] for launch in done.launches} == {"cuLaunchKernelEx"}


@pytest.mark.parametrize("way", WAYS)
def test_graphs_run_past_the_limit_or_fail(way: str, bare: Runner, preloaded: Runner) -> None:
    """Captured, instantiated, and launched again and again."""
    words = f"ptx=k stream=0 begin=1 repeat=3 launch=k,{BLOCKS},256,0,1 ex=k,{BLOCKS},256,0,1 end=1 go=1,5 sync"
    without, done = bare(words, way), preloaded(words, ONE, way)
    assert "end: 0\ngo: 0\nsync: 0\n" in without.stdout
    same(done, without)
    assert len(done.in_graphs) == 4 * 5
    assert (done.totals["launches"], done.totals["graph_launches"]) == (4, 5)


@pytest.mark.parametrize("way", WAYS)
def test_capturing_nccl_crashes(way: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    """By its own library and by its kernels' names."""
    words = f"nccl={build.nccl()} ptx=k,{NCCL} nccls stream=0 begin=1 ncclk={NCCL},16,256,0,1 "
    words += f"launch={NCCL},16,256,0,1 launch=k,{BLOCKS},256,0,1 end=1 go=1,3 sync"
    without, done = bare(words, way), preloaded(words, RAISED, way)
    assert "end: 0\ngo: 0\nsync: 0\n" in without.stdout
    same(done, without, but=["priority"])
    assert {launch["priority"] for launch in done.launches if launch["captured"]} == {0}
    assert {launch["priority"] for launch in done.in_graphs} == {-5}, "the stream on which it runs"
    assert done.reasons == {"communication": 2, "captured": 1}


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
        assert (done.priorities, done.sizes) == ([-5] * 3 + [0], [0] * 3 + [SIZE])
        assert done.totals["communication"] == 3
