"""Priorities of streams, and those that do not do what they say. The smaller number is the greater priority.

What traces say: nsys the priority of every stream that was created (TARGET_INFO_CUDA_STREAM); torch.profiler that of
each kernel's launch, from CUDA 13.1 on; the simulated GPU as well. No trace says with which flags a graph was
instantiated, but its kernels have priorities.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from pyshim.profiles.record import Call, Trace, TracedLaunch

_CREATES = re.compile(r"(cuda|cu|hip)StreamCreateWithPriority(_\w+)?")
_SMALLER = "the smaller number is the greater priority"


class Priorities:
    """Those of the streams of one process."""

    def __init__(
        self, launches: Sequence[TracedLaunch], trace: Trace, process: int | None, calls: Iterable[Call]
    ) -> None:
        self.of: dict[tuple[int, str], int] = {}  # streams that ran kernels
        graphs: defaultdict[int | None, list[TracedLaunch]] = defaultdict(list)
        for one in launches:
            if one.graph:
                graphs[one.correlation].append(one)
                continue
            known = trace.priority_of(process, one.stream) if one.priority is None else one.priority
            if known is not None:
                self.of[one.device, one.stream] = known
        # Of a graph on one stream, no node can pass another one.
        branched = [nodes for nodes in graphs.values() if len({node.stream for node in nodes}) > 1]
        self.graphs = {node.priority for nodes in branched for node in nodes if node.priority is not None}
        self.creations = sum(1 for call in calls if _CREATES.fullmatch(call.name))
        self.created = list(trace.priorities_of(process))

    @property
    def differ(self) -> bool:
        """Whether the program has given a priority to a stream that ran kernels."""
        return any(self.of.values())

    def is_greater(self, place: tuple[int, str], other: tuple[int, str]) -> bool:
        """Whether a stream is known to have the greater priority of the two."""
        return place in self.of and other in self.of and self.of[place] < self.of[other]


def faults(own: Priorities, inversions: Collection[tuple[tuple[int, str], tuple[int, str]]]) -> Iterator[str]:
    """Yield sentences about priorities that do not do what they say.

    inversions: a stream whose work waited at some cost, and the one in front of it."""
    for place, front in sorted(inversions):
        if own.is_greater(front, place):
            yield (
                f"stream {place[1]} has priority {own.of[place]}, and stream {front[1]} in front of it "
                f"{own.of[front]}: {_SMALLER}"
            )
    same = set(own.of.values())
    if len(own.of) > 1 and len(same) == 1 and same != {0}:
        yield f"all {len(own.of)} streams that ran kernels have priority {min(same)}: equal priorities do nothing"
    if own.creations and own.created and min(own.created) >= 0:
        yield (
            f"streams were created with priority ({own.creations} x), and all have {max(own.created)}, the lowest: "
            f"{_SMALLER}"
        )
    if len(own.graphs) == 1 and own.of and min(own.of.values()) < min(own.graphs):
        yield (
            f"all kernels of graphs ran at priority {min(own.graphs)}, although a stream has {min(own.of.values())}: "
            "without cudaGraphInstantiateFlagUseNodePriority a graph has the priority of the stream it is launched into"
        )
