"""All threads share the statistics page, which may lie on a disk: calls that change nothing in it write nothing."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, WAYS, Build, Runner, rule

WINDOWED = rule("{blocks_per_sm: 1}", when="overlapping")


def test_opening_a_gpu_again_writes_nothing(build: Build, preloaded: Runner) -> None:
    done = preloaded("libcuda.so.1", program=build("page_writes", "page_writes.c"))
    assert (done.status, done.stdout) == (0, "pages: 1\nagain: 0\n")


@pytest.mark.parametrize("policy", ["observe", ONE, WINDOWED], ids=["observe", "always", "overlapping"])
@pytest.mark.parametrize("setting", ["", "device=1 device=0"], ids=["one", "several"])
@pytest.mark.parametrize("way", WAYS)
def test_a_launch_that_is_known_writes_to_nothing_that_threads_share(
    way: str, setting: str, policy: str, preloaded: Runner
) -> None:
    """With one context, and with several, where the current one is asked for."""
    launches = f"launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0"
    words = f"{setting} ptx=k,{NCCL} launch={NCCL},16,256,0 {launches} {launches} freeze=1 {launches} freeze=0 sync"
    env = {"LD_BIND_NOW": "1", "SIMGPU": "h100:hold,2"}
    done = preloaded(words, policy, way, env=env)
    assert done.status == 0
    assert len(done.launches) == 7
