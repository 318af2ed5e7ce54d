"""Streams: raised where the policy names who makes them, and no others; the policy of each device."""

from __future__ import annotations

from pathlib import Path

from hip_interposing import BLOCKS, NCCL, Hip, World, smallest

CREATED = "streams: {created_by: [rccl]}"


def made(world: World, library: str = "librccl.so.1") -> list[str]:
    """Streams of a library and of the program, and their priorities: 1 to 5."""
    words = [f"library={world.comm(library)}", "libflags=0", "libflags=1", "libpriority=0", "stream=0", "plain"]
    return [*words, *(f"priority={stream}" for stream in range(1, 6))]


def priorities(text: str) -> list[int]:
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("priority ")]


def test_streams_of_the_library_are_raised_and_counted(world: World, hip: Hip) -> None:
    """The program reads back what was asked for."""
    words = [*world.hosts("k"), *made(world), *(f"launch=k,8,64,0,{stream}" for stream in range(1, 6))]
    bare, done = hip(words), hip(words, CREATED)
    assert priorities(done.stdout) == priorities(bare.stdout) == [0] * 5
    assert done.priorities == [-1, -1, -1, 0, 0]
    assert done.totals["raised"] == done.totals["streams_created_raised"] == 3
    others = hip(made(world, "libother.so.1"), CREATED)
    assert priorities(others.stdout) == [0] * 5
    assert others.totals["streams_created_raised"] == 0


def test_flags_of_a_raised_stream_stay(world: World, hip: Hip) -> None:
    words = [f"library={world.comm()}", "libflags=0", "libflags=1", "flagsof=1", "flagsof=2"]
    bare, done = hip(words), hip(words, CREATED)
    assert done.stdout == bare.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("flags ")] == ["flags 0", "flags 1"]


def test_nothing_else_is_raised(world: World, hip: Hip) -> None:
    """HIP has no priority of a launch, and knows that of a stream at its creation only."""
    words = [*world.words(NCCL), *world.hosts(NCCL, "k"), "stream=0", "stream=0", f"library={world.comm()}"]
    for _ in range(40):
        words += [f"{how}={NCCL},16,64,0,1" for how in ("launch", "ext", "liblaunch")]
        words += ["launch=k,8,64,0,1", f"launch=k,{BLOCKS},64,0,2", "done=1", "record=2", "wait=1"]
    bare, done = hip([*words, "sync"]), hip([*words, "sync"], "streams: {raise: auto}")
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    assert done.launches == bare.launches
    assert (done.totals["raised"], done.totals["communication"]) == (0, 120)
    assert "raised" not in done.reasons and "raised" not in done.stderr.replace("0 raised", "")


# ---- Which policy is a device's: by what it is, not by its number ----


def test_each_kind_of_gpu_has_its_policy(world: World, hip: Hip, tmp_path: Path) -> None:
    text = 'policy: 1\nname: {}\ngpu: ["AMD Instinct {}*"]\nstreams: {{raise: off}}\n'
    text += "compute: [{{match: {{kernel: k}}, shape: {{blocks_per_sm: {}}}, when: always}}]\n"
    files = []
    for name, blocks in (("MI250X", 1), ("MI300X", 2)):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(text.format(name.lower(), name, blocks), encoding="ascii")
    policy = ",".join(map(str, files))
    words = world.hosts("k")
    for device in (0, 1, 0):
        words += [f"device={device}", f"launch=k,{BLOCKS},64", f"launch=k,{BLOCKS},64"]
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
