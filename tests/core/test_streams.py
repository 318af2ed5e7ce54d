"""The one rule (core/judge.h): raise the smaller streams that something waits for. Against a model of ten lines."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyshim import _native

RAISED, NOT_WAITED, LARGE, GRAPHS, PROGRAMS, DEFAULT, WIDE, TOGETHER, FIXED = (
    getattr(_native.header(), f"OVERLAP_STREAM_{name}")
    for name in ("RAISED", "NOT_WAITED", "LARGE", "GRAPHS", "PROGRAMS", "DEFAULT", "WIDE", "TOGETHER", "FIXED")
)
FACTS = ("waited", "communicates", "launches_graphs", "is_default", "is_wide", "is_fixed")
NAMES = ("work", "before", "usual", "alone", *FACTS, "status", "share")
UNTOUCHED = 77  # a status and a share that no judgement gives


class Judged(ctypes.Structure):
    _fields_ = (
        ("work", ctypes.c_uint64),
        ("before", ctypes.c_uint64),
        ("usual", ctypes.c_uint64),
        ("alone", ctypes.c_uint64),
        *((fact, ctypes.c_bool) for fact in FACTS),
        ("status", ctypes.c_uint8),
        ("share", ctypes.c_uint32),
    )

    def __repr__(self) -> str:
        return f"Judged({', '.join(f'{name}={getattr(self, name)}' for name in NAMES)})"


class Rule:
    def __init__(self, library: Any) -> None:
        self.library = library
        library.overlap_judge.restype = library.is_due.restype = ctypes.c_bool
        library.layout.restype = ctypes.c_size_t
        library.block_work.restype = ctypes.c_uint32

    def judge(
        self, streams: Sequence[Judged], others: int = 0, share: int = 50, programs: bool = False, early: bool = False
    ) -> bool:
        """others: the work of a further stream, that nothing waits for."""
        all_streams = [*streams, *([Judged(work=others)] if others else [])]
        pointers = (ctypes.POINTER(Judged) * len(all_streams))(*map(ctypes.pointer, all_streams))
        flags = ctypes.c_bool(early), share, ctypes.c_bool(programs)
        found: bool = self.library.overlap_judge(pointers, len(all_streams), *flags)
        return found

    def of(self, *streams: Judged, others: int = 0, **how: Any) -> list[int]:
        """The statuses of the streams after one judgement."""
        assert self.judge(streams, others, **how)
        return [stream.status for stream in streams]


@pytest.fixture(scope="module")
def rule(compile_c: Any) -> Rule:
    made = compile_c("streams_rule.c", "core/judge.c", flags=("-shared", "-fPIC"), name="streams_rule.so")
    return Rule(ctypes.CDLL(str(made)))


def small(work: int = 10, **facts: Any) -> Judged:
    """A stream that is raised beside large(): 10 of 100, and the host waits for it."""
    return Judged(**{"work": work, "waited": True, "status": UNTOUCHED, "share": UNTOUCHED, **facts})


def large(work: int = 90, **facts: Any) -> Judged:
    return small(work, **{"waited": False, **facts})


def test_the_layout_here_is_that_of_the_header(rule: Rule) -> None:
    offsets = [getattr(Judged, name).offset for name in NAMES]
    assert [rule.library.layout(index) for index in range(len(offsets) + 1)] == [*offsets, ctypes.sizeof(Judged)]


# ---- Each condition ----

# In the order in which they are asked; each with what makes it the first that does not hold.
ORDER: list[tuple[int, dict[str, Any], bool]] = [
    (DEFAULT, {"is_default": True}, False),
    (PROGRAMS, {}, True),
    (FIXED, {"is_fixed": True}, False),
    (NOT_WAITED, {"waited": False}, False),
    (GRAPHS, {"launches_graphs": True}, False),
    (WIDE, {"is_wide": True, "communicates": True}, False),
    (LARGE, {"work": 91}, False),
    (RAISED, {}, False),
]


@pytest.mark.parametrize(("status", "facts", "programs"), ORDER, ids=[str(case[0]) for case in ORDER])
def test_a_condition(rule: Rule, status: int, facts: dict[str, Any], programs: bool) -> None:
    stream, other = small(**facts), large()
    assert rule.of(stream, other, programs=programs) == [status, PROGRAMS if programs else NOT_WAITED]
    assert stream.share == (503 if status == LARGE else 100), "of all work: in thousandths, rounded up"
    assert other.share == (498 if status == LARGE else 900)


def test_of_two_conditions_the_first_is_told(rule: Rule) -> None:
    for (status, facts, programs), (_, more, also) in itertools.combinations(ORDER, 2):
        assert rule.of(small(**more | facts), large(), programs=programs or also)[0] == status, (facts, more)


def test_what_a_stream_communicates_decides_nothing(rule: Rule) -> None:
    assert rule.of(small(communicates=True), large(communicates=True)) == [RAISED, NOT_WAITED]
    assert rule.of(small(51, communicates=True), large(49)) == [LARGE, NOT_WAITED]


def test_the_facts_of_other_streams_decide_nothing(rule: Rule) -> None:
    for fact in FACTS:
        assert rule.of(small(), large(**{fact: True}))[0] == RAISED, fact


# ---- Work ----


def test_a_thread_of_twice_the_registers_is_four_times_the_work(rule: Rule) -> None:
    for threads, registers, work in (
        (256, 32, 256),
        (256, 64, 1024),
        (256, 16, 64),
        (1024, 255, 65025),
        (1024, 512, 262144),
        (32, 1, 1),
        (1, 2, 1),
        (256, 0, 256),
        (256, 2**32 - 1, 256),
        (0, 32, 1),
    ):
        assert rule.library.block_work(threads, registers) == work, (threads, registers)


def test_many_light_threads_are_less_than_few_heavy_ones(rule: Rule) -> None:
    """A step of GROMACS on an H200 (2026-11-29): nonbonded forces; PME, with more than half of the threads; updates."""
    step = (  # of each kernel the threads, in hundreds, and the registers of one; the second one runs every other step
        ((6048, 60), (3024, 30), (1084, 18), (984, 18)),
        ((3935, 32), (3935, 40), (3199, 23), (847, 40), (847, 40), (434, 40), (434, 40), (434, 40), (434, 40)),
        ((986, 24), (330, 59)),
    )
    threads = [sum(count for count, _ in kernels) for kernels in step]
    assert threads[1] > sum(threads) / 2
    forces, pme, updates = (
        small(sum(count * rule.library.block_work(100, registers) for count, registers in kernels)) for kernels in step
    )
    assert rule.of(forces, pme, updates) == [LARGE, RAISED, RAISED]
    assert 380 <= pme.share <= 400, "as in tools/gpu/results/work-shares.csv"


# ---- Shares ----


@pytest.mark.parametrize("limit", [1, 25, 50, 60])
@pytest.mark.parametrize("all_work", [100, 1000, 2_000_000, 100 * 2**40])
def test_a_share_at_the_limit_is_raised(rule: Rule, limit: int, all_work: int) -> None:
    at = all_work * limit // 100
    for work, status in ((at - 1, RAISED), (at, RAISED), (at + 1, LARGE)):
        stream = small(work)
        assert rule.of(stream, large(all_work - work), share=limit) == [status, NOT_WAITED], work
        assert rule.of(small(work), others=all_work - work, share=limit) == [status], "whoever launched the rest"
        assert stream.share == -(-work * 1000 // all_work)


def test_no_share_is_no_computation(rule: Rule) -> None:
    assert rule.of(small(1), large(), share=0) == [LARGE, NOT_WAITED]
    assert rule.of(small(0, communicates=True), large(), share=0) == [RAISED, NOT_WAITED]
    assert rule.of(small(100), share=100) == [TOGETHER], "whoever carries all of it is nobody's small work"


@pytest.mark.parametrize(
    ("works", "raised"),
    [
        ((49, 11), True),  # CoMD: its boundary and its interior
        ((49, 12), False),
        ((50, 10), True),
        ((30, 30), True),
        ((30, 31), False),
        ((20, 20, 20), True),
        ((20, 20, 21), False),
        ((0, 20, 20, 21), False),
        ((12, 12, 12, 12, 12), True),
        ((7,) * 8, True),
        ((8,) * 8, False),
    ],
)
def test_together_at_most_60_per_cent(rule: Rule, works: tuple[int, ...], raised: bool) -> None:
    """One more stream, for which nothing waits, carries the rest; then it is no stream that is listed."""
    statuses = [RAISED if raised else TOGETHER] * len(works)
    assert rule.of(*map(small, works), large(100 - sum(works))) == [*statuses, NOT_WAITED]
    assert rule.of(*map(small, works), others=100 - sum(works)) == statuses


@pytest.mark.parametrize("count", range(2, 40))
def test_equal_streams_are_nobodys_small_work(rule: Rule, count: int) -> None:
    assert rule.of(*(small(1000) for _ in range(count))) == [TOGETHER] * count


def test_only_streams_that_qualify_count_together(rule: Rule) -> None:
    """So each judgement of one stream is made before those of all."""
    facts = ({"waited": False}, {"is_default": True}, {"is_fixed": True}, {"launches_graphs": True}, {"is_wide": True})
    for fact in facts:
        assert rule.of(small(45), small(45, **fact), small(10))[::2] == [RAISED, RAISED], fact
    assert rule.of(small(55), small(45)) == [LARGE, RAISED]
    assert rule.of(small(55), small(25), small(20), share=20) == [LARGE, LARGE, RAISED]


def test_communication_stays_raised_beside_streams_that_carry_too_much_together(rule: Rule) -> None:
    for work, status in ((0, RAISED), (1, TOGETHER)):
        streams = small(40), small(40), small(work, communicates=True), large(20 - work)
        assert rule.of(*streams) == [TOGETHER, TOGETHER, status, NOT_WAITED]


def test_the_limit_together_is_not_the_policys(rule: Rule) -> None:
    for share in (55, 60, 99, 100):
        assert rule.of(small(55), small(5), large(40), share=share) == [RAISED, RAISED, NOT_WAITED]
        assert rule.of(small(55), small(6), large(39), share=share) == [TOGETHER, TOGETHER, NOT_WAITED]


# ---- Since the judgement before ----


def unchanged(streams: Iterable[Judged]) -> list[bytes]:
    return [bytes(stream) for stream in streams]


def test_nothing_launched_is_nothing_to_judge(rule: Rule) -> None:
    streams = [small(10, before=10), large(90, before=90), small(0), small(5, before=5, launches_graphs=True)]
    before = unchanged(streams)
    assert not rule.judge(streams)
    assert unchanged(streams) == before, "what waited still waits to be judged"
    assert not rule.judge([])
    assert rule.of(*streams, programs=True) == [PROGRAMS] * 4, "given back at once"
    assert rule.judge(streams, others=1)
    streams[0].work += 1
    streams[0].waited = True
    assert rule.of(*streams, others=9)[0] == RAISED


def test_communication_that_is_waited_for_is_raised_at_once(rule: Rule) -> None:
    """Also before anything else was launched: its work is not counted."""
    stream = small(0, communicates=True)
    assert rule.of(stream) == [RAISED] and stream.share == 0
    assert not rule.judge([stream]), "nothing waited since"
    first, second = small(0, communicates=True), large(0, communicates=True)
    assert rule.of(first, second) == [RAISED, NOT_WAITED]
    for status, facts, programs in ORDER[:3] + ORDER[4:6]:
        assert rule.of(small(**facts | {"work": 0, "communicates": True}), programs=programs) == [status]
    waiting = [small(0), large(0, communicates=True)]
    before = unchanged(waiting)
    assert not rule.judge(waiting) and unchanged(waiting) == before, "nothing waits for the one that communicates"


def test_communication_waited_for_again_raises_nobody_else(rule: Rule) -> None:
    """Nothing was computed since the judgement before, so its shares would be 0, also that of the interior."""
    interior, boundary = large(90, before=90, waited=True), small(0, communicates=True)
    before = unchanged([interior, boundary])
    assert not rule.judge([interior, boundary]) and unchanged([interior, boundary]) == before
    equal = [small(50, before=50, communicates=True), large(50, before=50, communicates=True)]
    assert not rule.judge(equal), "each has carried half"
    assert rule.of(interior, boundary, others=10) == [RAISED, RAISED], "an idle device's only, not an idle stream"


def test_shares_are_those_since_the_judgement_before(rule: Rule) -> None:
    first, second = small(10), small(90)
    assert rule.of(first, second) == [RAISED, LARGE]
    assert [(s.before, s.waited, s.share) for s in (first, second)] == [(10, False, 100), (90, False, 900)]
    first.work, second.work = 10 + 90, 90 + 10
    first.waited = second.waited = True
    assert rule.of(first, second) == [LARGE, RAISED], "turned over: a wrong raise ends with the next judgement"
    first.work += 10
    second.work += 90
    second.waited = True
    assert rule.of(first, second) == [NOT_WAITED, LARGE], "nothing waits for it any more"
    second.work += 1
    assert rule.of(first, second) == [NOT_WAITED, NOT_WAITED] and (first.share, second.share) == (0, 1000)


def test_others_are_since_the_judgement_before_as_they_are(rule: Rule) -> None:
    stream = small(10)
    assert rule.of(stream, others=90) == [RAISED]
    stream.work, stream.waited = 20, True
    assert rule.of(stream, others=9) == [LARGE]


def test_work_that_is_being_moved_is_not_less_than_none(rule: Rule) -> None:
    """A thread moves it from its own table to the stream, and the judgement sees it in neither."""
    moving, interior = small(10, before=1000), large(90)
    assert rule.of(moving, interior) == [RAISED, NOT_WAITED]
    assert (moving.share, interior.share, moving.before) == (0, 1000, 10)


def test_an_idle_stream_that_is_waited_for_is_raised_beside_others_work(rule: Rule) -> None:
    assert rule.of(small(0), large()) == [RAISED, NOT_WAITED]


# ---- Huge numbers ----


@pytest.mark.parametrize("power", [40, 53, 54, 55, 60, 62, 63])
@pytest.mark.parametrize(
    ("percent", "status"),
    [(0, RAISED), (1, RAISED), (49, RAISED), (50, RAISED), (51, LARGE), (99, LARGE), (100, LARGE)],
)
def test_huge_work_does_not_overflow(rule: Rule, power: int, percent: int, status: int) -> None:
    everything = 2**power
    work = everything * percent // 100
    stream, rest = small(work), large(everything - work)
    assert rule.of(stream, rest) == [status, NOT_WAITED]
    assert abs(stream.share - 10 * percent) <= 1 and abs(rest.share - 1000 + 10 * percent) <= 1
    assert rule.of(small(2**64 - 1, before=2**64 - 1 - work), others=everything - work) == [status]


@pytest.mark.parametrize("power", [50, 54, 55, 60, 63])
def test_huge_work_together(rule: Rule, power: int) -> None:
    tenth = 2**power // 10
    assert rule.of(small(4 * tenth), small(2 * tenth - 10**12), large(4 * tenth))[:2] == [RAISED] * 2
    assert rule.of(small(4 * tenth), small(3 * tenth), large(3 * tenth))[:2] == [TOGETHER] * 2
    half = 2 ** (power - 1)
    assert rule.of(small(half), large(half)) == [RAISED, NOT_WAITED]
    assert rule.of(small(half), small(half)) == [TOGETHER] * 2


# ---- When ----


def test_an_early_judgement_ends_nothing(rule: Rule) -> None:
    """What is raised counts as waited for, and the next judgement covers the time before and after the early one."""
    streams = small(), large()
    assert rule.of(*streams) == [RAISED, NOT_WAITED]
    late = small(10)
    streams[1].work += 90
    assert rule.of(*streams, late, early=True) == [RAISED, NOT_WAITED, RAISED]
    assert (streams[0].waited, late.waited, late.before, streams[1].before) == (False, True, 0, 90)
    streams[0].work += 1
    streams[1].work += 90
    assert rule.of(*streams, late) == [NOT_WAITED, NOT_WAITED, RAISED]
    assert late.share == 53, "10 of 191"


def test_a_raised_stream_without_a_turn_stays(rule: Rule) -> None:
    """Nothing was launched on it, so that nobody waited for it says nothing. Communication is no work."""
    turn, idle, talks = small(), small(communicates=True, work=0), small(work=0)
    interior = large()
    assert rule.of(turn, idle, talks, interior) == [RAISED, RAISED, RAISED, NOT_WAITED]
    interior.work += 90
    assert rule.of(turn, idle, talks, interior) == [RAISED, NOT_WAITED, RAISED, NOT_WAITED]
    turn.work += 1
    interior.work += 90
    assert rule.of(turn, interior) == [NOT_WAITED, NOT_WAITED]
    interior.work += 90
    assert rule.of(turn, interior) == [NOT_WAITED, NOT_WAITED], "it is not raised for being idle"
    assert rule.of(talks, interior, programs=True) == [PROGRAMS, PROGRAMS]


def test_next_to_nothing_is_by_what_the_stream_itself_carried(rule: Rule) -> None:
    """However small its part of the device's computation is: a halo of one in a million that goes on is given back."""
    halo, interior = small(640), large(10**9)
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED]
    for more, status in ((20, RAISED), (0, RAISED), (21, NOT_WAITED)):
        halo.work += more
        interior.work += 10**9
        assert rule.of(halo, interior) == [status, NOT_WAITED], more


