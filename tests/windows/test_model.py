"""The model itself: programs whose answers anybody can work out."""

from __future__ import annotations

import pytest

from tests.windows.compare import model_of
from tests.windows.generate import random_program
from tests.windows.legal import legal
from tests.windows.model import Model
from tests.windows.operations import line_of, program_of
from tests.windows.things import bits

STREAMS = "ns0,1,0,0 ns1,1,0,0 ns2,1,0,0 ns3,0,0,0 ns4,0,0,0 e--,0,0,0 e--,1,0,0 "


def possible(line: str, results: dict[int, int] | None = None) -> list[list[int]]:
    """For each computation launch, the operations that it could overlap, counted behind the streams and events."""
    program = program_of(STREAMS + line)
    first = len(STREAMS.split())
    model: Model = model_of(program, [(results or {}).get(at - first, 0) for at in range(len(program))])
    closure = model.closure()
    found = []
    for launch in model.launches:
        nodes = bits(model.possible(launch, closure))
        found.append(sorted({model.nodes[node].operation - first for node in nodes}))
    return found


KNOWN = {
    "nothing orders": ("cs0,0,0,0 ks1,0,0,0", [[0]]),
    "launched before": ("ks1,0,0,0 cs0,0,0,0", [[]]),
    "same stream": ("cs0,0,0,0 ks0,0,0,0", [[]]),
    "the same stream by another entry point": ("cs0,0,0,0 kt0,0,0,0", [[]]),
    "waits": ("cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 ks1,0,0,0", [[]]),
    "waits through a third": (
        "cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 rs1,1,0,0 ws2,1,0,0 ks2,0,0,0",
        [[]],
    ),
    "recorded before": ("rs0,0,0,0 cs0,0,0,0 ws1,0,0,0 ks1,0,0,0", [[1]]),
    "recorded again": ("cs0,0,0,0 rs0,0,0,0 rs2,0,0,0 ws1,0,0,0 ks1,0,0,0", [[0]]),
    "recorded again after the wait": ("cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 rs2,0,0,0 ks1,0,0,0", [[]]),
    "never recorded": ("cs0,0,0,0 ws1,0,0,0 ks1,0,0,0", [[0]]),
    "waits for the first of two": ("cs0,0,0,0 rs0,0,0,0 cs0,0,0,0 ws1,0,0,0 ks1,0,0,0", [[2]]),
    "the host waits": ("cs0,0,0,0 ys0,0,0,0 ks1,0,0,0", [[]]),
    "the host waits for another": ("cs0,0,0,0 ys1,0,0,0 ks1,0,0,0", [[0]]),
    "the host waits for an event": ("cs0,0,0,0 rs0,0,0,0 cs0,0,0,0 Y--,0,0,0 ks1,0,0,0", [[2]]),
    "the context is waited for": ("cs0,0,0,0 cs2,0,0,0 S--,0,0,0 ks1,0,0,0", [[]]),
    "the other context is waited for": ("cs0,0,0,0 S--,1,0,0 ks1,0,0,0", [[0]]),
    "legacy behind blocking": ("cs3,0,0,0 kl0,0,0,0", [[]]),
    "blocking behind legacy": ("cl0,0,0,0 ks3,0,0,0", [[]]),
    "two blocking": ("cs3,0,0,0 ks4,0,0,0", [[0]]),
    "two blocking with legacy between": ("cs3,0,0,0 al0,0,0,0 ks4,0,0,0", [[]]),
    "legacy beside non-blocking": ("cs0,0,0,0 kl0,0,0,0", [[0]]),
    "threads": ("cp0,0,0,0 kp0,0,0,1", [[0]]),
    "one thread": ("cp0,0,0,0 kQ0,0,0,0", [[]]),
    "per-thread behind legacy": ("cl0,0,0,0 kp0,0,0,0", [[]]),
    "copy to the host": ("cs3,0,0,0 dl0,0,0,0 ks1,0,0,0", [[]]),
    "copy to the host beside non-blocking": ("cs0,0,0,0 dl0,0,0,0 ks1,0,0,0", [[0]]),
    "copy on the device": ("cs3,0,0,0 Dl0,0,0,0 ks1,0,0,0", [[0]]),
    "captured, with a fork": (
        "bs0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs0,0,0,0 ks1,0,0,0 rs1,0,0,0 ws0,0,0,0 ks0,0,0,0 Es0,0,0,0",
        [[3], []],
    ),
    "captured, beside what is not": ("cs2,0,0,0 bs0,0,0,0 ks0,0,0,0 Es0,0,0,0", [[]]),
    "a graph communicates": ("bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 gs1,0,0,0 ks2,0,0,0 ks1,0,0,0", [[3], []]),
    "launches of one graph": ("N--,2,1,0 gs0,2,0,0 gs1,2,0,0 ks1,0,0,0 ks2,0,0,0", [[], [1, 2]]),
    "launches of two graphs": ("N--,2,1,0 N--,3,0,0 gs0,2,0,0 gs1,3,0,0 ks1,0,0,0", [[2]]),
    "a child graph": ("N--,2,1,0 B--,3,2,0 gs0,3,0,0 ks1,0,0,0", [[2]]),
    "an event of a graph, before": (
        "bs0,0,0,0 rs0,0,2,0 cs0,0,0,0 Es0,0,0,0 gs1,0,0,0 ws2,0,0,0 ks2,0,0,0",
        [[4]],
    ),
    "an event of a graph, after": (
        "bs0,0,0,0 cs0,0,0,0 rs0,0,2,0 Es0,0,0,0 gs1,0,0,0 ws2,0,0,0 ks2,0,0,0",
        [[]],
    ),
    "a value that is written later": ("cs0,0,0,0 vs1,0,0,0 ks1,0,0,0 Vs0,0,0,0", [[]]),
    "a value that is written before": ("Vs0,0,0,0 cs0,0,0,0 vs1,0,0,0 ks1,0,0,0", [[1]]),
    "communication behind the launch": ("vs0,0,0,0 cs0,0,0,0 ks1,0,0,0 Vs1,0,0,0", [[]]),
    "another stream in the same place": ("cs0,0,0,0 xs0,0,0,0 ns0,1,0,0 ks0,0,0,0", [[0]]),
    "another event in the same place": ("cs0,0,0,0 rs0,0,0,0 z--,0,0,0 e--,0,0,0 ws1,0,0,0 ks1,0,0,0", [[0]]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_programs(name: str) -> None:
    line, expected = KNOWN[name]
    assert possible(line) == expected


def test_a_query_counts_if_it_succeeds() -> None:
    line = "cs0,0,0,0 qs0,0,0,0 ks1,0,0,0"
    assert possible(line) == [[]]
    assert possible(line, {1: 600}) == [[0]]


def test_what_failed_has_not_happened() -> None:
    assert possible("cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 ks1,0,0,0", {2: 400}) == [[0]]


def test_programs_survive_being_written_down() -> None:
    for seed in range(50):
        program = random_program(seed)
        assert program_of(line_of(program)) == program


def test_generated_programs_are_legal() -> None:
    for seed in range(200):
        program = random_program(seed)
        kept = legal(program)
        assert kept == program
