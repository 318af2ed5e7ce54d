"""Why the library may say "outside" although a launch could overlap: the cases listed in shim/core/WINDOWS.md.

Most cases are order that the library assumes and nobody documents: the model keeps it aside (`Model.allowed`), and a
case explains an answer if with that order nothing is left that the launch could overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.windows.model import Model
from tests.windows.things import EAGER, Launch

CASES = {
    "1": "unknown waits",
    "2": "events of graphs",
    "3": "synchronous copies, fills, and the default stream waited for",
    "4": "streams of communication that share an entry, or take over that of one that is gone",
    "5": "many streams or events",
    "7": "graphs",
    "8": "expiry",
    "10": "what no document settles",
    "several": "no one of these alone, but the order of more than one of them together",
}
ENTRIES, EXPIRES, CAPTURES, STREAMS, EVENTS = 16, 512, 32, 16384, 65536


class Unknown:
    """Case 1: what a stream does after a wait for anything, until the host has seen it finished; an event that was
    recorded in it meanwhile, until the host has seen the whole context."""

    def __init__(self, model: Model, more: Sequence[tuple[int, int]]) -> None:
        self.tainted = 0
        self.order = list(more)
        before = list(model.before)
        for node, others in more:
            before[node] |= others
        seen = context = 0
        for number, direct in enumerate(before):
            if number in model.sights:
                if direct & self.tainted:
                    self.order.append((number, eager_before(model, number)))
                seen |= model.sights[number]
                context |= model.sights[number] if number in model.of_context else 0
            elif (
                model.unknown_waits >> number & 1
                or direct & self.tainted & ~seen
                or model.by_event.get(number, 0) & self.tainted & ~context
            ):
                self.tainted |= 1 << number


def eager_before(model: Model, number: int) -> int:
    return sum(1 << i for i, node in enumerate(model.nodes[:number]) if node.world == EAGER)


def explain(model: Model, launch: Launch, possible: int) -> str | None:
    """The case that allows to say outside, or None."""
    for case in ("2", "3", "4", "7", "10"):
        if case in model.allowed and not model.possible(launch, model.closure(model.allowed[case])):
            return case
    if by_unknown_waits(model, launch, possible, []):
        return "1"
    key = model.nodes[launch.node].world, model.nodes[launch.node].device
    if len(model.used_streams.get(key, ())) > ENTRIES:
        return "4"
    if len(model.streams) > STREAMS or len(model.events) > EVENTS:
        return "5"
    if sum(capture.active for capture in model.captures) > CAPTURES:
        return "7"
    if expired(model, launch, possible):
        return "8"
    order = [edge for edges in model.allowed.values() for edge in edges]
    if not model.possible(launch, model.closure(order)) or by_unknown_waits(model, launch, possible, order):
        return "several"
    return None


def by_unknown_waits(model: Model, launch: Launch, possible: int, order: list[tuple[int, int]]) -> bool:
    if not model.unknown_waits:
        return False
    unknown = Unknown(model, order)
    if unknown.tainted >> launch.node & 1:
        return True
    left = model.possible(launch, model.closure(unknown.order)) if unknown.order else possible
    return not left & ~unknown.tainted


def expired(model: Model, launch: Launch, possible: int) -> bool:
    """So many launches of its stream since the latest communication that it could overlap."""
    latest = model.nodes[possible.bit_length() - 1].operation
    between = [one for one in model.launches if one.stream == launch.stream]
    return sum(latest < one.operation < launch.operation for one in between) >= EXPIRES