def test_next_to_nothing_again_and_again_is_something(rule: Rule) -> None:
    """What counts is all since something last waited. Much of the device's work it is, since that is less by now."""
    halo, interior = small(640), large(1000)
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED]
    statuses = []
    for _ in range(6):
        halo.work, interior.work = halo.work + 5, interior.work + 6
        statuses.append(rule.of(halo, interior)[0])
    assert halo.share > 450 and statuses == 4 * [RAISED] + 2 * [NOT_WAITED]
    halo.waited, halo.work, interior.work = True, halo.work + 640, interior.work + 1000
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED]
    halo.work, interior.work = halo.work + 20, interior.work + 1000
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED], "counted anew since that wait"


def test_one_short_turn_does_not_make_the_next_one_long(rule: Rule) -> None:
    """The thread had 640 of work between two judgements, then 10 and a wait, then 9 whose wait is to come."""
    halo, interior = small(640), large(10**6)
    for more, waited in ((0, True), (10, True), (9, False)):
        halo.work, halo.waited, interior.work = halo.work + more, waited, interior.work + 10**6
        assert rule.of(halo, interior) == [RAISED, NOT_WAITED], more


@pytest.mark.parametrize("waited", [True, False])
def test_an_early_judgement_leaves_next_to_nothing_as_it_is(rule: Rule, waited: bool) -> None:
    """What the stream carries in turns, and what it has carried since a wait, are from judgements that are due."""
    halo, interior = small(640), large(10**6)
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED]
    halo.work, halo.waited = halo.work + 10, waited
    for _ in range(5):
        interior.work += 10**6
        assert rule.of(halo, interior, early=True) == [RAISED, NOT_WAITED]
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED]
    halo.work, interior.work = halo.work + 10, interior.work + 10**6
    assert rule.of(halo, interior) == [RAISED, NOT_WAITED]
    halo.work, interior.work = halo.work + 1, interior.work + 10**6
    assert rule.of(halo, interior) == [NOT_WAITED, NOT_WAITED]


