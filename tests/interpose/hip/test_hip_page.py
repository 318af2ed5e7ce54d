"""As ../test_page_writes.py, on HIP, where hipSetDevice and hipMalloc open a GPU, at every step of some programs."""

from __future__ import annotations

import pytest
from hip_interposing import ONE, VERSIONS, Hip, World, runtime


@pytest.mark.hazard("processes", "every hipSetDevice and hipMalloc takes the same cache line from all other threads")
@pytest.mark.parametrize("version", VERSIONS)
def test_opening_a_gpu_again_writes_nothing(version: str, world: World, hip: Hip) -> None:
    program = world.build("page_writes", "page_writes.c")
    done = hip([runtime(version).name], ONE, version=version, program=program)
    assert (done.status, done.stdout) == (0, "pages: 1\nagain: 0\n")
