"""Launches by every way and version: each is seen once, is shaped, and nothing else about it is different."""

from __future__ import annotations

import pytest
from hip_interposing import BLOCKS, ONE, VERSIONS, WAYS, Hip, World, by_kernel, rule, smallest
from interposing import same

RUNS = [
    (version, way)
    for version in VERSIONS
    for way in WAYS
    if not (way == "proc_address" and version == "5") and not (way == "driver_entry" and version != "7")
]


def launches(world: World) -> list[str]:
    made = [*world.words("k"), "stream=0", f"launch=k,{BLOCKS},64,0,1", "repeat=5", f"launch=k,{BLOCKS},64,16,1"]
    return [*made, f"launch=k,{BLOCKS},2048,0", *world.hosts("k"), f"launch=k,{BLOCKS},64", f"ext=k,{BLOCKS},64,16"]


@pytest.mark.parametrize(("version", "way"), RUNS)
def test_launches_are_counted_and_shaped(version: str, way: str, hip: Hip, world: World) -> None:
    words = launches(world)
    without = hip(words, version=version, way=way)
    assert (without.status, len(without.launches)) == (0, 9)
    observed = hip(words, "observe", version=version, way=way)
    same(observed, without)
    assert observed.totals["launches"] == 9
    shaped = hip(words, ONE, version=version, way=way)
    same(shaped, without, but=["dynamic_shared"])
    assert shaped.totals["launches"] == 9
    assert shaped.sizes == [0 if launch["threads"] == 2048 else smallest(1) for launch in without.launches]
    assert (shaped.totals["shaped"], shaped.totals["refused"]) == (8, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_policy_nothing_changes(version: str, hip: Hip, world: World) -> None:
    words = launches(world)
    without = hip(words, version=version)
    off = hip(words, ONE, version=version, env={"OVERLAP_RUN": "off"})
    same(off, without)
    assert off.report == {}


def test_cooperative_launches_are_left_alone(hip: Hip, world: World) -> None:
    """Whatever the policy says, and however few of them fit: these workgroups wait for each other."""
    words = [*world.hosts("k"), "coop=k,80,256", "coop=k,20,1024", "coop=k,80,256", "coop=k,81,256"]
    bare, done = hip(words), hip(words, ONE)
    same(done, bare)
    assert [launch["result"] for launch in bare.launches] == [0, 0, 0, 720]
    assert done.reasons == {"cooperative": 4}


def test_graphs_are_launched_as_they_are_made(hip: Hip, world: World) -> None:
    words = [*world.hosts("k"), "stream=0", f"graph=k,{BLOCKS},64,0,1", "sync"]
    same(hip(words, ONE), hip(words))


def test_an_event_of_a_launch_carries_what_it_is_behind(hip: Hip, world: World) -> None:
    """hipExtLaunchKernel records one behind its kernel."""
    nccl = "ncclDevKernel_Generic_2"
    head = [*world.hosts("k", nccl), "stream=0", "stream=0"]
    behind = [f"stops={nccl},16,1", f"launch=k,{BLOCKS},64,0,2", "wait=2", f"launch=k,{BLOCKS},64,0,2"]
    policy = rule("{blocks_per_sm: 1}", when="overlapping")
    without, done = hip([*head, *behind]), hip([*head, *behind], policy)
    same(done, without, but=["dynamic_shared"])
    assert by_kernel(done)["k"] == [smallest(1), 0]
