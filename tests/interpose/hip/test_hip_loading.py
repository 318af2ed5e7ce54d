"""How programs come by a HIP runtime, or by two, or by none; other processes and threads; NVIDIA's driver beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hip_interposing import BLOCKS, ONE, Hip, World, by_kernel, runtime, smallest
from interposing import Build, same, smallest_size

from pyshim.start import plan

LAUNCH = f"launch=k,{BLOCKS},64"
H100_TWO = smallest_size(2)


def test_no_runtime(world: World, hip: Hip) -> None:
    """A program that looks finds nothing, and one that calls all the same is told so."""
    program = world.build("hip-absent", "hip_absent.c")
    done = hip(program=program, policy=ONE)
    assert (done.status, done.stderr) == (0, "")
    first, *asked = done.stdout.splitlines()
    assert first == "3 3 3 3 3 3"
    assert [line.split(": ")[1] for line in asked] == ["none"] * 3 + ["found"] * 2  # those wait for a runtime's table
    off = hip(program=program, policy=ONE, env={"OVERLAP_RUN": "off"})
    assert off.stdout.splitlines()[1:] == hip(program=program).stdout.splitlines()


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address"])
def test_a_runtime_that_only_a_plugin_sees(way: str, world: World, hip: Hip) -> None:
    words = [world.plugin("7", way), *world.words("k"), LAUNCH, *world.hosts("k"), LAUNCH]
    bare, done = hip(words, program=world.host()), hip(words, ONE, program=world.host())
    same(done, bare, but=["dynamic_shared"])
    assert done.sizes == [smallest(1)] * 2
    assert done.totals["launches"] == 2


def test_a_runtime_that_is_only_looked_for(world: World, hip: Hip) -> None:
    """RTLD_NOLOAD: it is there because another library needs it, or it is not."""
    asks = world.plugin("7", "dlsym")
    words = [world.plugin("7"), "count", "--", asks, *world.words("k"), LAUNCH]
    env = {"HIP_OPEN": "noload"}
    bare, done = hip(words, program=world.host(), env=env), hip(words, ONE, program=world.host(), env=env)
    same(done, bare, but=["dynamic_shared"])
    assert done.totals["launches"] == 1
    absent = [asks, "count"]
    bare = hip(absent, program=world.host(), env=env)
    assert bare.status == 4
    same(hip(absent, ONE, program=world.host(), env=env), bare)


@pytest.mark.parametrize("way", ["symbol", "dlsym"])
def test_closed_and_opened_again(way: str, world: World, hip: Hip) -> None:
    plugin = world.plugin("7", way)
    words = [plugin, *world.words("k"), LAUNCH, "--", "close", plugin, *world.words("k"), LAUNCH]
    bare, done = hip(words, program=world.host()), hip(words, ONE, program=world.host())
    assert (done.status, done.stdout) == (bare.status, bare.stdout), done.stderr
    assert [launch["result"] for launch in done.launches] == [0, 0]
    assert done.sizes == [smallest(1)] * 2


@pytest.mark.parametrize("way", ["symbol", "dlsym"])
def test_a_runtime_that_was_closed_after_a_look(way: str, world: World, hip: Hip) -> None:
    """What was noted of it then must not be called any more, wherever it is by now."""
    probe = world.build("hip-probe", "hip_probe.c")
    words = [runtime("7"), world.plugin("7", way), *world.words("k"), LAUNCH, "sync"]
    bare, done = hip(words, program=probe), hip(words, ONE, program=probe)
    assert bare.stdout.endswith("launch k: 0\nsync: 0\n")
    same(done, bare, but=["dynamic_shared"])
    assert done.sizes == [smallest(1)]


@pytest.mark.parametrize("way", ["symbol", "dlsym"])
@pytest.mark.parametrize("versions", [("6", "7"), ("7", "5")])
def test_two_runtimes_in_one_process(way: str, versions: tuple[str, str], world: World, hip: Hip) -> None:
    """A program's own and one that a package has brought: each library is served by its own."""
    words: list[object] = []
    for version in (*versions, versions[0]):
        words += [world.plugin(version, way), *world.words("k"), LAUNCH, *world.hosts("k"), LAUNCH, "sync", "--"]
    bare, done = hip(words[:-1], program=world.host()), hip(words[:-1], ONE, program=world.host())
    assert bare.stdout.count("launch k: 0") == 6
    assert (done.status, done.stdout) == (bare.status, bare.stdout), done.stderr
    assert [launch["result"] for launch in done.launches] == [0] * 6
    assert done.sizes[:2] == [smallest(1)] * 2
    assert done.stderr.count("overlap: there are several HIP runtimes in this process: ") == (way == "symbol")


def test_threads_and_children(world: World, hip: Hip) -> None:
    words = [*world.hosts("k"), LAUNCH, "thread", LAUNCH, LAUNCH, "end_thread", LAUNCH]
    bare, done = hip(words), hip(words, ONE)
    same(done, bare, but=["dynamic_shared", "stream"])
    assert done.totals["launches"] == 4
    assert done.sizes == [smallest(1)] * 4


def test_a_child_that_begins_with_hip_is_counted_apart(world: World, hip: Hip) -> None:
    words = ["fork", *world.hosts("k"), LAUNCH, "join", *world.hosts("k"), LAUNCH, LAUNCH]
    bare, done = hip(words), hip(words, ONE)
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    assert sorted(process["launches"] for process in done.report["processes"]) == [1, 2]
    assert done.sizes == [smallest(1)] * 3


