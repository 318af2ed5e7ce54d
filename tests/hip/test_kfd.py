"""The simulated thunk below real runtimes: what a program asks for arrives in the packets, and data arrives whole."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hip_world import FOOTPRINTS, LIBRARIES, NCCL, PROGRAMS, ROOT, THUNK, Done, link, run, start

Build = Callable[..., Path]
Clean = Mapping[str, str]
QUEUE_PRIORITY = {-1: 3, 0: 0, 1: -3}  # HIP's priorities as the thunk's


def seen(done: Done) -> list[tuple[str, int, int, int]]:
    """Kernel, workgroups, threads and LDS of each packet."""
    rows = []
    for packet in done.packets:
        threads = packet["workgroup"][0] * packet["workgroup"][1] * packet["workgroup"][2]
        items = packet["grid"][0] * packet["grid"][1] * packet["grid"][2]
        rows.append((packet["kernel"], items // threads, threads, packet["group_segment"]))
    return rows


def asked(done: Done) -> list[tuple[str, int, int, int]]:
    return [
        (line["kernel"], line["blocks"], line["threads"], FOOTPRINTS[line["kernel"]][0] + line["dynamic"])
        for line in done.lines
    ]


@pytest.mark.parametrize("flags", [(), ("-fgpu-default-stream=per-thread",)], ids=["legacy", "per-thread"])
def test_packets_are_what_the_program_asked_for(
    build: Build, code_object: Path, clean_environment: Clean, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    done = start([build("launches", *flags), code_object], clean_environment, tmp_path)
    assert done.status == 0, done.stderr
    assert [line["way"] for line in done.lines if line["result"] != 0] == []
    assert len(done.lines) == 19
    assert sorted(seen(done)) == sorted(asked(done))
    for packet in done.packets:
        assert (packet["static_group_segment"], packet["registers"]) == FOOTPRINTS[packet["kernel"]]
    accumulating = {packet["registers"] - packet["accumulation_offset"] for packet in done.packets}
    assert accumulating == {0, 32, 64}


def test_the_priority_of_a_stream_arrives_at_its_queue(
    build: Build, code_object: Path, clean_environment: Clean, tmp_path: Path
) -> None:
    done = start([build("launches"), code_object], clean_environment, tmp_path)
    wanted = [QUEUE_PRIORITY[line["priority"]] for line in done.lines if line["way"] == "priority"]
    arrived = [packet for packet in done.packets if packet["kernel"] == NCCL][-3:]
    assert [packet["priority"] for packet in arrived] == wanted
    assert len({packet["queue"] for packet in arrived}) == 3


MI250X = ("AMD Instinct MI250X", "gfx90a", 110, 65536, 64, 64)
MI300X = ("AMD Instinct MI300X", "gfx942", 304, 65536, 192, 64)


@pytest.mark.parametrize(
    ("gpu", "devices"),
    [("", [MI250X]), ("mi250x:hold,3", [MI250X] * 3), ("mi300x+mi250x,3", [MI300X, MI250X, MI300X])],
)
def test_devices_are_those_that_simgpu_names(
    build: Build,
    libraries: Path | None,
    clean_environment: Clean,
    tmp_path: Path,
    gpu: str,
    devices: list[tuple[object, ...]],
) -> None:
    known = devices if libraries else [device for device in devices if device != MI300X]  # 5.2 knows no gfx942
    done = start([build("devices")], clean_environment, tmp_path, gpu)
    assert done.status == 0, done.stderr
    said = [(*line.values(),) for line in done.lines]
    assert [(name, architecture.split(":")[0], *rest) for name, architecture, *rest in said] == known


@pytest.mark.parametrize("gpu", ["mi250x", "mi250x,2"])
def test_bytes_arrive_by_every_way_of_copying(build: Build, clean_environment: Clean, tmp_path: Path, gpu: str) -> None:
    done = start([build("copies")], clean_environment, tmp_path, gpu)
    assert done.stdout == f"wrong: 0, devices: {gpu[-1] if ',' in gpu else 1}\n", done.stderr
    assert done.packets == []  # the runtimes' own kernels are no launches


# The numbers are HSA's: INVALID_ALLOCATION, INVALID_ARGUMENT, INCOMPATIBLE_ARGUMENTS, INVALID_PACKET_FORMAT.
CASES = """\
all LDS: done
more LDS: refused 0x1003
too many threads: refused 0x1001
no work-items: refused 0x100d
another type: refused 0x1009
and: waits
or: waits
equal: waits
not equal: waits
less: waits
greater or equal: waits
misaligned copy: 0, right
aligned copy: 0, right
fill: 0, right
copy behind a signal: 0, right
unlock: 0, right
"""


def test_packets_that_hip_seldom_writes(
    bookworm: Path, libraries: Path | None, clean_environment: Clean, tmp_path: Path
) -> None:
    program, place = tmp_path / "queue_cases", libraries or bookworm / LIBRARIES
    command = [*shlex.split(os.environ.get("CC", "cc")), "-O1", "-Wall", "-Werror", f"-I{bookworm}/usr/include"]
    command += [str(PROGRAMS / "queue_cases.c"), "-o", str(program), str(place / "libhsa-runtime64.so.1")]
    run([*command, *link(place)], os.environ)
    done = start([program], clean_environment, tmp_path)
    assert (done.status, done.stdout) == (0, CASES), done.stderr
    assert [packet["group_segment"] for packet in done.packets] == [65536]  # no other was taken


@pytest.mark.parametrize(
    ("gpu", "sentence"),
    [
        ("h100", "SIMGPU: `h100` is no GPU of AMD that can be simulated; known: mi250x mi300x"),
        ("mi250x,0", "SIMGPU: `0` is not a number of GPUs from 1 to 16"),
    ],
)
def test_a_mistake_in_simgpu_is_one_line_and_no_device(
    build: Build, clean_environment: Clean, tmp_path: Path, gpu: str, sentence: str
) -> None:
    done = start([build("copies")], clean_environment, tmp_path, gpu)
    assert done.status == 1  # hipMalloc failed
    assert [line for line in done.stderr.splitlines() if line.startswith("simgpu: ")] == [f"simgpu: {sentence}"]


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_layouts_are_those_of_the_public_headers(request: pytest.FixtureRequest, bookworm: Path, release: str) -> None:
    include = request.getfixturevalue(release) / "usr/include"
    folders = [ROOT / "tools/simgpu/kfd", include / "hsakmt", include]
    check = PROGRAMS / "kfd_abi_check.c"
    command = [*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-fsyntax-only"]
    command += [*(f"-I{folder}" for folder in folders), "-idirafter", str(bookworm / "usr/include"), str(check)]
    assert run(command, os.environ).stderr == ""
    # And it does compare: with one word more in ours the check fails.
    broken = subprocess.run([*command, "-Dcpu_mhz=cpu_mhz[2]"], capture_output=True, text=True, check=False)
    assert "size of HsaNodeProperties" in broken.stderr


def test_all_that_the_runtime_asks_the_thunk_for_is_there(
    request: pytest.FixtureRequest, bookworm: Path, libraries: Path | None
) -> None:
    def names(library: Path, *flags: str) -> set[str]:
        listed = run(["nm", "-D", *flags, str(library)], os.environ).stdout.split()
        return {word.split("@")[0] for word in listed if word.startswith("hsaKmt")}

    wanted = names((libraries or bookworm / LIBRARIES) / "libhsa-runtime64.so.1", "--undefined-only")
    assert len(wanted) >= 42
    assert wanted - names(THUNK / "libhsakmt.so.1", "--defined-only") == set()
