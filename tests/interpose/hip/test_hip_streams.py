"""Streams: raised where the policy names who makes them, with fewer compute units where it reserves some; the policy of
each device; and that no launch is ever said to be raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hip_interposing import BLOCKS, NCCL, ONE, Hip, World, by_kernel, smallest

CREATED = 'when: always\ncommunication: {priority: inherit, streams: {created_by: ["librccl.so*"], priority: highest}}'


def made(world: World, library: str = "librccl.so.1") -> list[str]:
    """Streams of a library and of the program, and their priorities: 1 to 5."""
    words = [f"library={world.comm(library)}", "libflags=0", "libflags=1", "libpriority=0", "stream=0", "plain"]
    return [*words, *(f"priority={stream}" for stream in range(1, 6))]


def priorities(text: str) -> list[int]:
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("priority ")]


def test_streams_of_the_library_are_raised_and_counted(world: World, hip: Hip) -> None:
    assert priorities(hip(made(world)).stdout) == [0] * 5
    done = hip(made(world), CREATED)
    assert priorities(done.stdout) == [-1, -1, -1, 0, 0]
    assert done.totals["raised"] == 0
    assert done.totals["streams_raised"] == 3
    others = hip(made(world, "libother.so.1"), CREATED)
    assert priorities(others.stdout) == [0] * 5
    assert others.totals["streams_raised"] == 0


def test_flags_of_a_raised_stream_stay(world: World, hip: Hip) -> None:
    """A blocking one still waits for the default stream: what is behind that is in no window."""
    policy = CREATED.replace("always", "overlapping") + "\ncompute: [{match: {kernel: k}, shape: {blocks_per_sm: 1}}]"
    head = [*world.hosts("k", NCCL), f"library={world.comm()}", "libflags=0", "libflags=1", f"launch={NCCL},16,256,0,2"]
    for stream, size in ((1, 0), (2, smallest(1))):
        done = hip([*head[:-1], f"launch={NCCL},16,256,0,{stream}", f"launch=k,{BLOCKS},256,0,0"], policy)
        assert by_kernel(done)["k"] == [size], stream


@pytest.mark.parametrize("priority", ["auto", "highest", "-1"])
def test_no_launch_is_raised_or_said_to_be(priority: str, world: World, hip: Hip) -> None:
    """HIP has no priority of a launch."""
    policy = f"when: always\ncommunication: {{priority: {priority}}}"
    words = [*world.words(NCCL), *world.hosts(NCCL, "k"), "stream=0", f"library={world.comm()}"]
    words += [f"{how}={NCCL},16,256,0,1" for how in ("launch", "ext", "liblaunch", "launch", "graph")]
    words += [f"launch=k,{BLOCKS},256", "sync"]
    bare, done = hip(words), hip(words, policy)
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    assert done.launches == bare.launches
    totals: dict[str, Any] = done.totals
    assert (totals["raised"], totals["communication"] >= 4) == (0, True)
    assert "priority" not in done.reasons
    assert "raised" not in done.stderr.replace("0 raised", "")


# ---- Streams that somebody waits for ----

CRITICAL = """critical: auto
communication: {priority: inherit}
compute: [{match: {kernel: "*"}, shape: leave}]"""


def iterations(world: World, made: str, wait: str) -> list[str]:
    """Ten, each with a stream of its own for what is waited for; the other stream, 1, computes."""
    words = [*world.hosts("k", NCCL), "stream=0"]
    for stream in range(2, 12):
        words += [made, f"launch=k,8,256,0,{stream}", *wait.format(stream).split()]
        words += [f"launch=k,{BLOCKS},256,0,1", f"priority={stream}", f"done={stream}", f"destroy={stream}"]
    return words


@pytest.mark.parametrize("made", ["plain", "flags=1"])
def test_streams_are_created_raised_where_those_before_were_critical(made: str, world: World, hip: Hip) -> None:
    """HIP knows a priority at the creation only."""
    words = iterations(world, made, f"launch={NCCL},16,256,0,{{}}")
    bare, done = hip(words), hip(words, CRITICAL)
    assert done.stdout == bare.stdout
    small = [launch["priority"] for launch in done.launches if launch["blocks"] == 8]
    assert (len(small), small[:3], small[-5:]) == (10, [0] * 3, [-1] * 5)
    assert {launch["priority"] for launch in done.launches if launch["blocks"] == BLOCKS} == {0}
    assert done.reasons["critical"] == small.count(-1)


def test_a_stream_that_was_created_raised_stays_so(world: World, hip: Hip) -> None:
    """Nobody waits for it any more, but it cannot be lowered: the program goes on seeing what it asked for."""
    words = iterations(world, "plain", f"launch={NCCL},16,256,0,{{}}")
    words += ["plain", "repeat=1200", "launch=k,8,256,0,12", "priority=12"]
    bare, done = hip(words), hip(words, CRITICAL)
    assert done.stdout == bare.stdout
    assert done.launches[-1]["priority"] == -1, "nothing was tested"


def test_a_stream_that_stays_is_named(world: World, hip: Hip) -> None:
    words = [*world.hosts("k", NCCL), "stream=0", "flags=1"]
    for _ in range(10):
        words += ["launch=k,8,256,0,2", f"launch=k,{BLOCKS},256,0,1", "done=2"]
    done = hip(words, CRITICAL)
    assert {launch["priority"] for launch in done.launches} == {0}
    assert "critical" not in done.reasons


# ---- Compute units: bits of a mask, of which a simulated GPU here has ten ----


def reserving(units: int) -> str:
    return ONE.replace("{priority: inherit}", f"{{priority: inherit, reserve_cus: {units}}}")


def masked(hip: Hip, mask: str, reserve: int | None, env: dict[str, str] | None = None) -> tuple[str, list[str]]:
    words = [f"mask={mask}", "masked=1,40"]
    done = hip(words, None if reserve is None else reserving(reserve), env=env)
    assert done.status == 0, done.stderr
    lines = done.stdout.splitlines()
    masks = [line.split()[1] for line in lines if line.startswith("mask ")]
    if reserve is not None:
        words = [int(word, 16) for word in mask.split(":")]
        asked = [f"{word & (0x3FF if index == 0 else 0):08x}" for index, word in enumerate(words)]
        assert done.totals["streams_reduced"] == (masks[: len(asked)] != asked)
    return lines[-1], masks


@pytest.mark.parametrize("words", [1, 2, 31, 32, 33, 40])
def test_masks_of_computation_lose_the_reserved_units(words: int, hip: Hip) -> None:
    mask = ":".join(["ffffffff"] * words)
    assert masked(hip, mask, None)[1][0] == "000003ff"
    assert masked(hip, mask, 4)[1][0] == "0000003f"
    assert masked(hip, mask, 9)[1][0] == "00000001"


@pytest.mark.parametrize(
    ("mask", "reserve", "left"),
    [
        ("3c0", 4, "000003c0"),  # it would be empty
        ("3e0", 4, "00000020"),
        ("1", 4, "00000001"),  # nothing to take
        ("3ff", 10, "000003ff"),  # all of them
        ("3ff", 100, "000003ff"),
        ("155", 3, "00000055"),
    ],
)
def test_no_mask_becomes_empty(mask: str, reserve: int, left: str, hip: Hip) -> None:
    assert masked(hip, mask, reserve) == ("masked: 0", [left] + ["00000000"] * 39)


def test_all_words_of_a_large_gpu_count(world: World, hip: Hip) -> None:
    """304 compute units."""
    env = {"SIMGPU_MULTIPROCESSORS": "304"}
    for words in (10, 40):
        words_of = hip([f"mask={':'.join(['ffffffff'] * words)}", "masked=1,10"], reserving(20), gpu="mi300x", env=env)
        bits = [int(line.split()[1], 16) for line in words_of.stdout.splitlines() if line.startswith("mask ")]
        assert sum(bit << 32 * index for index, bit in enumerate(bits)) == (1 << 284) - 1


def test_masks_of_communication_stay(world: World, hip: Hip) -> None:
    for library, left in (("librccl.so.1", "000003ff"), ("libother.so.1", "0000003f"), ("libmine.so.1", "000003ff")):
        policy = reserving(4).replace("inherit,", 'inherit, libraries: ["libmine.so*"],')
        done = hip([f"library={world.comm(library)}", "libmask=3", "masked=1,3"], policy)
        assert f"mask {left}" in done.stdout, library


# ---- Which policy is a device's: by what it is, not by its number ----


def test_each_kind_of_gpu_has_its_policy(world: World, hip: Hip, tmp_path: Path) -> None:
    text = 'policy: 1\nname: {}\ngpu: ["AMD Instinct {}*"]\nwhen: always\ncommunication: {{priority: inherit}}\n'
    text += "compute: [{{match: {{kernel: k}}, shape: {{blocks_per_sm: {}}}}}]\n"
    files = []
    for name, blocks in (("MI250X", 1), ("MI300X", 2)):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(text.format(name.lower(), name, blocks), encoding="ascii")
    policy = ",".join(map(str, files))
    words = world.hosts("k")
    for device in (0, 1, 0):
        words += [f"device={device}", f"launch=k,{BLOCKS},256", f"launch=k,{BLOCKS},256"]
    one, two = smallest(1), smallest(2)
    wanted = {None: [one, two, one], "1,0": [two, one, two], "0,1": [one, two, one]}
    for order, sizes in wanted.items():
        done = hip(words, policy, gpu="mi250x+mi300x", env={"HIP_VISIBLE_DEVICES": order})
        assert done.sizes == [size for size in sizes for _ in range(2)], order
        names = {one: "mi250x", two: "mi300x"}
        [process] = done.report["processes"]
        found = sorted((device["index"], device["policy"]) for device in process["devices"])
        assert found == [(0, names[sizes[0]]), (1, names[sizes[1]])]
    done = hip(words[:-3], policy, gpu="mi250x+mi300x", env={"HIP_VISIBLE_DEVICES": "1"})
    assert done.sizes == [two] * 4  # there is no device 1: the program stays on the other one
