"""Is what the library says of each launch true on a real GPU? Random programs, a model of CUDA, and the clock.

    python -m tools.gpu.windows_check make [--programs 1000] [--seed N] > programs.txt          needs hypothesis
    overlap-run --policy P --report DIR --trace ./windows question_kernels.cubin < programs.txt > ran.txt
    overlap report DIR --launches --json > launches.txt
    python -m tools.gpu.windows_check compare programs.txt ran.txt launches.txt [--bare bare.txt]

The first programs are those that anybody can work out (NAMED here, KNOWN of tests/windows/test_model.py). Of each
launch of computation three answers are compared: what the library says (in a window or not), what the model says from
CUDA's documentation, and whether a kernel of communication ran at the same time, by the GPU's clock. Status 1: kernels
ran at the same time that the model takes for ordered (save copies to the GPU on the default stream of a thread, which
need not wait); or the library said a wrong "inside", or an "outside" that no case of shim/core/WINDOWS.md explains.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tests.windows.compare import Counts, compare, model_of
from tests.windows.conservative import explain
from tests.windows.interpreter import NOT_MADE, Answer, Outcome
from tests.windows.model import Model
from tests.windows.operations import Program, is_communication, line_of, program_of
from tests.windows.things import EAGER, bits

ROOT = Path(__file__).resolve().parent.parent.parent

STREAMS = "ns0,1,0,0 ns1,1,0,0 ns2,1,0,0 ns3,0,0,0 ns4,0,0,0 e--,0,0,0 e--,1,0,0 e--,2,0,0 "
# Streams 0 to 2 are non-blocking, 3 and 4 blocking, l the legacy one. In order: for each launch of computation, whether
# it is in a window.
NAMED = {
    "asynchronous, waited for later": (
        "ks0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs1,0,0,0 rs1,1,0,0 ks0,0,0,0 ks0,0,1,0 ws0,1,0,0 ks0,0,0,0",
        [False, True, True, False],
    ),
    "waited for at once": (
        "ks0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs1,0,0,0 rs1,1,0,0 ws0,1,0,0 ks0,0,0,0 ks0,0,0,0",
        [False, False, False],
    ),
    "same stream": ("ks0,0,0,0 cs0,0,0,0 ks0,0,0,0 ks0,0,1,0", [False, False, False]),
    "same stream, another one beside": ("cs0,0,0,0 ks0,0,0,0 ks1,0,0,0", [False, True]),
    "legacy behind blocking": ("cs3,0,0,0 kl0,0,0,0 ks4,0,0,0", [False, False]),
    "blocking behind legacy": ("cl0,0,0,0 ks3,0,0,0 ks4,0,0,0", [False, False]),
    "two blocking": ("cs3,0,0,0 ks4,0,0,0 ks4,0,0,0", [True, True]),
    "two blocking, legacy between": ("cs3,0,0,0 ks4,0,0,0 kl0,0,0,0 ks4,0,0,0", [True, False, False]),
    "legacy beside non-blocking": ("cs0,0,0,0 kl0,0,0,0 kL0,0,1,0", [True, True]),
    "through a third stream": (
        "cs1,0,0,0 rs1,0,0,0 ks0,0,0,0 ws2,0,0,0 rs2,1,0,0 ks2,0,0,0 ks0,0,0,0 ws0,1,0,0 ks0,0,0,0",
        [True, False, True, False],
    ),
    "event recorded too early": ("rs1,0,0,0 cs1,0,0,0 ws0,0,0,0 ks0,0,0,0", [True]),
    "the host waits for the stream": ("cs1,0,0,0 ks0,0,0,0 ys1,0,0,0 ks0,0,0,0", [True, False]),
    "the host waits for the event": ("cs1,0,0,0 rs1,0,0,0 ks0,0,0,0 Y--,0,0,0 ks0,0,0,0", [True, False]),
    "the host waits for the context": ("cs1,0,0,0 ks0,0,0,0 S--,0,0,0 ks0,0,0,0", [True, False]),
    "the host waits for another stream": ("cs1,0,0,0 ks0,0,0,0 ys0,0,0,0 ks0,0,0,0", [True, True]),
    "the host copies back behind blocking": ("cs3,0,0,0 ks0,0,0,0 dl0,0,0,0 ks0,0,0,0", [True, False]),
    "captured fork and join": (
        "bs0,0,0,0 ks0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs1,0,0,0 rs1,1,0,0 ks0,0,0,0 ks0,0,1,0 ws0,1,0,0 ks0,0,0,0 "
        "Es0,0,0,0 gs0,0,0,0 gs0,0,0,0 gs2,0,0,0",
        [False, True, True, False],
    ),
    "captured, waited for at once": (
        "bs0,0,0,0 ks0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs1,0,0,0 rs1,1,0,0 ws0,1,0,0 ks0,0,0,0 Es0,0,0,0 gs0,0,0,0 gs0,0,0,0",
        [False, False],
    ),
    "captured in one stream": ("bs0,0,0,0 ks0,0,0,0 cs0,0,0,0 ks0,0,0,0 Es0,0,0,0 gs0,0,0,0", [False, False]),
    "beside a graph with communication": (
        "bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 gs1,0,0,0 ks0,0,0,0 ys1,0,0,0 ks0,0,0,0",
        [True, False],
    ),
    "threads": ("cp0,0,0,0 kp0,0,0,1 kp0,0,0,0", [True, False]),
}
OTHER_DEVICE = re.compile(r"\b.[lLMpPQ]1,|\b[ne].{2},\d+,1,|\bS--,1,")


def programs_of(path: Path) -> list[Program]:
    return [program_of(line) for line in path.read_text().splitlines()]


def make(asked: argparse.Namespace) -> int:
    from tests.windows.generate import random_program
    from tests.windows.test_model import KNOWN

    lines = [STREAMS + line for line, _ in NAMED.values()]
    lines += [STREAMS + line for line, _ in KNOWN.values()]
    seeds = range(asked.seed, 1 << 62)
    lines += islice(
        (line_of(random_program(seed, longest=asked.longest, without="vVB")) for seed in seeds), 2 * asked.programs
    )
    kept = [line for line in lines if not OTHER_DEVICE.search(line) and not re.search(r"\b[vVB].{2},", line)]
    print("\n".join(kept[: asked.programs]))
    return 0


@dataclass
class Hardware:
    """Of pairs of a kernel of communication and one of computation."""

    together: int = 0  # ran at the same time
    launched_before: int = 0  # of these: computation was launched first
    inside: int = 0  # of the others: the library said so
    outside: Counter[str] = field(default_factory=Counter)  # by the case that explains it
    unclear: int = 0  # graphs in graphs: which of the kernels of an operation it was is not known
    small_copy: int = 0  # at the same time, though a copy from the host is in between: on an H200 it need not wait
    ordered: list[str] = field(default_factory=list)  # at the same time, though the model says that one waits
    unexplained: list[str] = field(default_factory=list)
    claims: int = 0  # launches of computation said to be inside
    claims_seen: int = 0  # of these: ran at the same time as a kernel of communication
    outsides: int = 0
    outsides_seen: int = 0


def answers_of(program: Program, results: Sequence[int], launches: Iterator[Any]) -> dict[int, Answer]:
    answers = {}
    for at, op in enumerate(program):
        if op.kind not in "kcN" or results[at] == NOT_MADE:
            continue
        launch = next(launches)
        assert (launch["kernel"] != "k") == is_communication(op), (line_of(program), at, launch)
        answers[at] = Answer(
            launch["kernel"],
            launch["sequence"],
            bool(launch["overlapping"]),
            launch["launched"] > launch["asked"],
            launch["could_overlap"],
            launch["reason"],
        )
    return answers


def nested(program: Program, model: Model) -> set[int]:
    """Operations captured in a graph of which several instances may run at once."""
    capturing, found = False, set()
    for op in program:
        capturing = capturing or op.kind == "b"
        if op.kind == "g" and capturing:
            found = {n.operation for n in model.nodes if n.world != EAGER}
    return found


def see(program: Program, outcome: Outcome, ran: Sequence[Sequence[int]], least: int, counts: Hardware) -> None:
    model = model_of(program, outcome.results)
    closure = model.closure()
    launches = {launch.operation: launch for launch in model.launches}
    unclear = nested(program, model)
    nodes = {node.operation: (number, node) for number, node in reversed(list(enumerate(model.nodes)))}
    communication = [(op, start, end) for op, start, end in ran if is_communication(program[op])]
    seen: set[int] = set()
    for op, start, end in ran:
        if op not in launches:
            continue
        for other, other_start, other_end in communication:
            if min(end, other_end) - max(start, other_start) < least:
                continue
            counts.together += 1
            seen.add(op)
            if launched(program, nodes, other, op) > op:
                counts.launched_before += 1
                continue
            judge(program, outcome, model, closure, launches[op], other, nodes, unclear, counts)
    for op in launches:
        inside = outcome.answers[op].overlapping
        counts.claims += inside
        counts.claims_seen += inside and op in seen
        counts.outsides += not inside
        counts.outsides_seen += not inside and op in seen


def launched(program: Program, nodes: dict[int, Any], communication: int, computation: int) -> int:
    """Where communication may have been launched last: of a graph's, by the last launch of any graph."""
    captured = communication not in nodes or nodes[communication][1].world != EAGER
    if not captured or (computation in nodes and nodes[computation][1].world != EAGER):
        return communication
    later = (at for at, op in enumerate(program) if at > communication and op.kind == "g")
    return max(later, default=communication)


