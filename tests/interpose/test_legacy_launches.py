"""Launches by the calls before CUDA 4.0, and on several devices at once: counted, and passed on as they are."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Runner, same


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address", "proc_address_v2"])
@pytest.mark.parametrize("policy", [ONE, "observe"], ids=["shape", "observe"])
def test_counted_and_passed_on(policy: str, way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k block=k,256,1,1 stream=-1 legacy=k grid=k,{BLOCKS},1 grid=k,2,2 async=k,{BLOCKS},1,1 "
    words += "multi=1,k,132,256,0,1 sync"
    done, without = preloaded(words, policy, way), bare(words, way)
    assert "grid: 0" in without.stdout
    same(done, without)
    assert done.totals["launches"] == 5
    assert done.reasons == {"unknown_footprint": 4, "cooperative": 1}


def test_wrong_ones_are_the_drivers_to_refuse(bare: Runner, preloaded: Runner) -> None:
    words = "ptx=k grid=k,1,1 block=k,0,0,0 block=k,4096,1,1 legacy=k block=k,32,1,1 grid=k,0,1 grid=k,-1,1 "
    words += "multi=-1,k,1,32,0,0"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without)
