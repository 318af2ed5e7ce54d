"""What the library says about launches, against what is true: random programs, and each row and case of WINDOWS.md."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.windows.compare import Counts, check, compare, story
from tests.windows.generate import examples, programs, random_program, smallest
from tests.windows.interpreter import Interpreter, Outcome
from tests.windows.operations import Program, program_of
from tests.windows.targets import TARGETS, Target

STREAMS = "ns0,1,0,0 ns1,1,0,0 ns2,1,0,0 ns3,0,0,0 ns4,0,0,0 ns5,1,1,0 e--,0,0,0 e--,1,0,0 e--,2,1,0 "
CAPTURE = "bs0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs0,0,0,0 "
END = " rs1,1,0,0 ws0,1,0,0 Es0,0,0,0"

# Rows of the table: the answer to each launch of k. i: inside, o: outside.
ROWS = {
    "communication launch": ("cs0,0,0,0 ks1,0,0,0 ks0,0,0,0", "io"),
    "launch of a graph that holds communication": ("bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 gs2,0,0,0 ks1,0,0,0 ks2,0,0,0", "io"),
    "launch of a graph that holds none": ("bs0,0,0,0 as0,0,0,0 Es0,0,0,0 gs2,0,0,0 ks1,0,0,0", "o"),
    "cuEventRecord": ("cs0,0,0,0 rs0,0,0,0 cs0,0,0,0 ws1,0,0,0 ks1,0,0,0 rs0,0,0,0 ws1,0,0,0 ks1,0,0,0", "io"),
    "cuEventRecordWithFlags": ("cs0,0,0,0 rs0,0,1,0 ws1,0,0,0 ks1,0,0,0 ks2,0,0,0", "oi"),
    "cuStreamWaitEvent": ("cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 rs1,1,0,0 ws2,1,0,0 ks2,0,0,0", "o"),
    "an event never recorded": ("cs0,0,0,0 ws1,0,0,0 ks1,0,0,0", "i"),
    "cuStreamSynchronize": ("cs0,0,0,0 ks1,0,0,0 ys0,0,0,0 ks1,0,0,0", "io"),
    "cuEventSynchronize": ("cs0,0,0,0 rs0,0,0,0 cs2,0,0,0 Y--,0,0,0 rs2,1,0,0 ws1,1,0,0 ks1,0,0,0", "o"),
    "cuCtxSynchronize": ("cs0,0,0,0 cs2,0,0,0 S--,0,0,0 ks1,0,0,0", "o"),
    "cuCtxSynchronize of another context": ("cs0,0,0,0 S--,1,0,0 ks1,0,0,0", "i"),
    "synchronous copies": ("cs3,0,0,0 dl0,0,0,0 ks1,0,0,0 cs0,0,0,0 dl0,0,0,0 ks1,0,0,0", "oi"),
    "synchronous copies of threads": ("cp0,0,0,0 dp0,0,0,0 ks1,0,0,0 cs3,0,0,0 dp0,0,0,0 ks1,0,0,0", "oi"),
    "launches on the legacy stream": ("cs3,0,0,0 kl0,0,0,0 cl0,0,0,0 ks3,0,0,0 ks1,0,0,0", "ooi"),
    "copies on the legacy stream": ("cs3,0,0,0 ks4,0,0,0 al0,0,0,0 ks4,0,0,0", "io"),
    "waits of the legacy stream": ("cs0,0,0,0 rs0,0,0,0 wl0,0,0,0 ks3,0,0,0 ks1,0,0,0", "oi"),
    "records on the legacy stream": ("cs3,0,0,0 rl0,0,0,0 ws1,0,0,0 ks1,0,0,0 ks2,0,0,0", "oi"),
    "default streams of threads": ("cp0,0,0,0 kp0,0,0,0 kp0,0,0,1 ks1,0,0,0 al0,0,0,0 kp0,0,0,1", "oiio"),
    "capture": (CAPTURE + "ks1,0,0,0" + END, "i"),
    "capture, joined": (CAPTURE + "rs0,0,0,0 ws1,0,0,0 ks1,0,0,0" + END, "o"),
    "destruction of a stream": ("cs0,0,0,0 ys0,0,0,0 xs0,0,0,0 ns0,1,0,0 cs1,0,0,0 ks0,0,0,0", "i"),
    "destruction of an event": ("cs0,0,0,0 rs0,0,0,0 z--,0,0,0 e--,0,0,0 ws1,0,0,0 ks1,0,0,0", "i"),
    "an event of another device": ("cs0,0,0,0 ks5,0,0,0 rs0,0,0,0 ws5,0,0,0 rs5,2,0,0 ws1,2,0,0 ks1,0,0,0", "oo"),
}

# Of HIP's own calls.
HIP_ROWS = {
    "hipExtLaunchKernel, event behind it": ("Cs0,0,0,0 ks2,0,0,0 ws1,0,0,0 ks1,0,0,0", "io"),
    "hipExtLaunchKernel, event behind it, recorded before": ("rs0,0,0,0 cs2,0,0,0 Cs0,0,0,0 ws1,0,0,0 ks1,0,0,0", "i"),
    "hipExtLaunchKernel, event behind it, the host waits": ("Cs0,0,0,0 Y--,0,0,0 ks1,0,0,0", "o"),
    "hipExtModuleLaunchKernel, event behind it": ("cs0,0,0,0 Ks0,0,0,0 ws1,0,0,0 ks1,0,0,0", "oo"),
    "hipExtModuleLaunchKernel in a window": ("cs0,0,0,0 Ks1,0,0,0 ks0,0,0,0", "io"),
    "hipMemcpyWithStream": ("cs0,0,0,0 As1,0,0,0 ks1,0,0,0 As0,0,0,0 ks1,0,0,0", "io"),
    "hipMemcpyWithStream, blocking": ("cs3,0,0,0 As4,0,0,0 ks1,0,0,0 Al0,0,0,0 ks1,0,0,0", "io"),
}

# Cases: every launch of k is outside although it could overlap, and this case says why.
CASES = {
    "1": [
        "cs0,0,0,0 Vs2,0,0,0 vs1,0,0,0 ks1,0,0,0",
        "Vs2,0,0,0 vs0,0,0,0 cs0,0,0,0 ks1,0,0,0",
        "Vs0,0,0,0 vs0,0,0,0 rs0,0,0,0 ys0,0,0,0 cs1,0,0,0 ws0,0,0,0 ks0,0,0,0",
    ],
    "2": [
        "bs0,0,0,0 rs0,0,2,0 as0,0,0,0 Es0,0,0,0 gs0,0,0,0 cs2,0,0,0 ws1,0,0,0 ks1,0,0,0",
        "rs2,0,0,0 bs0,0,0,0 ws0,0,1,0 Es0,0,0,0 cs2,0,0,0 gs1,0,0,0 ks1,0,0,0",
    ],
    "3": ["cs3,0,0,0 Dl0,0,0,0 ks1,0,0,0", "cs3,0,0,0 ml0,0,0,0 ks1,0,0,0", "cs3,0,0,0 yl0,0,0,0 ks1,0,0,0"],
    "4": ["cs0,0,0,0 xs0,0,0,0 cs2,0,0,0 rs2,0,0,0 ws1,0,0,0 ks1,0,0,0"],
    "7": ["bs0,0,0,0 rs0,0,0,0 ws1,0,0,0 ws2,0,0,0 cs0,0,0,0 as2,0,0,0 us1,2,0,0 ks1,0,0,0"],
    "8": ["cs0,0,0,0 " + "ks1,0,0,0 " * 600],
}


# Only HIP has them.
HIP_CASES = {
    "2": [
        "cs2,0,0,0 Ks0,1,0,0 cs2,0,0,0 ws1,0,0,0 ks1,0,0,0",
        "bs0,0,0,0 Ks0,0,0,0 Es0,0,0,0 gs0,0,0,0 cs2,0,0,0 ws1,0,0,0 ks1,0,0,0",
    ]
}


on_hip = pytest.mark.parametrize(
    "target", [name for name, target in TARGETS.items() if target.vendor == "amd"], indirect=True
)


def answers(outcome: Outcome, program: Program) -> str:
    return "".join("oi"[outcome.answers[at].shaped] for at, op in enumerate(program) if op.kind in "kK")


def agreed(interpreter: Interpreter, line: str) -> tuple[Outcome, Counts]:
    program, counts = program_of(line), Counts()
    outcome = interpreter.run([program])[0]
    assert not any(outcome.results), story(program, [str(outcome.results)])
    found = compare(program, outcome, counts)
    assert not found, story(program, found)
    return outcome, counts


@pytest.mark.parametrize("name", ROWS)
def test_what_orders(interpreter: Interpreter, name: str) -> None:
    line, expected = ROWS[name]
    outcome, _ = agreed(interpreter, STREAMS + line)
    assert answers(outcome, program_of(STREAMS + line)) == expected


@on_hip
@pytest.mark.parametrize("name", HIP_ROWS)
def test_what_orders_on_hip(interpreter: Interpreter, name: str) -> None:
    line, expected = HIP_ROWS[name]
    outcome, _ = agreed(interpreter, STREAMS + line)
    assert answers(outcome, program_of(STREAMS + line)) == expected


@on_hip
def test_events_of_a_captured_launch_are_the_graph_s(interpreter: Interpreter) -> None:
    line = "bs0,0,0,0 Cs0,0,0,0 Es0,0,0,0 gs0,0,0,0 ks2,0,0,0 ws1,0,0,0 ks1,0,0,0"
    outcome, _ = agreed(interpreter, STREAMS + line)
    assert answers(outcome, program_of(STREAMS + line)) == "io"


@on_hip
@pytest.mark.parametrize("number", range(2))
def test_when_the_model_cannot_know_on_hip(interpreter: Interpreter, number: int) -> None:
    _, counts = agreed(interpreter, STREAMS + HIP_CASES["2"][number])
    assert set(counts.conservative) == {"2"}


@pytest.mark.parametrize(("case", "number"), [(case, n) for case, lines in CASES.items() for n in range(len(lines))])
def test_when_the_model_cannot_know(interpreter: Interpreter, case: str, number: int) -> None:
    line = STREAMS + CASES[case][number]
    if case == "7":
        line += " rs1,1,0,0 ws0,1,0,0 rs2,1,0,0 ws0,1,0,0 Es0,0,0,0"
    _, counts = agreed(interpreter, line)
    assert counts.conservative[case] >= 1
    assert set(counts.conservative) == {case}


def test_a_window_expires_after_512_launches(interpreter: Interpreter) -> None:
    line = STREAMS + CASES["8"][0]
    outcome, counts = agreed(interpreter, line)
    assert answers(outcome, program_of(line)) == "i" * 512 + "o" * 88
    assert counts.conservative == {"8": 88}


def test_nodes_added_by_hand_are_outside(interpreter: Interpreter) -> None:
    program = program_of(STREAMS + "cs0,0,0,0 N--,2,0,0")
    outcome = interpreter.run([program])[0]
    assert [outcome.answers[at].overlapping for at, op in enumerate(program) if op.kind == "N"] == [False]


def test_another_context_does_not_communicate_at_the_same_time(interpreter: Interpreter) -> None:
    outcome, _ = agreed(interpreter, STREAMS + "cs0,0,0,0 ks5,0,0,0")
    assert [answer.overlapping for answer in outcome.answers.values() if answer.kernel == "k"] == [False]


@pytest.fixture(scope="session")
def options(interpreter: Interpreter, target: Target) -> dict[str, str]:
    """Of random programs."""
    return {"without": interpreter.missing(), "vendor": target.vendor}


@given(data=st.data())
@settings(
    max_examples=examples(300),
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
def test_random_programs(interpreter: Interpreter, options: dict[str, str], data: st.DataObject) -> None:
    program = data.draw(programs(longest=30, **options))
    found = compare(program, interpreter.run([program])[0], Counts())
    assert not found, story(program, found)


def test_many_random_programs(interpreter: Interpreter, options: dict[str, str]) -> None:
    counts = Counts()
    failed = check(interpreter, [random_program(seed, **options) for seed in range(-1, -201, -1)], counts)
    assert not failed, story(*failed[0])
    assert counts.claims > 100
    assert counts.wrong == counts.unexplained == 0


def test_a_wrong_claim_is_caught(interpreter: Interpreter) -> None:
    """Answers that were changed: a launch that everything orders is said to be in a window."""
    program = program_of(STREAMS + "cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 ks1,0,0,0")
    outcome = interpreter.run([program])[0]
    assert not compare(program, outcome, Counts())
    at, answer = next((at, one) for at, one in outcome.answers.items() if one.kernel == "k")
    named = next(one.sequence for one in outcome.answers.values() if one.kernel != "k")
    for name in (named, None):
        lie = answer._replace(overlapping=True, shaped=True, reason="shaped", could_overlap=name)
        counts, told = Counts(), Outcome(outcome.results, {**outcome.answers, at: lie})
        assert "everything is ordered" in compare(program, told, counts)[0]
        assert counts.wrong == 1


def test_a_wrong_name_is_caught(interpreter: Interpreter) -> None:
    program = program_of(STREAMS + "cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs2,0,0,0 ks1,0,0,0")
    outcome = interpreter.run([program])[0]
    ordered = min(one.sequence for one in outcome.answers.values())
    at = max(outcome.answers)
    lie = outcome.answers[at]._replace(could_overlap=ordered)
    assert not compare(program, outcome, Counts())
    told = Outcome(outcome.results, {**outcome.answers, at: lie})
    assert "which is ordered" in compare(program, told, Counts())[0]


def test_an_unexplained_answer_is_caught_and_made_small(interpreter: Interpreter) -> None:
    def fails(program: Program) -> bool:
        outcome = interpreter.run([program])[0]
        deaf = {at: one._replace(overlapping=False, shaped=False) for at, one in outcome.answers.items()}
        return any("no case" in word for word in compare(program, Outcome(outcome.results, deaf), Counts()))

    program = program_of(STREAMS + "ks2,0,0,0 cs0,0,0,0 rs2,0,0,0 ks1,0,0,0 as2,0,0,0")
    assert fails(program)
    assert [op.kind for op in smallest(program, fails)] == ["n", "n", "c", "k"]
