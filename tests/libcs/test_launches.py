"""The way of a launch is the same with every C library and on every processor: the same words lead to the same launches
and the same counts as on the machine that tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import environments
import pytest
from environments import Pair, World, counts
from interposing import BLOCKS, NCCL, Done, Runner, rule, same

RAISED = rule("{blocks_per_sm: 1}", more="streams: {raise: auto}")
OVERLAPPING = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")

CHANGED = ["dynamic_shared", "priority", "entry"]
K, C = f"launch=k,{BLOCKS},256,0", f"launch={NCCL},16,256,0"
ENTRIES = ("launch", "ex", "coop", "launch_ptsz", "ex_ptsz", "coop_ptsz", "extra")
EVERY = " ".join(f"{entry}=k,{100 if 'coop' in entry else BLOCKS},256,0" for entry in ENTRIES)
RAISES = " ".join(f"{entry}={NCCL},16,256,0,{stream}" for entry in ENTRIES for stream in (0, 1))


class Probe(NamedTuple):
    """What a client is told, and what of it the report must say; everything else is compared."""

    words: str
    counted: dict[str, int]
    policy: str = RAISED
    refused: str = ""  # as SIMGPU_REFUSE says it
    seen_by_driver: bool = True  # the launches that reach it are those asked for, with other sizes and priorities


PROBES = {
    "every entry point": Probe(f"ptx=k,{NCCL} stream=-1 {EVERY} {RAISES}", {"launches": 21, "shaped": 5, "raised": 0}),
    "libraries and modules": Probe(
        f"lib=k {K} function=k {K} enum=e launch=e,{BLOCKS},256,0 again=1,e enumlib=f launch=f,{BLOCKS},256,0 "
        f"unload=1 unload=0 ptx=k {K} addresses",
        {"launches": 5, "shaped": 5},
    ),
    "what the program asks stays true": Probe(
        f"lib=k set=k,8,50000 get=k,8 occ=k,256,0 {K} ptx=j get=j,8 launch=j,{BLOCKS},256,0 get=j,8 sget=0,1",
        {"launches": 2, "shaped": 1},
    ),
    "overlap windows": Probe(
        f"ptx=k,{NCCL} stream=0 stream=0 {K},1 {C},2 repeat=3 {K},1 {K},2 sync {K},1 {C},2 thread {K},1 end_thread",
        {"launches": 9, "communication": 2},
        OVERLAPPING,
    ),
    "graphs": Probe(
        f"ptx=k,{NCCL} stream=0 begin=1 {C},1 {K},1 end=1 go=1,2 go=1,3 sync",
        {"communication": 1, "graph_launches": 5},
    ),
    "refused launches": Probe(
        f"ptx=k,other {K} {K} ex=k,{BLOCKS},128,32 launch=other,{BLOCKS},256,0 launch=k,0,256,0",
        {"launches": 5, "refused": 1},
        refused="k:50000",
        seen_by_driver=False,
    ),
    "threads and forks": Probe(
        f"forks=2 ptx=k,{NCCL} thread {K} end_thread thread {C} end_thread repeat=3 {K} fork {K} exit=7 join {K}",
        {"launches": 21},
    ),
    "programs that start programs": Probe(
        f"ptx=k {K} spawn ptx=k {K} vfork ptx=k {K} exec ptx=k {K}", {"launches": 4, "shaped": 4}
    ),
    "killed": Probe(f"ptx=k repeat=3 {K} kill", {"launches": 3, "shaped": 3}),
}


@pytest.mark.parametrize("environment", environments.ALL)
@pytest.mark.parametrize("probe", PROBES)
def test_launches(
    probe: str, environment: str, world: World, pair: Pair, preloaded: Runner, known: dict[Any, Done]
) -> None:
    words, counted, policy, refused, unchanged = PROBES[probe]
    env = {"SIMGPU_REFUSE": refused}
    if probe not in known:
        known[probe] = preloaded(words, policy, env=env)
    here = known[probe]
    done, without = pair(world.client(world.kind.targets[-1]), words, policy, env=env)
    assert done.stdout == without.stdout == here.stdout
    if unchanged:
        same(done, without, but=CHANGED)
    assert {name: done.totals[name] for name in counted} == counted
    assert counts(done) == counts(here)
