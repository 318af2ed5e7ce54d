"""All threads share the statistics page, which may lie on a disk: calls that change nothing in it write nothing."""

from __future__ import annotations

import pytest
from interposing import Build, Runner


@pytest.mark.hazard("processes", "every thread that opens a GPU again takes the same cache line from all others")
def test_opening_a_gpu_again_writes_nothing(build: Build, preloaded: Runner) -> None:
    done = preloaded("libcuda.so.1", program=build("page_writes", "page_writes.c"))
    assert (done.status, done.stdout) == (0, "pages: 1\nagain: 0\n")
