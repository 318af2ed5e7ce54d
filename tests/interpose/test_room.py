"""make_room in a real process: what is launched is what the planner says for the communication seen."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, Runner, rule, same

from pyshim.policy import gpus
from pyshim.room import planner
from pyshim.room.planner import BlockFootprint, Case, RoomPlan, RoomRule

OTHER = "ncclDevKernel_SendRecv"
BIG = f"k,{BLOCKS},256"
ROOM = rule("make_room")


def plan(threads: int, dynamic: int, asked: int = 0) -> RoomPlan:
    """What the planner says of k, 256 threads of 32 registers, beside communication of 32, with half of its blocks."""
    make_room = RoomRule(planner.member("SHAPE", "make_room"), 0, 50)
    kernel, communication = BlockFootprint(256, 32, 0, asked), BlockFootprint(threads, 32, 0, dynamic)
    return planner.plan(Case(gpus.named("h100"), kernel, communication, make_room))


@pytest.mark.parametrize("asked", [0, 20000])
@pytest.mark.parametrize(("threads", "dynamic"), [(256, 0), (512, 20000), (544, 82240), (64, 100000)])
def test_what_is_launched_is_what_the_planner_says(
    threads: int, dynamic: int, asked: int, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} set={NCCL},8,{max(dynamic, 1)} stream=0 launch={NCCL},16,{threads},{dynamic},1 "
    words += f"repeat=4 launch={BIG},{asked}"
    done = preloaded(words, ROOM)
    same(done, bare(words), but=["dynamic_shared", "priority", "entry"])
    said = plan(threads, dynamic, asked)
    assert done.sizes == [dynamic] + [said.dynamic] * 4
    assert done.reasons == {"communication": 1, said.reason: 4}


def test_a_footprint_that_grows_is_followed(bare: Runner, preloaded: Runner) -> None:
    """By component, and never back: the largest of each that was seen."""
    seen = [(NCCL, 128, 0), (NCCL, 512, 0), (OTHER, 64, 30000), (NCCL, 96, 100), (OTHER, 544, 82240)]
    words, wanted, threads, dynamic = f"ptx=k,{NCCL},{OTHER} set={NCCL},8,90000 set={OTHER},8,90000 stream=0 ", [], 0, 0
    for kernel, comm_threads, comm_dynamic in seen:
        words += f"launch={kernel},16,{comm_threads},{comm_dynamic},1 launch={BIG},0 launch={BIG},0 "
        threads, dynamic = max(threads, comm_threads), max(dynamic, comm_dynamic)
        wanted += [plan(threads, dynamic).dynamic] * 2
    done = preloaded(words, ROOM)
    same(done, bare(words), but=["dynamic_shared", "priority", "entry"])
    assert [launch["dynamic_shared"] for launch in done.launches if launch["kernel"] == "k"] == wanted
    assert len(set(wanted)) > 1, "nothing was followed"
