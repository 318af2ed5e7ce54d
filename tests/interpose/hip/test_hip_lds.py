"""LDS, static and dynamic, never exceeds what there is, whatever the runtime lets pass; a program's own mistakes stay.

The runtime of 7 takes every sum, and its queue dies of one that is too much, which ends the process.
"""

from __future__ import annotations

import pytest
from hip_interposing import BLOCKS, LDS, NCCL, STATIC, Hip, World, by_kernel, smallest
from interposing import Done, rule, same

KERNELS = ("k", *STATIC)
ASKED = (0, 100, 20000)
POLICIES = {
    "64 KiB": rule("{dynamic_shared_memory: 64KiB}"),
    "60,000 bytes": rule("{dynamic_shared_memory: 60000}"),
    "one": rule("{blocks_per_sm: 1}"),
    "half": rule("{blocks_per_sm: 50%}"),
    "room": rule("make_room, keep_at_least: 1%"),
}


def launches(world: World, forms: tuple[str, ...] = ("words", "hosts")) -> list[str]:
    """Each kernel, with sizes that it may have."""
    made: list[str] = [*world.hosts(NCCL), f"launch={NCCL},16,256"]  # room is made for it
    for form in forms:
        made += getattr(world, form)(*KERNELS)
        made += [
            f"{how}={kernel},{BLOCKS},64,{asked}"
            for kernel in KERNELS
            for asked in ASKED
            for how in ("launch", "ext", "launch")
            if STATIC.get(kernel, 0) + asked <= LDS
        ]
    return [*made, "sync"]


def within(done: Done) -> None:
    for launch in done.launches:
        assert STATIC.get(launch["kernel"], 0) + launch["dynamic_shared"] <= LDS, launch


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_no_size_of_ours_is_too_much(policy: str, world: World, hip: Hip) -> None:
    words = launches(world)
    bare, done = hip(words), hip(words, policy)
    same(done, bare, but=["dynamic_shared"])
    within(done)
    assert done.totals["refused"] == 0
    assert done.totals["shaped"] > 0
    assert all(ours >= asked for ours, asked in zip(done.sizes, bare.sizes))


def test_blocks_per_sm_counts_the_static_bytes(world: World, hip: Hip) -> None:
    done = hip(launches(world, ("words",)), POLICIES["one"])
    sizes = {kernel: set(found) for kernel, found in by_kernel(done).items()}
    assert sizes["k"] == {smallest(1)}
    assert sizes["s1"] == {smallest(1, 1)} == {32768}
    assert sizes["s40000"] == {0, 100, 20000}  # there is one by itself
    assert sizes["s65536"] == {0}


def test_programs_that_overshoot_get_what_they_got(world: World, hip: Hip) -> None:
    for kernel, asked in (("s40000", 30000), ("s65536", 1), ("s1", 65536), ("k", 65537)):
        words = [*world.hosts(NCCL), f"launch={NCCL},16,256", *world.words(kernel), *world.hosts(kernel)]
        words += [f"launch={kernel},{BLOCKS},64,{asked}", "sync"]
        for policy in (POLICIES["64 KiB"], POLICIES["one"], POLICIES["room"]):
            bare, done = hip(words), hip(words, policy)
            same(done, bare)
        if kernel != "k":
            assert bare.status < 0
    words = [*world.words("k"), f"launch=k,{BLOCKS},64,65536", "sync"]
    assert hip(words, POLICIES["64 KiB"]).sizes == [65536]
