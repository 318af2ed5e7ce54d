"""Launches that other libraries like this one missed or broke, by what their users saw."""

from __future__ import annotations

import sys

import pytest
from interposing import BLOCKS, NCCL, PROGRAMS, WAYS, Build, Runner, rule, same, smallest_size

SIZE = smallest_size(1)
RAISED = rule("{blocks_per_sm: 1}", more="streams: {created_by: [nccl]}")


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
