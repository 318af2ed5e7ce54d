"""The shim in front of real HIP runtimes: the LDS in the packets is what the planner says, and nothing else changes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hip_world import FOOTPRINTS, LARGE, LIBRARIES, NCCL, PROGRAMS, Done, link, run, start

Build = Callable[..., Path]
Clean = Mapping[str, str]
Planned = Callable[[Sequence[tuple[str, int]], tuple[int, int]], list[int]]

POLICY = """\
policy: 1
name: raise-gemm
gpu: ["AMD Instinct MI250X*"]
communication: {kernels: [all]}
compute:
  - {match: {kernel: "Cijk_*"}, shape: make_room, keep_at_least: 25%, when: always}
"""
# Of the ways to launch, those that no policy changes (and grids of one wave, which these two launch). The kernels of
# modules are left alone because the runtime's number of registers may be too low.
NODE = "hipGraphAddKernelNode"  # of which nothing is seen
LEFT = (NODE, "capture", "hipLaunchByPtr", "hipLaunchCooperativeKernel", "hipExtLaunchMultiKernelMultiDevice")
OF_MODULES = ("hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def planned(overlap: Callable[..., Any], policy: Path) -> Planned:
    """What `overlap explain` says that launches get, beside communication of this LDS and these registers."""

    def answer(launches: Sequence[tuple[str, int]], communication: tuple[int, int]) -> list[int]:
        sizes = []
        for kernel, asked in launches:
            static, registers = FOOTPRINTS[kernel]
            request: dict[str, object] = {"gpu": "mi250x", "threads": 256, "registers": registers}
            request |= {"static_smem": static, "dynamic_smem": asked, "comm_threads": 256}
            request |= {"comm_registers": communication[1], "comm_static_smem": communication[0]}
            request |= {"comm_dynamic_smem": 0, "policy": policy, "kernel": kernel, "blocks": 2000}
            words = [word for name, value in request.items() for word in (f"--{name.replace('_', '-')}", str(value))]
            done = overlap("explain", *words, "--json")
            assert done.returncode == 0, done.stderr
            sizes.append(int(json.loads(done.stdout)["dynamic_shared_memory"]))
        return sizes

    return answer


def shaped(command: list[str | Path], clean: Clean, folder: Path, policy: str | Path, gpu: str = "mi250x") -> Done:
    command_line = [
        sys.executable,
        "-m",
        "pyshim.cli.run",
        "--policy",
        str(policy),
        "--report",
        str(folder / "report"),
        "--",
    ]
    return start([*command_line, *command], clean, folder, gpu)


def totals(overlap: Callable[..., Any], folder: Path) -> dict[str, Any]:
    return dict(json.loads(overlap("report", str(folder / "report"), "--json").stdout)["totals"])


@pytest.mark.parametrize("flags", [(), ("-fgpu-default-stream=per-thread",)], ids=["legacy", "per-thread"])
def test_gemm_gets_what_the_planner_says_and_communication_is_untouched(
    build: Build,
    code_object: Path,
    clean_environment: Clean,
    overlap: Callable[..., Any],
    policy: Path,
    planned: Planned,
    tmp_path: Path,
    flags: tuple[str, ...],
) -> None:
    program = [build("launches", *flags), code_object]
    bare = start(program, clean_environment, tmp_path)
    done = shaped(program, clean_environment, tmp_path, policy)
    assert (done.status, done.stdout) == (bare.status, bare.stdout), done.stderr
    answers = planned([(line["kernel"], line["dynamic"]) for line in bare.lines], FOOTPRINTS[NCCL])
    raised = 0
    wanted = []
    for line, answer in zip(bare.lines, answers):
        left = line["kernel"] == NCCL or line["way"] in LEFT or line["way"].startswith(OF_MODULES)
        dynamic = line["dynamic"] if left else answer
        raised += dynamic > line["dynamic"]
        wanted.append((line["kernel"], line["blocks"] * 256, FOOTPRINTS[line["kernel"]][0] + dynamic))
    assert raised >= 5
    arrived = [
        (packet["kernel"], packet["grid"][0] * packet["grid"][1], packet["group_segment"]) for packet in done.packets
    ]
    assert sorted(arrived) == sorted(wanted)
    assert max(packet["group_segment"] for packet in done.packets) <= 65536
    counted = totals(overlap, tmp_path)
    assert counted["launches"] == sum(line["way"] != NODE for line in bare.lines)
    assert counted["shaped"] == raised
    assert counted["communication"] == sum(line["kernel"] == NCCL for line in bare.lines)
    assert counted["refused"] == 0


def test_observe_changes_no_packet(
    build: Build, code_object: Path, clean_environment: Clean, overlap: Callable[..., Any], tmp_path: Path
) -> None:
    program = [build("launches"), code_object]
    bare = start(program, clean_environment, tmp_path)
    done = shaped(program, clean_environment, tmp_path, "observe")
    assert (done.status, done.stdout, done.packets) == (bare.status, bare.stdout, bare.packets)
    assert totals(overlap, tmp_path)["launches"] == sum(line["way"] != NODE for line in bare.lines)


def test_only_what_can_overlap_communication_is_shaped(
    build: Build, clean_environment: Clean, policy: Path, planned: Planned, tmp_path: Path
) -> None:
    (raised,) = planned([(LARGE, 0)], FOOTPRINTS[NCCL])
    policy.write_text(POLICY.replace("when: always", "when: overlapping"))
    done = shaped([build("windows")], clean_environment, tmp_path, policy)
    assert (done.status, done.stdout) == (0, ""), done.stderr
    static = FOOTPRINTS[LARGE][0]
    found = {packet["grid"][0] // 256: packet["group_segment"] for packet in done.packets if packet["kernel"] == LARGE}
    beside = {2000 + step: static + raised for step in range(4)}
    assert found == {**beside, **{3000 + step: static for step in range(4)}}


def test_launches_by_dlsym_are_counted_too(
    libraries: Path | None,
    bookworm: Path,
    code_object: Path,
    clean_environment: Clean,
    overlap: Callable[..., Any],
    policy: Path,
    tmp_path: Path,
) -> None:
    place = libraries or bookworm / LIBRARIES
    program = tmp_path / "dlsym_launch"
    command = [*shlex.split(os.environ.get("CC", "cc")), str(PROGRAMS / "dlsym_launch.c"), "-o", str(program), "-ldl"]
    run([*command, *link(place)], os.environ)
    words = [program, place / "libamdhip64.so.5", code_object, LARGE, "2000"]
    done = shaped(words, clean_environment, tmp_path, policy)
    assert (done.status, done.stdout) == (0, "0\n0\n"), done.stderr
    assert [packet["group_segment"] for packet in done.packets] == [19808, FOOTPRINTS[LARGE][0]]
    counted = totals(overlap, tmp_path)
    assert counted["launches"] == 2
    assert counted["reasons"] == {"communication": 1, "unknown_footprint": 1}


def test_copies_are_not_disturbed(build: Build, clean_environment: Clean, policy: Path, tmp_path: Path) -> None:
    done = shaped([build("copies")], clean_environment, tmp_path, policy, "mi250x,2")
    assert (done.status, done.stdout) == (0, "wrong: 0, devices: 2\n"), done.stderr