def judge(
    program: Program,
    outcome: Outcome,
    model: Model,
    closure: Sequence[int],
    launch: Any,
    other: int,
    nodes: dict[int, Any],
    unclear: set[int],
    counts: Hardware,
) -> None:
    """They ran at the same time, communication was launched first: what do the model and the library say?"""
    possible = model.possible(launch, closure)
    operations = {model.nodes[node].operation for node in bits(possible)}
    world, its = model.nodes[launch.node].world, nodes[other][1].world if other in nodes else None
    words = f"operations {other} and {launch.operation} of {line_of(program)} {outcome.results}"
    of_graphs = its != EAGER
    if world == EAGER:
        permitted = any(program[o].kind == "g" for o in operations) if of_graphs else other in operations
    elif its == world:
        permitted = other in operations
    else:  # two graphs, or a graph and what runs beside it: case 7
        counts.outside["7"] += not outcome.answers[launch.operation].overlapping
        counts.inside += outcome.answers[launch.operation].overlapping
        return
    if {other, launch.operation} & unclear:
        counts.unclear += 1
    elif not permitted and any(op.kind == "h" and op.stream[0] == "p" for op in program[: launch.operation]):
        counts.small_copy += 1
    elif not permitted:
        counts.ordered.append(words)
    elif outcome.answers[launch.operation].overlapping:
        counts.inside += 1
    else:
        case = explain(model, launch, possible)
        counts.outside[case or "unexplained"] += 1
        if case is None:
            counts.unexplained.append(words)


