"""Programs without a HIP runtime; with GPUs of several kinds and vendors; and which processes have used one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hip_interposing import BLOCKS, Hip, World, by_kernel, runtime, smallest
from interposing import ONE, Build, same, smallest_size

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


def test_threads_that_meet_a_kernel_at_the_same_time(world: World, hip: Hip) -> None:
    build = (f'-DRUNTIME="{runtime("7").name}"', "-DVERSION=7", "-DWAY_LINKED", "-pthread")
    program = world.build("hip-race", "hip_race.c", *build, link=[runtime("7")])
    done = hip([world.fat], ONE, program=program, gpu="mi250x,2")
    assert (done.status, done.reasons) == (0, {"shaped": 6000})


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
