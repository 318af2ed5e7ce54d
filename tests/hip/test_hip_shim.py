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

from pyshim.explain.answer import Explainer

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
# Of the ways to launch, those that no policy changes (and grids of one wave, which these two launch).
NODE = "hipGraphAddKernelNode"  # of which nothing is seen
LEFT = (NODE, "capture", "hipLaunchCooperativeKernel", "hipExtLaunchMultiKernelMultiDevice")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def planned(library: object, policy: Path) -> Planned:
    """What `overlap explain` says that launches get, beside communication of this LDS and these registers."""
    explainer = Explainer({})

    def answer(launches: Sequence[tuple[str, int]], communication: tuple[int, int]) -> list[int]:
        found = []
        for kernel, asked in launches:
            static, registers = FOOTPRINTS[kernel]
            request = {"gpu": "mi250x", "threads": 256, "registers": registers, "static_smem": static}
            request |= {"dynamic_smem": asked, "comm_threads": 256, "comm_registers": communication[1]}
            request |= {"comm_static_smem": communication[0], "comm_dynamic_smem": 0}
            request |= {"policy": str(policy), "kernel": kernel, "blocks": 2000}
            found.append(explainer.answer(request)["dynamic_shared_memory"])
        return found

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
        left = line["kernel"] == NCCL or line["way"] in LEFT
        dynamic = line["dynamic"] if left else answer
        raised += dynamic > line["dynamic"]
        wanted.append((line["kernel"], line["blocks"] * 256, FOOTPRINTS[line["kernel"]][0] + dynamic))
    assert raised >= 10
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


def test_launches_by_dlsym_are_shaped_too(
    libraries: Path | None,
    bookworm: Path,
    code_object: Path,
    clean_environment: Clean,
    overlap: Callable[..., Any],
    policy: Path,
    planned: Planned,
    tmp_path: Path,
) -> None:
    place = libraries or bookworm / LIBRARIES
    program = tmp_path / "dlsym_launch"
    command = [*shlex.split(os.environ.get("CC", "cc")), str(PROGRAMS / "dlsym_launch.c"), "-o", str(program), "-ldl"]
    run([*command, *link(place)], os.environ)
    words = [program, place / "libamdhip64.so.5", code_object, LARGE, "2000"]
    (raised,) = planned([(LARGE, 0)], FOOTPRINTS[NCCL])
    bare = start(words, clean_environment, tmp_path)
    done = shaped(words, clean_environment, tmp_path, policy)
    for one, dynamic in ((bare, 0), (done, raised)):
        assert (one.status, one.stdout) == (0, "0\n0\n"), one.stderr
        assert [packet["group_segment"] for packet in one.packets] == [19808, FOOTPRINTS[LARGE][0] + dynamic]
    assert totals(overlap, tmp_path)["entry_points"]["dlsym"] == 2


def test_copies_are_not_disturbed(build: Build, clean_environment: Clean, policy: Path, tmp_path: Path) -> None:
    done = shaped([build("copies")], clean_environment, tmp_path, policy, "mi250x,2")
    assert (done.status, done.stdout) == (0, "wrong: 0, devices: 2\n"), done.stderr
