"""Random programs. Where the numbers come from is the caller's business: hypothesis, which can shrink what it drew, or
a plain random source, which is many times faster."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.windows.legal import Legal, legal, name_of
from tests.windows.operations import NO_STREAM, Op, Program

Choose = Callable[[int], int]  # n -> 0 .. n - 1, smaller is simpler

# How often each kind is tried; those behind a feature only in programs that have it.
# F: a record and a wait for it.
ALWAYS = "kkkkkkkkkkccccccrrrrwwwwwFFF" + "aafHRxneez"
FEATURES = {
    "wait": "yyqqYYQQT",
    "context": "S",
    "copy": "hdDm",
    "capture": "bbEEEEgggggGBN",
    "value": "vvVV",
    "node": "RRRWWW",
    "dependencies": "u",
}
# What only HIP has: launches that record events, a copy on a stream that the host waits for.
OF_VENDOR: dict[str, dict[str, str]] = {"nvidia": {}, "amd": {"recording": "KKKKCCCC", "waiting copy": "AA"}}
OFTEN = ("wait", "copy", "capture", "recording")
DEFAULTS = ("l0", "p0", "L0", "P0", "M0", "Q0")


def generate(
    choose: Choose, shortest: int = 5, longest: int = 40, without: str = "", vendor: str = "nvidia"
) -> Program:
    """without: kinds that must not occur, because the driver has not got them, say."""
    devices = 2 if choose(6) == 5 else 1
    state = Legal(devices)
    streams, threads = _streams(choose, state, devices)
    events = 1 + choose(4 if choose(4) else 6)
    for event in range(events):
        state.apply(Op("e", NO_STREAM, event, choose(devices) if devices > 1 else 0))
    kinds = ALWAYS
    for name, more in {**FEATURES, **OF_VENDOR[vendor]}.items():
        if choose(2 if name in OFTEN else 5) == 1:
            kinds += more
    kinds = "".join(kind for kind in kinds if kind not in without)
    wanted = shortest + choose(longest - shortest + 1)
    for _ in range(3 * wanted):
        if len(state.program) >= wanted + len(streams):
            break
        op = _operation(choose, kinds, streams, events, threads, devices)
        active = [capture for capture in state.captures if capture.active]
        if active and op.kind == "E":
            state.end(active[op.which % len(active)])  # as a program would: with what it needs to end well
            continue
        if active and op.kind in "kcKCrFu" and choose(3):
            members = active[-1].members
            name, thread = name_of(members[choose(len(members))])
            op = op._replace(stream=name, thread=thread)
        if op.kind == "F":
            state.try_(op._replace(kind="r"))
            state.try_(Op("w", streams[choose(len(streams))], op.which, 0, op.thread))
        else:
            state.try_(op)
    state.finish()
    return tuple(state.program)


def _streams(choose: Choose, state: Legal, devices: int) -> tuple[list[str], int]:
    """Names that this program uses for streams, and the number of its threads."""
    count = 2 + choose(5)
    blocking = choose(3)  # none, some, all
    streams = []
    for slot in range(count):
        kind = 1 if blocking == 0 else 0 if blocking == 2 else choose(2)
        state.apply(Op("n", f"s{slot}", kind, choose(devices) if devices > 1 else 0))
        streams.append(f"{'t' if choose(8) == 7 else 's'}{slot}")
    if choose(2):
        for _ in range(1 + choose(3)):
            name = DEFAULTS[choose(len(DEFAULTS))]
            streams.append(name[0] + str(choose(devices)))
    return streams, 2 if choose(8) == 7 else 1


def _operation(choose: Choose, kinds: str, streams: list[str], events: int, threads: int, devices: int) -> Op:
    kind = kinds[choose(len(kinds))]
    thread = choose(threads) if threads > 1 else 0
    stream = streams[choose(len(streams))]
    if kind in "kc":
        return Op(kind, stream, 0, choose(2), thread)
    if kind in "KC":
        event = choose(events)
        return Op(kind, stream, event, choose(events) if choose(4) == 3 else event, thread)
    if kind in "rwF":
        return Op(kind, stream, choose(events), int(kind == "r" and choose(8) == 7), thread)
    if kind == "R":
        return Op("r", stream, choose(events), 2, thread)
    if kind == "W":
        return Op("w", stream, choose(events), 1, thread)
    if kind in "YQ":
        return Op(kind, NO_STREAM, choose(events), 0, thread)
    if kind == "T":
        return Op(kind, NO_STREAM, choose(events), choose(events), thread)
    if kind == "S":
        return Op(kind, NO_STREAM, choose(devices), 0, thread)
    if kind in "hdDm":
        return Op(kind, ("l", "p")[choose(2)] + str(choose(devices)), 0, 0, thread)
    if kind == "n":
        return Op(kind, stream if stream[0] in "st" else "s0", choose(2), choose(devices))
    if kind in "ez":
        return Op(kind, NO_STREAM, choose(events), choose(devices) if kind == "e" else 0)
    if kind in "bEgG":
        return Op(kind, NO_STREAM if kind == "G" else stream, choose(4), 0, thread)
    if kind in "BN":
        return Op(kind, NO_STREAM, 2 + choose(2), choose(2))
    if kind in "vV":
        return Op(kind, stream, choose(3), 0, thread)
    if kind == "u":
        return Op(kind, stream, choose(6), 0, thread)
    return Op(kind, stream, 0, 0, thread)


def repeat(choose: Choose, longest: int = 40, **options: Any) -> Program:
    """One whose operations are done several times: what a stream does again and again can be learnt."""
    once = generate(choose, longest=max(5, longest // 2), **options)
    first = next((at for at, op in enumerate(once) if op.kind not in "ne"), len(once))
    body = [op._replace(other=op.other | 2) if op.kind == "k" and choose(2) else op for op in once[first:]]
    if options.get("vendor") == "nvidia" and choose(6) == 5:
        slots = [op.stream for op in once[:first] if op.kind == "n"]
        body.insert(choose(len(body) + 1), Op("P", slots[choose(len(slots))], choose(6)))
    times, late = 4 + choose(5), choose(2)
    without = [op for op in body if op.kind != "P"] if late else body
    return legal((*once[:first], *without * (times - 1), *body, *without))


def random_program(seed: int, repeated: bool = False, **options: Any) -> Program:
    """The same program for the same seed, on every version of Python."""
    source = random.Random(seed)
    return (repeat if repeated else generate)(lambda count: int(source.random() * count), **options)


def examples(default: int) -> int:
    """How many a test runs."""
    return int(os.environ.get("WINDOWS_EXAMPLES", default))


@st.composite
def programs(draw: st.DrawFn, /, **options: Any) -> Program:
    return generate(lambda count: draw(st.integers(0, count - 1)), **options)


def smallest(program: Program, fails: Callable[[Program], bool], devices: int = 2) -> Program:
    """Leaves operations out as long as it still fails."""
    step = len(program) // 2
    while step:
        at = 0
        while at < len(program):
            shorter = legal(program[:at] + program[at + step :], devices)
            if 0 < len(shorter) < len(program) and fails(shorter):
                program = shorter
            else:
                at += step
        step //= 2
    return program