def test_when_a_judgement_is_due(rule: Rule) -> None:
    due = {16, 32, 64, 128, 256, 512, 1024, *range(2048, 20_000, 1024)}
    assert {waits for waits in range(20_000) if rule.library.is_due(ctypes.c_uint64(waits))} == due
    for waits in (2**20, 2**32, 2**32 + 1024, 2**63, 2**64 - 1024):
        assert rule.library.is_due(ctypes.c_uint64(waits))
        assert not rule.library.is_due(ctypes.c_uint64(waits - 16))


# ---- Against a model ----


@dataclass
class Stream:
    """As design.md, section 2, speaks of one; its work is that since the judgement before."""

    work: int = 0
    usual: int = 0
    alone: int = 0
    waited: bool = False
    communicates: bool = False
    launches_graphs: bool = False
    is_default: bool = False
    is_wide: bool = False
    is_fixed: bool = False


def judged(streams: Sequence[Stream], others: int, share: int, programs: bool, computed: bool) -> list[int] | None:
    everything = others + sum(stream.work for stream in streams)
    communicated = any(stream.communicates and stream.waited for stream in streams)
    if not everything and not programs and (computed or not communicated):
        return None
    found = [
        DEFAULT if s.is_default
        else PROGRAMS if programs
        else FIXED if s.is_fixed
        else NOT_WAITED if not s.waited
        else GRAPHS if s.launches_graphs
        else WIDE if s.is_wide
        else LARGE if 100 * s.work > share * everything
        else RAISED
        for s in streams
    ]  # fmt: skip
    together = sum(stream.work for stream, status in zip(streams, found) if status == RAISED)
    return [
        TOGETHER if s == RAISED and 100 * together > 60 * everything and (stream.work or not stream.communicates) else s
        for stream, s in zip(streams, found)
    ]


