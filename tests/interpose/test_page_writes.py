"""All threads share the statistics page, which may lie on a disk: a call that changes nothing in it writes nothing.

Launches and look-ups that are known: words/page_writes.txt."""

from __future__ import annotations

import hip_interposing
import pytest
from hip_interposing import Hip, World
from interposing import ONE, Build, Runner


@pytest.mark.parametrize("version", ["CUDA", *hip_interposing.VERSIONS])
def test_opening_a_gpu_again_writes_nothing(
    version: str, build: Build, preloaded: Runner, world: World, hip: Hip
) -> None:
    """On HIP hipSetDevice and hipMalloc open one."""
    program = build("page_writes", "page_writes.c")
    if version == "CUDA":
        done = preloaded("libcuda.so.1", program=program)
    else:
        name = hip_interposing.runtime(version).name
        done = hip([name], ONE, version=version, program=program)
    assert (done.status, done.stdout) == (0, "pages: 1\nagain: 0\n")
