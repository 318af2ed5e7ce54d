"""Overlap windows in front of real HIP runtimes: only GEMMs that can overlap communication get more LDS."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hip_world import FOOTPRINTS, NCCL, SMALL, start

POLICY = """\
policy: 1
name: windows
gpu: ["AMD Instinct MI250X*"]
when: overlapping
communication: {kernels: [all], priority: inherit}
compute:
  - {match: {kernel: "Cijk_*"}, shape: make_room, keep_at_least: 25%}
"""
# 5.2 numbers the types of nodes from 1 and not from 0: no kernel is found in its graphs.
NOT_SEEN_BY_5_2 = {"beside a graph that communicates"}


def test_only_what_can_overlap_is_shaped(
    build: Callable[..., Path],
    libraries: Path | None,
    clean_environment: Mapping[str, str],
    overlap: Callable[..., Any],
    tmp_path: Path,
) -> None:
    policy, report = tmp_path / "policy.yaml", tmp_path / "report"
    policy.write_text(POLICY)
    program = build("order")
    bare = start([program], clean_environment, tmp_path)
    run = [sys.executable, "-m", "pyshim.cli.run", "--policy", str(policy), "--report", str(report), "--trace", "--"]
    done = start([*run, program], clean_environment, tmp_path)
    assert (done.status, done.stdout) == (bare.status, bare.stdout) == (0, done.stdout), done.stderr
    expected = {line["blocks"]: line for line in done.lines}
    assert sum(line["overlaps"] for line in done.lines) >= 7

    def grown(packet: dict[str, Any]) -> bool:
        return bool(packet["group_segment"] > FOOTPRINTS[packet["kernel"]][0])

    packets = {packet["grid"][0] // 256: packet for packet in done.packets if packet["kernel"] == SMALL}
    found = {line["case"]: grown(packets[blocks]) for blocks, line in expected.items()}
    not_seen = NOT_SEEN_BY_5_2 if libraries is None else set()
    assert found == {line["case"]: line["overlaps"] and line["case"] not in not_seen for line in done.lines}
    assert not any(grown(packet) for packet in done.packets if packet["kernel"] == NCCL)
    assert len(done.packets) == len(bare.packets)

    said = overlap("report", str(report), "--launches", "--json")
    traced = {launch["blocks"]: launch for launch in map(json.loads, said.stdout.splitlines())}
    assert {line["case"]: traced[blocks]["overlapping"] for blocks, line in expected.items()} == found
    totals = json.loads(overlap("report", str(report), "--json").stdout)["totals"]
    assert totals["shaped"] == sum(found.values())
    assert (totals["raised"], totals["refused"]) == (0, 0)
