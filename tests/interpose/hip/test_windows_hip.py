"""Overlap windows on HIP: as ../test_windows.py, by HIP's own calls."""

from __future__ import annotations

import pytest
from hip_interposing import BLOCKS, NCCL, VERSIONS, Hip, World, rule

POLICY = rule("{blocks_per_sm: 1}", kernel="k", when="overlapping")
K, C = f"launch=k,{BLOCKS},64,0,2", f"launch={NCCL},16,64,0,1"

# Streams 1 to 3 do not wait for the default stream, 4 does. The answer to each launch of k: i inside, o outside.
PROGRAMS = {
    "nothing orders": (f"{K} {C} {K} {K}", "oii"),
    "hipStreamSynchronize": (f"{C} {K} done=1 {K}", "io"),
    "hipStreamSynchronize of another": (f"{C} done=3 {K}", "i"),
    "hipStreamWaitEvent": (f"{C} record=1 {K} wait=2 {K}", "io"),
    "hipStreamWaitEvent, recorded before": (f"record=1 {C} wait=2 {K}", "i"),
    "hipDeviceSynchronize": (f"{C} {K} sync {K}", "io"),
    "hipStreamDestroy": (f"{C} {K} destroy=1 {K}", "io"),
    "its own stream": (f"{C} launch=k,{BLOCKS},64,0,1 {K}", "oi"),
    "the null stream": (f"{C} launch=k,{BLOCKS},64,0,0", "i"),
    "by hipModuleLaunchKernel": (f"{C.replace(NCCL, 'comm')} {K.replace('k,', 'form,', 1)} done=1", "i"),
    "by hipExtLaunchKernel": (f"{C.replace('launch', 'ext')} {K.replace('launch', 'ext')} done=1 {K}", "io"),
    "in a capture": (f"begin=3 {C} {K} end=3 {K}", "oo"),
    "beside a capture": (f"{C} begin=3 {K} end=3 {K}", "oi"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_inside(name: str, version: str, world: World, hip: Hip) -> None:
    text, expected = PROGRAMS[name]
    words = world.words("k", NCCL) if "form" in text else world.hosts("k", NCCL)
    words += ["flags=1", "flags=1", "flags=1", "flags=0"]
    words += text.replace("form,", "k,").replace("comm,", f"{NCCL},").split()
    bare, done = hip(words, version=version), hip(words, POLICY, version=version)
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    sizes = [launch["dynamic_shared"] > 0 for launch in done.launches if launch["kernel"] == "k"]
    assert "".join("oi"[size] for size in sizes) == expected
    assert sum(done.reasons.values()) == done.totals["launches"]
