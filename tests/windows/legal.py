"""Which operations a program may do next: those that the driver documents as allowed, that need no time to be right
(no two captures that would have to be merged, say), and after which the program still ends.
"""

from __future__ import annotations

from tests.windows.model import Model
from tests.windows.operations import EXTERNAL, NO_STREAM, NotAProgram, Op, Program, key_of
from tests.windows.operations import WORDS as MEANING
from tests.windows.things import Capture, Stream, bits

DEVICES = 2
EVENTS, GRAPHS, VALUES = 11, 10, 16  # that a program has, in tests/programs/windows.c


class Legal(Model):
    """A program as it is made. Operations are applied as if all succeeded, and queries as if nothing was done yet."""

    def __init__(self, devices: int = DEVICES) -> None:
        super().__init__(devices)
        self.devices = devices
        self.program: list[Op] = []
        self.written: set[int] = set()

    def apply(self, op: Op, result: int = 0) -> None:
        self.program.append(op)
        super().apply(op, 600 if op.kind in "qQT" else result)

    def try_(self, op: Op) -> bool:
        allowed = self.allows(op)
        if allowed:
            self.apply(op)
        return allowed

    def allows(self, op: Op) -> bool:
        return bool(getattr(self, "may_" + op.kind)(op))

    # ---- what operations have in common ----

    def exists(self, op: Op) -> bool:
        if op.stream == NO_STREAM:
            return False
        key = key_of(op.stream, op.thread)
        return not isinstance(key, int) or key in self.streams

    def captures_implicitly(self, device: int) -> bool:
        """A blocking stream captures: the default stream must not be touched."""
        return any(s.capture and s.blocking and s.device == device for s in self.streams.values())

    def usable(self, op: Op) -> Stream | None:
        """The stream, if an operation may be put into it now."""
        if not self.exists(op):
            return None
        stream = self.stream(op.stream, op.thread)
        return None if stream.legacy and self.captures_implicitly(stream.device) else stream

    def eager(self, op: Op) -> Stream | None:
        stream = self.usable(op)
        return stream if stream and not stream.capture else None

    def stuck(self, nodes: int) -> bool:
        """Waiting for these on the host would be for ever: a value that they wait for is not written yet."""
        pending = self.pending()
        return pending != 0 and any(self.known[node] & pending for node in bits(nodes))

    def pending(self) -> int:
        pending = 0
        for nodes in self.waits.values():
            pending |= nodes
        return pending

    def in_capture(self, index: int) -> bool:
        return index in self.events and self.events[index].capture is not None

    def capturing(self) -> bool:
        return any(capture.active for capture in self.captures)

    def joined(self, capture: Capture) -> bool:
        heads = self.streams[capture.origin].heads
        known = 0
        for node in bits(heads):
            known |= self.known[node]
        others = capture.nodes
        for key in capture.members:
            others |= self.streams[key].heads
        return not others & ~known

    # ---- one for each kind ----

    def may_n(self, op: Op) -> bool:
        return key_of(op.stream, 0) not in self.streams and op.other < self.devices

    def may_x(self, op: Op) -> bool:
        return op.stream[0] in "st" and self.exists(op) and not self.stream(op.stream, 0).capture

    def may_e(self, op: Op) -> bool:
        return op.which not in self.events and op.other < self.devices

    def may_z(self, op: Op) -> bool:
        if op.which not in self.events:
            return False
        event = self.events[op.which]
        return not event.in_graph and not (event.capture and event.capture.active)

    def may_k(self, op: Op) -> bool:
        return self.usable(op) is not None

    may_c = may_a = may_f = may_H = may_k

    def may_K(self, op: Op) -> bool:
        external = EXTERNAL if self.exists(op) and self.stream(op.stream, op.thread).capture else 0
        return all(self.may_r(op._replace(which=event, other=external)) for event in (op.which, op.other))

    may_C = may_K

    def may_r(self, op: Op) -> bool:
        stream = self.usable(op)
        if not stream or op.which not in self.events or self.events[op.which].device != stream.device:
            return False
        return op.other != EXTERNAL or (stream.capture is not None and not self.in_capture(op.which))

    def may_w(self, op: Op) -> bool:
        stream = self.usable(op)
        if not stream or op.which not in self.events:
            return False
        event = self.events[op.which]
        if not event.capture:
            # A capture waits for what is outside of it only by a node, and for no event of another device.
            return (stream.capture is not None) == (op.other == 1) and (not op.other or bool(event.record))
        if op.other or not event.capture.active or stream.legacy or stream.device != event.capture.device:
            return False
        return stream.capture is None or stream.capture is event.capture

    def may_y(self, op: Op) -> bool:
        stream = self.eager(op)
        if not stream:
            return False
        tails = stream.tail | (self.blocking(stream.device) if stream.legacy else 0)
        return not self.stuck(tails)

    def may_A(self, op: Op) -> bool:
        stream = self.eager(op)
        if not stream:
            return False
        tails = stream.tail | (self.legacy(stream.device).tail if stream.blocking else 0)
        return not self.stuck(tails | (self.blocking(stream.device) if stream.legacy else 0))

    def may_P(self, op: Op) -> bool:
        return op.stream[0] in "st" and self.eager(op) is not None

    def may_q(self, op: Op) -> bool:
        return self.eager(op) is not None

    def may_Y(self, op: Op) -> bool:
        event = self.events.get(op.which)
        return event is not None and not event.capture and not self.stuck(event.record)

    def may_Q(self, op: Op) -> bool:
        return op.which in self.events and not self.in_capture(op.which)

    def may_T(self, op: Op) -> bool:
        both = [self.events.get(op.which), self.events.get(op.other)]
        devices = {event.device for event in both if event and event.record and not event.capture}
        return len(devices) == 1 and all(event and event.record and not event.capture for event in both)

    def may_S(self, op: Op) -> bool:
        return op.which < self.devices and not self.capturing() and not self.waits

    def may_h(self, op: Op) -> bool:
        stream = self.eager(op) if op.stream[0] in "lp" else None
        if not stream:
            return False
        tails = stream.tail | self.legacy(stream.device).tail
        return not self.stuck(tails | (self.blocking(stream.device) if stream.legacy else 0))

    may_d = may_D = may_m = may_h

    def may_b(self, op: Op) -> bool:
        stream = self.eager(op)
        return stream is not None and not stream.legacy

    def may_E(self, op: Op) -> bool:
        if not self.exists(op) or op.which in self.graphs:
            return False
        capture = self.stream(op.stream, op.thread).capture
        return capture is not None and capture.origin == key_of(op.stream, op.thread) and self.joined(capture)

    def may_g(self, op: Op) -> bool:
        stream, graph = self.usable(op), self.graphs.get(op.which)
        if not stream or not graph or graph.device != stream.device:
            return False
        # An event that is being captured cannot be recorded or waited for by a graph, nor by a child graph.
        events = [event for part in graph.parts for event in (part.records, part.waits) if event]
        return not events or not (stream.capture or any(event.capture for event in events))

    def may_G(self, op: Op) -> bool:
        return op.which in self.graphs

    def may_B(self, op: Op) -> bool:
        child = self.graphs.get(op.other)
        if op.which in self.graphs or not child:
            return False
        return not any(part.records or part.waits for part in child.parts)

    def may_N(self, op: Op) -> bool:
        return op.which not in self.graphs

    def may_v(self, op: Op) -> bool:
        return self.eager(op) is not None

    def may_V(self, op: Op) -> bool:
        """Each address is written once, by something that does not itself wait for that."""
        stream = self.eager(op)
        if not stream or op.which in self.writes:
            return False
        tails = stream.tail
        if stream.blocking:
            tails |= self.blocking(stream.device) if stream.legacy else self.legacy(stream.device).tail
        waiting = self.waits.get(op.which, 0)
        return not any(self.known[node] & waiting for node in bits(tails))

    def may_u(self, op: Op) -> bool:
        stream, other = self.usable(op), self.streams.get(op.which)
        if not stream or not stream.capture or not other or other is stream:
            return False
        return other.capture is stream.capture

    # ---- the end ----

    def finish(self) -> None:
        """Ends what must be ended: captures are joined, and what is waited for is written."""
        for capture in [capture for capture in self.captures if capture.active]:
            self.end(capture)
        for address in list(self.waits):
            slot = next((s for s in range(10) if s not in self.streams), None)
            if slot is None:
                slot = next(s for s in range(10) if s in self.streams)
                self.apply(Op("x", f"s{slot}"))
            self.apply(Op("n", f"s{slot}", 1, 0))
            self.apply(Op("V", f"s{slot}", address))

    def end(self, capture: Capture) -> None:
        event = next(e for e in range(11) if e not in self.events)
        self.apply(Op("e", "--", event, capture.device))
        origin, owner = name_of(capture.origin)
        for key in capture.members[1:]:
            name, thread = name_of(key)
            self.apply(Op("r", name, event, 0, thread))
            self.apply(Op("w", origin, event, 0, owner))
        graph = next((g for g in range(10) if g not in self.graphs), None)
        if graph is None:
            graph = 9
            self.apply(Op("G", NO_STREAM, graph))
        self.apply(Op("E", origin, graph, 0, owner))
        self.apply(Op("z", NO_STREAM, event))


def name_of(key: object) -> tuple[str, int]:
    if isinstance(key, int):
        return f"s{key}", 0
    assert isinstance(key, tuple)
    return f"p{key[1]}", key[2]


def ended(program: Program, devices: int = DEVICES) -> Program:
    """The program and what it needs to end. Raises NotAProgram where it does what it may not."""
    state = Legal(devices)
    for number, op in enumerate(program):
        places = GRAPHS if op.kind in "EgGBN" else VALUES if op.kind in "vV" else EVENTS
        if op.which >= places or not state.try_(op):
            raise NotAProgram(f"operation {number}, '{op}', cannot be done there: {MEANING[op.kind]}")
    state.finish()
    return tuple(state.program)


def legal(program: Program, devices: int = DEVICES) -> Program:
    """The program without what it may not do, ended."""
    state = Legal(devices)
    for op in program:
        state.try_(op)
    state.finish()
    return tuple(state.program)
