"""Which streams somebody waits for, and which part of the computation is theirs: what shim/core/critical.h says, from
the whole program.

The library counts in periods, keeps what it has learnt, and forgets. Here everything that ever happened on a stream
counts: what is critical by this may be so, and what is not must not be.
"""

from __future__ import annotations

from tests.windows.model import Model
from tests.windows.operations import EXTERNAL, Key, Op, key_of
from tests.windows.things import Event, Stream

THREADS = 256
BLOCKS, BIG = 128, 8  # tests/programs/windows_gpu.h
GRAPH = 2**31 - 1  # nobody looks into a graph: it counts as much
WAITS = 3  # the first one begins a round, and two rounds must speak for it


class Waiting(Model):
    """Besides: for each launch of computation why its stream cannot be critical, in words; None where it can."""

    def __init__(self, devices: int = 2) -> None:
        super().__init__(devices)
        self.why_not: dict[int, str | None] = {}
        self.work = [0] * devices

    def apply(self, op: Op, result: int = 0) -> None:
        stream = self.named(op)
        if result == 0 and op.kind in "kK" and stream:
            self.why_not[self.at + 1] = self.doubt(stream)
        super().apply(op, result)
        if result == 0:
            self.follow(op, stream)

    def named(self, op: Op) -> Stream | None:
        key: Key | None = None if op.stream == "--" else key_of(op.stream, op.thread)
        if key is None or (isinstance(key, int) and key not in self.streams):
            return None
        return self.stream(op.stream, op.thread)

    def follow(self, op: Op, stream: Stream | None) -> None:
        if op.kind in "YQ":
            self.host_waits(self.events[op.which].by)
        if not stream or op.kind in "nx":
            return
        if op.kind == "P":
            stream.prioritised = True
        elif op.kind == "w":
            by = self.events[op.which].by
            if by is not stream and len(stream.waits) > 1:
                self.waited(by)
        if stream.capture:
            return
        if op.kind in "kK":
            self.launched(stream, THREADS * BLOCKS * (BIG if op.other & 2 and op.kind == "k" else 1))
        elif op.kind in "cC":
            self.waited(stream)
        elif op.kind == "g":
            self.ran(op, stream)
        elif op.kind in "yqAHhdDm":
            self.host_waits(stream)
        if op.kind in "rKC" and op.other != EXTERNAL:
            self.events[op.which].by = stream

    def ran(self, op: Op, stream: Stream) -> None:
        graph = self.graphs[op.which]
        self.launched(stream, GRAPH)
        if graph.has_communication:
            self.waited(stream)
        for part in graph.parts:
            if isinstance(part.records, Event):
                part.records.by = stream

    def launched(self, stream: Stream, threads: int) -> None:
        stream.work += threads
        self.work[stream.device] += threads

    def host_waits(self, stream: Stream | None) -> None:
        """Who waits for the legacy default stream waits for the blocking ones."""
        if not stream:
            return
        for other in list(self.streams.values()) if stream.legacy else [stream]:
            if other is stream or (other.blocking and other.device == stream.device):
                self.waited(other)

    def waited(self, stream: Stream | None) -> None:
        if stream:
            stream.waits.append((stream.work, self.work[stream.device]))

    def doubt(self, stream: Stream) -> str | None:
        if stream.legacy:
            return "it is the default stream"
        if stream.prioritised:
            return "the program has set its priority"
        if len(stream.waits) < WAITS:
            return f"somebody had waited for it {len(stream.waits)} times"
        return None if stream.minor() else "it was never minor between three waits in a row"
