"""What may run beside what, from CUDA's documentation alone: a graph over all operations of a program, and what is
reachable in it.

A node for each operation of the device and for each time the host has seen something finished. `before[n]` is the set
of nodes that node n directly waits for, as bits of an integer; `ancestors(...)` is its transitive closure, over the
whole program. This is not how the library does it, on purpose.

Where the library is allowed to assume more order than is documented, that order is kept aside, in `allowed`, by the
number of the case in shim/core/WINDOWS.md; see conservative.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.windows.operations import EXTERNAL, Key, Op, device_of_default, key_of
from tests.windows.things import EAGER, Capture, Event, Graph, Launch, Node, Part, Stream, bits


class Model:
    def __init__(self, devices: int = 2) -> None:
        self.nodes: list[Node] = []
        self.before: list[int] = []
        self.known: list[int] = []  # ancestors by what the program has said so far, the node itself included
        self.parts: dict[int, Part] = {}  # nodes of captures that records, waits and communication hang on
        self.backward = False  # has an edge from a later operation to an earlier one
        self.host = 0
        self.streams: dict[Key, Stream] = {("legacy", d): Stream(d, True, legacy=True) for d in range(devices)}
        self.gone: list[Stream] = []
        self.events: dict[int, Event] = {}
        self.graphs: dict[int, Graph] = {}
        self.captures: list[Capture] = []
        self.waits: dict[int, int] = {}  # address -> nodes that wait for it, not yet satisfied
        self.writes: dict[int, int] = {}
        self.unknown_waits = 0  # nodes
        self.by_event: dict[int, int] = {}  # nodes that wait for an event -> where it was recorded
        self.of_context: set[int] = set()  # sights of a whole context
        self.communication: dict[tuple[int, int], int] = {}  # (world, device) -> nodes
        self.launches: list[Launch] = []
        self.allowed: dict[str, list[tuple[int, int]]] = {}  # case -> (node, further nodes that it may wait for)
        # Nodes of the host -> what it waited for by name. What was merely before that, it does not know by name.
        self.sights: dict[int, int] = {}
        self.used_streams: dict[tuple[int, int], set[Key]] = {}  # of communication
        self.ran_kernels: set[int] = set()  # operations that did, outside of captures
        self.left_behind = 0  # communication of streams that are gone: whoever takes over their places knows it
        self.at = -1

    # ---- nodes ----

    def add(self, before: int, world: int, device: int, communication: bool = False) -> int:
        """A new node, as a bit."""
        number = len(self.nodes)
        self.nodes.append(Node(self.at, world, device, communication))
        self.before.append(before)
        known = 1 << number
        for one in bits(before):
            known |= self.known[one]
        self.known.append(known)
        if communication:
            key = world, device
            self.communication[key] = self.communication.get(key, 0) | 1 << number
        return 1 << number

    def allow(self, case: str, node: int, more: int) -> None:
        if more:
            self.allowed.setdefault(case, []).append((node.bit_length() - 1, more))

    def everything(self) -> int:
        """All nodes so far that are not in a capture."""
        return sum(1 << number for number, node in enumerate(self.nodes) if node.world == EAGER)

    def stream(self, name: str, thread: int) -> Stream:
        key = key_of(name, thread)
        if key not in self.streams and not isinstance(key, int):
            self.streams[key] = Stream(device_of_default(name), True)
        return self.streams[key]

    def legacy(self, device: int) -> Stream:
        return self.streams["legacy", device]

    def blocking(self, device: int, streams: Sequence[Stream] | None = None) -> int:
        """Tails of the blocking streams of a context."""
        tails = 0
        for stream in self.streams.values() if streams is None else streams:
            if stream.blocking and stream.device == device:
                tails |= stream.tail
        return tails

    def act(self, stream: Stream, before: int = 0, communication: bool = False) -> int:
        """An operation on a stream that does not capture."""
        before |= self.host | stream.tail
        if stream.legacy:
            before |= self.blocking(stream.device)
        elif stream.blocking:
            before |= self.legacy(stream.device).tail
        stream.tail = self.add(before, EAGER, stream.device, communication)
        if stream.legacy and self.gone:
            # Not documented: whether the default stream waits for the work of a stream that was destroyed meanwhile.
            self.allow("10", stream.tail, self.blocking(stream.device, self.gone))
        if communication:
            self.allow("4", stream.tail, self.left_behind)
        return stream.tail

    def captured(self, stream: Stream, part: Part, before: int = 0) -> int:
        """An operation on a stream that captures."""
        capture = stream.capture
        assert capture
        node = self.add(stream.heads | before, capture.number, stream.device, part.communication)
        if part.communication or part.records or part.waits:
            self.parts[node] = part
        capture.nodes |= node
        stream.heads = node
        return node

    def do(self, stream: Stream, communication: bool = False) -> int:
        if stream.capture:
            return self.captured(stream, Part((), communication))
        return self.act(stream, 0, communication)

    def see(self, finished: int, named: int | None = None) -> int:
        """The host has seen these finished: before all that is called from now on."""
        self.host = self.add(self.host | finished, EAGER, -1)
        self.sights[self.host.bit_length() - 1] = finished if named is None else named
        return self.host

    # ---- graphs ----

    def template(self, nodes: int) -> list[Part]:
        place = {node: number for number, node in enumerate(bits(nodes))}
        parts = []
        for node in bits(nodes):
            part = self.parts.get(1 << node, Part(()))
            before = tuple(place[one] for one in bits(self.before[node]) if one in place)
            parts.append(part._replace(before=before))
        return parts

    def run(self, graph: Graph, first: int, world: int, device: int) -> int:
        """Its nodes behind `first`; all of them."""
        made: list[int] = []
        for part in graph.parts:
            before = first
            for one in part.before:
                before |= made[one]
            if part.waits and world == EAGER:
                before |= part.waits.record
            node = self.add(before, world, device, part.communication)
            if world == EAGER and part.records:
                part.records.record, part.records.capture = node, None
            elif world != EAGER and part != Part(part.before):
                self.parts[node] = part
            made.append(node)
        total = 0
        for node in made:
            total |= node
        return total

    def launch_graph(self, graph: Graph, stream: Stream) -> None:
        if stream.capture:
            first = self.captured(stream, Part(()))
            inside = self.run(graph, first, stream.capture.number, stream.device)
            stream.capture.nodes |= inside
            self.captured(stream, Part(()), inside)
            return
        first = self.act(stream, graph.latest)
        if any(part.waits for part in graph.parts):
            self.allow("2", first, self.everything() & ~first)
        if graph.has_communication:
            self.allow("4", first, self.left_behind)
        inside = self.run(graph, first, EAGER, stream.device)
        graph.latest = self.act(stream, inside)

    # ---- the whole ----

    def apply(self, op: Op, result: int = 0) -> None:
        """The next operation of the program; one that failed has not happened."""
        self.at += 1
        if result == 0:
            getattr(self, "_" + op.kind)(op)
        elif op.kind == "E":
            self.leave(op)  # it failed, but it has ended

    def leave(self, op: Op) -> None:
        capture = self.stream(op.stream, op.thread).capture
        if capture:
            capture.active = False
            for key in capture.members:
                self.streams[key].capture = None

    def closure(self, more: Sequence[tuple[int, int]] = ()) -> list[int]:
        """For each node all nodes that come before it, itself included."""
        return self._close(more) if more else self.known

    def _close(self, more: Sequence[tuple[int, int]] = ()) -> list[int]:
        before = list(self.before)
        for node, others in more:
            before[node] |= others
        found = [1 << number for number in range(len(before))]
        changed = True
        while changed:
            changed = False
            for number, direct in enumerate(before):
                total = found[number]
                for one in bits(direct):
                    total |= found[one]
                if total != found[number]:
                    found[number] = total
                    changed = True
        return found

    def possible(self, launch: Launch, closure: Sequence[int]) -> int:
        """The communication that it could run beside: nodes that nothing orders before or behind it."""
        unordered = launch.earlier & ~closure[launch.node]
        if unordered and self.backward:
            unordered &= ~sum(1 << c for c in bits(unordered) if closure[c] >> launch.node & 1)
        return unordered

    # ---- operations ----

    def _n(self, op: Op) -> None:
        self.streams[key_of(op.stream, 0)] = Stream(op.other, op.which == 0)

    def _x(self, op: Op) -> None:
        key = key_of(op.stream, 0)
        stream = self.streams.pop(key)
        self.gone.append(stream)
        for node in bits(self.communication.get((EAGER, stream.device), 0)):
            if self.known[stream.tail.bit_length() - 1] >> node & 1 if stream.tail else False:
                self.left_behind |= 1 << node

    def _e(self, op: Op) -> None:
        self.events[op.which] = Event(op.other)

    def _z(self, op: Op) -> None:
        del self.events[op.which]

    def _k(self, op: Op) -> None:
        stream = self.stream(op.stream, op.thread)
        world = stream.capture.number if stream.capture else EAGER
        earlier = self.communication.get((world, stream.device), 0)
        self.note_kernels(stream)
        node = self.do(stream).bit_length() - 1
        self.launches.append(Launch(self.at, node, key_of(op.stream, op.thread), earlier))

    def _c(self, op: Op) -> None:
        stream = self.stream(op.stream, op.thread)
        self.note_communication(stream, op)
        self.note_kernels(stream)
        self.do(stream, True)

    def _K(self, op: Op) -> None:
        self.launch_recording(op, self._k)

    def _C(self, op: Op) -> None:
        self.launch_recording(op, self._c)

    def launch_recording(self, op: Op, launch: Callable[[Op], None]) -> None:
        """A capture makes nodes of its two events; they tell nothing of the capture itself."""
        stream, start = self.stream(op.stream, op.thread), self.events[op.other]
        external = EXTERNAL if stream.capture else 0
        if start is not self.events[op.which]:
            start.of_start = True
            self._r(op._replace(which=op.other, other=external))
        launch(op)
        self._r(op._replace(other=external))

    def note_kernels(self, stream: Stream) -> None:
        if stream.capture:
            stream.capture.kernels = True
        else:
            self.ran_kernels.add(self.at)

    def note_communication(self, stream: Stream, op: Op) -> None:
        world = stream.capture.number if stream.capture else EAGER
        self.used_streams.setdefault((world, stream.device), set()).add(key_of(op.stream, op.thread))

    def _r(self, op: Op) -> None:
        event, stream = self.events[op.which], self.stream(op.stream, op.thread)
        if stream.capture and op.other == EXTERNAL:
            event.in_graph = True
            self.captured(stream, Part((), records=event))
        elif stream.capture:
            event.capture, event.heads = stream.capture, stream.heads
        else:
            event.record, event.capture = self.act(stream), None

    def _w(self, op: Op) -> None:
        event, stream = self.events[op.which], self.stream(op.stream, op.thread)
        if event.capture and op.other == 0:
            if not stream.capture:
                stream.capture, stream.heads = event.capture, 0
                event.capture.members.append(key_of(op.stream, op.thread))
            stream.heads |= event.heads
        elif stream.capture:
            event.in_graph = True
            # What the node will wait for when the graph is launched, nobody knows.
            self.unknown_waits |= self.captured(stream, Part((), waits=event))
        elif event.record:
            node = self.act(stream, event.record)
            self.by_event[node.bit_length() - 1] = event.record
            if event.vague:
                self.allow("2", node, self.everything() & ~node)
        elif stream.legacy or event.vague:
            # Documented as doing nothing, even for the default stream; the library may think otherwise.
            node = stream.tail = self.add(self.host | stream.tail, EAGER, stream.device)
            tails = self.blocking(stream.device) | self.blocking(stream.device, self.gone)
            self.allow("10", node, tails & ~node if stream.legacy else 0)
            self.allow("2", node, self.everything() & ~node if event.vague else 0)

    def _y(self, op: Op) -> None:
        stream = self.stream(op.stream, op.thread)
        node = self.see(stream.tail)
        if stream.legacy:
            self.allow("3", node, self.blocking(stream.device) | self.blocking(stream.device, self.gone))
        elif stream.blocking:
            self.allow("3", node, self.legacy(stream.device).tail)

    _q = _y

    def _Y(self, op: Op) -> None:
        self.see_events(self.events[op.which])

    _Q = _Y

    def _T(self, op: Op) -> None:
        self.see_events(self.events[op.which], self.events[op.other])

    def see_events(self, *events: Event) -> None:
        seen = 0
        for event in events:
            seen |= event.record
        node = self.see(seen, 0)
        if any(event.vague for event in events):
            self.allow("2", node, self.everything() & ~node)

    def _S(self, op: Op) -> None:
        self.of_context.add(len(self.nodes))
        self.see(sum(1 << i for i, node in enumerate(self.nodes) if node.world == EAGER and node.device == op.which))

    def copy(self, op: Op, waits: bool) -> None:
        node = self.act(self.stream(op.stream, op.thread))
        if waits:
            self.see(node)
        else:
            self.allow("3", self.see(0), node)

    def _h(self, op: Op) -> None:
        self.copy(op, True)

    _d = _h

    def _D(self, op: Op) -> None:
        self.copy(op, False)

    _m = _D

    def _a(self, op: Op) -> None:
        self.do(self.stream(op.stream, op.thread))

    _f = _H = _a

    def _A(self, op: Op) -> None:
        self.see(self.act(self.stream(op.stream, op.thread)))

    def _P(self, op: Op) -> None:
        pass

    def _b(self, op: Op) -> None:
        stream, key = self.stream(op.stream, op.thread), key_of(op.stream, op.thread)
        self.captures.append(Capture(len(self.captures) + 1, key, stream.device, [key]))
        stream.capture, stream.heads = self.captures[-1], 0

    def _E(self, op: Op) -> None:
        capture = self.stream(op.stream, op.thread).capture
        assert capture
        self.graphs[op.which] = Graph(capture.device, self.template(capture.nodes), kernels=capture.kernels)
        self.leave(op)

    def _g(self, op: Op) -> None:
        stream, graph = self.stream(op.stream, op.thread), self.graphs[op.which]
        if graph.has_communication:
            self.note_communication(stream, op)
        if graph.kernels:
            self.note_kernels(stream)
        self.launch_graph(graph, stream)

    def _G(self, op: Op) -> None:
        del self.graphs[op.which]

    def _B(self, op: Op) -> None:
        child = self.graphs[op.other]
        self.graphs[op.which] = Graph(child.device, child.parts, by_hand=True, kernels=child.kernels)

    def _N(self, op: Op) -> None:
        self.graphs[op.which] = Graph(0, [Part((), op.other == 1)], by_hand=True, kernels=True)

    def _v(self, op: Op) -> None:
        node = self.act(self.stream(op.stream, op.thread), self.writes.get(op.which, 0))
        self.unknown_waits |= node
        if op.which not in self.writes:
            self.waits[op.which] = self.waits.get(op.which, 0) | node

    def _V(self, op: Op) -> None:
        node = self.act(self.stream(op.stream, op.thread))
        self.writes[op.which] = node
        for one in bits(self.waits.pop(op.which, 0)):
            self.before[one] |= node
            self.backward = True
        if self.backward:
            self.known = self._close()

    def _u(self, op: Op) -> None:
        stream, other = self.stream(op.stream, op.thread), self.streams[op.which]
        assert stream.capture
        so_far = stream.capture.nodes
        stream.heads = other.heads if op.other else stream.heads | other.heads
        # A node of its own, so that the order allowed has something to hang on.
        self.allow("7", self.captured(stream, Part(())), so_far)