def same_results(program: Program, one: Sequence[int], other: Sequence[int]) -> bool:
    """Queries may have been asked at another time."""
    return all(a == b for op, a, b in zip(program, one, other) if op.kind not in "qQT")


def compared(asked: argparse.Namespace) -> int:
    programs = programs_of(asked.programs)
    ran = [json.loads(line) for line in asked.ran.read_text().splitlines()]
    launches = (json.loads(line) for line in asked.launches.read_text().splitlines())
    bare = [json.loads(line) for line in asked.bare.read_text().splitlines()] if asked.bare else []
    counts, hardware = Counts(), Hardware()
    wrong: list[str] = []
    results: Counter[str] = Counter()
    named: dict[str, list[list[bool]]] = {name: [] for name in NAMED}
    by_line = {STREAMS + line: name for name, (line, _) in NAMED.items()}
    for row in ran:
        program = programs[row["program"]]
        for op, result in zip(program, row["results"]):
            results[f"{op.kind} {result}"] += result != 0
        answers = answers_of(program, row["results"], launches)
        if OTHER_DEVICE.search(line_of(program)):
            continue
        if asked.large:  # shaped wherever it is inside, and nowhere else
            wrong += [
                f"shaped is {answer.shaped}, {answer.reason}: operation {at} of {line_of(program)}"
                for at, answer in answers.items()
                if program[at].kind == "k" and answer.shaped != answer.overlapping
            ]
        answers = {at: answer._replace(shaped=answer.overlapping) for at, answer in answers.items()}
        outcome = Outcome(row["results"], answers)
        wrong += [f"{words}: {line_of(program)} {row['results']}" for words in compare(program, outcome, counts)]
        see(program, outcome, row["ran"], asked.least, hardware)
        name = by_line.get(line_of(program))
        if name:
            mine = [answers[at].overlapping for at, op in enumerate(program) if op.kind == "k"]
            named[name].append(mine)
            if mine != NAMED[name][1]:
                wrong.append(f"{name}: {mine}, not {NAMED[name][1]}")
    left = sum(1 for _ in launches)
    differing = [
        f"{line_of(programs[row['program']])}: bare {other['results']}, behind {row['results']}"
        for row, other in zip(ran, bare)
        if not same_results(programs[row["program"]], row["results"], other["results"])
    ]
    in_short = {name: rows[0] if rows and all(row == rows[0] for row in rows) else rows for name, rows in named.items()}
    answer = {
        "programs": len({row["program"] for row in ran}),
        "runs": len(ran),
        "lost": sum(row["lost"] for row in ran),
        "kernels": sum(len(row["ran"]) for row in ran),
        "launches_left_over": left,
        "results_not_0": {key: value for key, value in results.items() if value},
        "differing_from_bare": differing[:10],
        "named": in_short,
        "library_and_model": counts.as_json(),
        "hardware": {**vars(hardware), "outside": dict(hardware.outside)},
        "wrong": wrong[:20],
    }
    print(json.dumps(answer, indent=1))
    return 1 if wrong or left or differing or hardware.ordered or hardware.unexplained else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make")
    making.add_argument("--programs", type=int, default=1000)
    making.add_argument("--longest", type=int, default=40)
    making.add_argument("--seed", type=int, default=0)
    making.set_defaults(run=make)
    comparing = commands.add_parser("compare")
    for name in ("programs", "ran", "launches"):
        comparing.add_argument(name, type=Path)
    comparing.add_argument("--bare", type=Path)
    comparing.add_argument("--large", action="store_true", help="./windows was asked for large kernels")
    comparing.add_argument("--least", type=int, default=1000, help="nanoseconds that count as the same time")
    comparing.set_defaults(run=compared)
    asked = parser.parse_args()
    return int(asked.run(asked))


if __name__ == "__main__":
    sys.exit(main())