works = st.integers(0, 12) | st.sampled_from([20, 25, 30, 50, 60, 1000]) | st.integers(0, 2**44)
rarely = st.sampled_from([False, False, False, False, False, True])
# Most of them qualify but for their work.
KINDS = 8 * [Stream(waited=True)] + [
    Stream(**{"waited": waited, fact: True}) for waited in (False, True) for fact in FACTS[1:]
]
streams_ = st.builds(lambda kind, work: replace(kind, work=work), st.sampled_from(KINDS), works)


class Judgement(NamedTuple):
    streams: list[Stream]
    others: int
    share: int
    programs: bool


judgements = st.builds(
    Judgement,
    st.lists(streams_, min_size=1, max_size=7),
    st.sampled_from([0, 0, 0, 10, 40, 2**44]),
    st.sampled_from([25, 50, 50, 60]) | st.integers(1, 100),
    rarely,
)


@settings(max_examples=500)
@given(rounds=st.lists(judgements, min_size=1, max_size=5), start=st.just(0) | st.integers(0, 2**62))
@example(rounds=[Judgement([Stream(49, True), Stream(11, True), Stream(40)], 0, 50, False)], start=0)
@example(rounds=[Judgement([Stream(8, True)] * 8, 0, 50, False)] * 2, start=1)
def test_judgements_one_after_the_other_are_those_of_the_model(rule: Rule, rounds: list[Judgement], start: int) -> None:
    """What a stream has launched grows; a judgement that finds nothing leaves all to the next one."""
    there: list[Judged] = []
    model: list[Stream] = []
    for now in rounds:
        while len(there) < len(now.streams):
            there.append(Judged(work=start, before=start, status=UNTOUCHED, share=UNTOUCHED))
            model.append(Stream())
        stands = [seen.status == RAISED for seen in there]
        for judged_, own, seen in zip(there, model, now.streams):
            judged_.work += seen.work
            own.work += seen.work
            for fact in FACTS:
                value = getattr(seen, fact) or (fact == "waited" and own.waited)
                setattr(judged_, fact, value)
                setattr(own, fact, value)
        everything = now.others + sum(own.work for own in model)
        computed = any(judged_.work for judged_ in there)
        usual = [max(own.work, own.usual // 2) if own.waited else own.usual for own in model]
        alone = [0 if own.waited else own.alone + own.work for own in model]
        for own, raised in zip(model, stands):  # next to no work says nothing
            little = own.alone + own.work <= own.usual // 32
            own.waited |= raised and little and not own.communicates and everything > 0
        expected = judged(model, now.others, now.share, now.programs, computed)
        before = unchanged(there)
        assert rule.judge(there, now.others, now.share, now.programs) == (expected is not None)
        if expected is None:
            assert unchanged(there) == before
            continue
        assert [judged_.status for judged_ in there] == expected
        for judged_, own, own.usual, own.alone in zip(there, model, usual, alone):
            assert judged_.share == (-(-own.work * 1000 // everything) if everything else 0)
            assert (judged_.before, judged_.waited) == (judged_.work, False)
            own.work, own.waited = 0, False


def as_judged(streams: Iterable[Stream], factor: int = 1) -> list[Judged]:
    return [Judged(**vars(replace(stream, work=stream.work * factor))) for stream in streams]


@settings(max_examples=300)
@given(now=judgements, factor=st.integers(2, 64), data=st.data())
def test_what_holds_whatever_the_streams(rule: Rule, now: Judgement, factor: int, data: st.DataObject) -> None:
    """Said without the model: what the rule promises, and what cannot matter."""
    streams = as_judged(now.streams)
    if not rule.judge(streams, now.others, now.share, now.programs):
        return
    raised = [stream for stream, seen in zip(now.streams, streams) if seen.status == RAISED]
    everything = now.others + sum(stream.work for stream in now.streams)
    assert 100 * sum(stream.work for stream in raised) <= 60 * everything
    for stream in raised:
        assert stream.waited and 100 * stream.work <= now.share * everything
        assert not (now.programs or stream.is_default or stream.is_fixed or stream.is_wide or stream.launches_graphs)
    order = data.draw(st.permutations(range(len(streams))))
    other = as_judged(now.streams[index] for index in order)
    assert rule.judge(other, now.others, now.share, now.programs)
    assert [seen.status for seen in other] == [streams[index].status for index in order]
    bigger = as_judged(now.streams, factor)
    assert rule.judge(bigger, now.others * factor, now.share, now.programs)
    assert [(seen.status, seen.share) for seen in bigger] == [(seen.status, seen.share) for seen in streams]
