"""Nodes of graphs on real HIP runtimes: the LDS in the packets is what launches get, and the program sees its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hip_world import LARGE, SMALL, start
from test_hip_shim import POLICY, shaped, totals


def test_nodes_get_what_launches_get(
    build: Callable[..., Path], clean_environment: Mapping[str, str], overlap: Callable[..., Any], tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("make_room, keep_at_least: 25%", "{blocks_per_sm: 1}"))
    program: list[str | Path] = [build("graph_nodes")]
    bare = start(program, clean_environment, tmp_path)
    done = shaped(program, clean_environment, tmp_path, policy)
    assert (done.status, done.stdout) == (bare.status, bare.stdout), done.stderr
    assert [line["result"] for line in bare.lines if line["what"] in ("add", "set", "exec set", "launch")] == [0] * 9
    (attribute,) = [line["result"] for line in bare.lines if line["what"] == "attribute"]  # there is none in HIP 5.2
    shaped_to, static = 32769, 12288
    wanted = {blocks: {shaped_to} for blocks in (2101, 2102, 2103, 2104, 2105)}
    if attribute == 0:
        wanted |= {2102: {shaped_to, static}, 2105: {static}}  # the second node, before and after
    for packet in done.packets:
        if packet["kernel"] in (SMALL, LARGE):
            assert packet["group_segment"] in wanted[packet["grid"][0] // 256]
    assert len(done.packets) == len(bare.packets) == 9
    assert totals(overlap, tmp_path)["refused"] == 0
