"""The arms of the overlap suite: one closed table of names, for those that measure and for those that read.

An arm is a way to run one cell (a kernel of computation and a collective that could run beside it). Without
"+priority" both streams have the same priority.
"""

from __future__ import annotations

import re

ARMS = {
    "computation": "computation alone",
    "communication": "communication alone",
    "sequential": "one after the other, on one stream",
    "plain": "two streams of the same priority, communication launched second",
    "priority": "the stream of communication has the greatest priority",
    "order": "the host launches communication first; in loops and pairs computation waits until all blocks of the "
    "collective have started (launch completion event)",
    "order+priority": "both of these",
    "connections-1": "plain with CUDA_DEVICE_MAX_CONNECTIONS=1, in a process of its own",
    "cluster-1": "communication without clusters; NCCL's default on Hopper is clusters of four",
    "cluster-1+priority": "the same, with priority",
    "ctas-8": "communication by 8 blocks, the same bytes",
    "ctas-16": "communication by 16 blocks, the same bytes",
    "ctas-24": "communication by 24 blocks, the same bytes",
    "ctas-32": "communication by 32 blocks, the same bytes",
    "threads-288": "communication by blocks of 288 threads instead of 544, the same bytes",
    "threads-288+priority": "the same, with priority",
    "sm-target": "computation leaves as many multiprocessors as communication has blocks; where the kernel can",
    "sm-target+cluster-1": "the same, and communication without clusters",
    "green": "communication has multiprocessors of its own, by a green context",
    "copy-engine": "the same bytes by cuMemcpyAsync: no multiprocessor is needed, the upper anchor",
    "memcpy": "the same bytes by cuMemcpyAsync inside the device, which is no copy engine's work",
    "policy:observe": "behind overlap-run, which changes nothing",
    "policy:h200": "behind overlap-run with the default policy",
    "policy:h200-paper": "behind overlap-run with the published method: half of the blocks",
    "policy:make-room": "behind overlap-run: the rule, and room for communication where there can be some",
}
SHAPE = re.compile(r"shape-(\d+)(\+priority)?")  # so many resident blocks, with the largest carve-out


def shape(blocks: int, priority: bool = False) -> str:
    return f"shape-{blocks}{'+priority' * priority}"


def blocks_of(arm: str) -> int | None:
    """Resident blocks on a multiprocessor that a shape arm leaves; None: no shape arm."""
    found = SHAPE.fullmatch(arm)
    return int(found[1]) if found else None


def known(arm: str) -> bool:
    return arm in ARMS or SHAPE.fullmatch(arm) is not None


def meaning(arm: str) -> str:
    """One sentence; KeyError for a name that is none of ours."""
    blocks = blocks_of(arm)
    if blocks is None:
        return ARMS[arm]
    more = ", and priority" if arm.endswith("+priority") else ""
    return f"at most {blocks} blocks of computation on a multiprocessor, by dynamic shared memory{more}"