def test_a_program_that_execs(world: World, hip: Hip) -> None:
    words = [*world.hosts("k"), LAUNCH, "exec", *world.hosts("k"), LAUNCH, LAUNCH]
    bare, done = hip(words), hip(words, ONE)
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    assert sorted(process["launches"] for process in done.report["processes"]) == [1, 2]
    assert done.sizes == [smallest(1)] * 3


# ---- NVIDIA's driver beside it ----

OF_AMD = """policy: 1
name: of-amd
gpu: ["AMD *"]
streams: {{raise: off}}
compute: [{{match: {{kernel: k}}, shape: {{blocks_per_sm: 1}}, when: {when}}}]
"""
OF_NVIDIA = OF_AMD.replace("of-amd", "of-nvidia").replace("AMD", "NVIDIA").replace("per_sm: 1", "per_sm: 2")


@pytest.fixture
def both(world: World) -> Path:
    return world.build("hip-both", "hip_both.c", link=[plan.SIMULATED_DRIVER, runtime("7")])


def policies(folder: Path, when: str) -> str:
    files = {"amd": OF_AMD, "nvidia": OF_NVIDIA}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text.format(when=when), encoding="ascii")
    return ",".join(str(folder / f"{name}.yaml") for name in files)


def test_either_vendor_is_shaped_by_its_own_policy(both: Path, world: World, hip: Hip, tmp_path: Path) -> None:
    env = {"LD_LIBRARY_PATH": f"{runtime('7').parent}:{Path(plan.SIMULATED_DRIVER).parent}"}
    words = [world.code, "cuda", "hip", "cuda", "hip"]
    bare = hip(words, program=both, gpu="h100+mi250x", env=env)
    assert (bare.status, bare.sizes) == (0, [0] * 4), bare.stderr
    done = hip(words, policies(tmp_path, "always"), program=both, gpu="h100+mi250x", env=env)
    same(done, bare, but=["dynamic_shared", "stream"])
    assert done.sizes == [H100_TWO, smallest(1)] * 2
    assert done.totals["launches"] == 4
    [process] = done.report["processes"]
    assert sorted((device["name"], device["policy"]) for device in process["devices"]) == [
        ("AMD Instinct MI250X", "of-amd"),
        ("NVIDIA H100 80GB HBM3", "of-nvidia"),
    ]


def test_windows_of_the_vendors_are_apart(both: Path, world: World, hip: Hip, tmp_path: Path) -> None:
    """What communicates on one opens no window on the other."""
    env = {"LD_LIBRARY_PATH": f"{runtime('7').parent}:{Path(plan.SIMULATED_DRIVER).parent}"}
    policy = policies(tmp_path, "overlapping")
    for first, other in (("cuda", "hip"), ("hip", "cuda")):
        words = [world.code, f"{first}-comm", other, first]
        done = hip(words, policy, program=both, gpu="h100+mi250x", env=env)
        wanted = {"cuda": H100_TWO, "hip": smallest(1)}[first]
        assert by_kernel(done)["k"] == [0, wanted], (first, done.stderr)


# ---- Which process has used a GPU ----

OPENED = "overlap: this process opened a GPU, but no kernel launch was seen"


def test_a_launch_is_the_first_call_and_opens_a_gpu(world: World, hip: Hip) -> None:
    """HIP needs neither hipInit nor hipMalloc before."""
    done = hip([*world.words("k"), LAUNCH], ONE, env={"RANK": "0"})
    assert done.stderr.startswith("overlap: raised no stream (0 of 1 launch), 1 shaped,"), done.stderr
    assert [page["opened_gpu"] for page in done.report["processes"]] == [True]


@pytest.mark.parametrize(
    ("device", "mapped", "words", "said"),
    [
        ("kfd", False, "", True),
        ("kfd2", False, "", False),
        ("kfd", False, "count", False),  # by HIP, and what it launches would be seen
        ("nvidia-uvm", True, "", True),
        ("nvidia-uvm", True, "count", True),
        ("nvidia-uvm", False, "", False),  # there is no context: NVML, which only watches
        ("nvidia0", True, "", False),
    ],
)
def test_a_device_that_is_open_behind_our_back(
    device: str, mapped: bool, words: str, said: bool, build: Build, world: World, hip: Hip
) -> None:
    """As by a library that reaches the GPU on a way of its own; a folder of devices is made in a namespace."""
    maps = build("maps-9.so", "maps_9.c", "-shared", "-fPIC")
    script = f"mount -t tmpfs none /dev && echo x >/dev/{device} && exec 9</dev/{device} && "
    script += f"LD_PRELOAD=$LD_PRELOAD{f':{maps}' if mapped else ''} exec {world.client()} {words}"
    program = world.folder / "opens-a-device"
    program.write_text(f'#!/bin/sh\n[ -n "$INSIDE" ] || INSIDE=1 exec unshare -rm "$0"\n{script}\n', encoding="ascii")
    program.chmod(0o755)
    done = hip(program=program, policy=ONE, env={"RANK": "0"})
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("needs a namespace of its own for /dev")
    assert done.stderr.startswith(OPENED) is said, done.stderr
