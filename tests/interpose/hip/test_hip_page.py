"""As ../test_page_writes.py, on HIP, where hipSetDevice and hipMalloc open a GPU, at every step of some programs."""

from __future__ import annotations

import pytest
from hip_interposing import BLOCKS, NCCL, ONE, VERSIONS, Hip, World, rule, runtime

WINDOWED = rule("{blocks_per_sm: 1}", when="overlapping")


@pytest.mark.parametrize("version", VERSIONS)
def test_opening_a_gpu_again_writes_nothing(version: str, world: World, hip: Hip) -> None:
    program = world.build("page_writes", "page_writes.c")
    done = hip([runtime(version).name], ONE, version=version, program=program)
    assert (done.status, done.stdout) == (0, "pages: 1\nagain: 0\n")


@pytest.mark.parametrize("gpu", ["mi250x", "mi250x:hold,2"])
@pytest.mark.parametrize("policy", ["observe", ONE, WINDOWED], ids=["observe", "always", "overlapping"])
def test_a_launch_that_is_known_writes_to_nothing_that_threads_share(
    gpu: str, policy: str, world: World, hip: Hip
) -> None:
    """With several devices, which is common on AMD, the slow path is taken to learn which of them is current."""
    launches = [f"launch=k,{BLOCKS},64", f"ext=k,{BLOCKS},64"]
    words = [
        *world.hosts("k", NCCL),
        f"launch={NCCL},16,64",
        *launches,
        *launches,
        "freeze=1",
        *launches,
        "freeze=0",
        "sync",
    ]
    done = hip(words, policy, gpu=gpu, env={"LD_BIND_NOW": "1"})
    assert done.status == 0
    assert len(done.launches) == 7


def test_a_function_that_is_looked_up_again_writes_to_nothing_that_threads_share(world: World, hip: Hip) -> None:
    looks = ["default=hipLaunchKernel", "default=malloc"]
    words = [*world.hosts("k"), f"launch=k,{BLOCKS},64", *looks, "freeze=1", *looks, "freeze=0", "sync"]
    assert hip(words, ONE, env={"LD_BIND_NOW": "1"}).status == 0
