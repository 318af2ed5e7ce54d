"""The arithmetic of intervals, against one that looks at every microsecond by itself."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.traces import columns as columns_module
from pyshim.traces.columns import Columns, Kind, Shape
from pyshim.traces.overlap import Times, measure

END = 40
SHAPES = [
    Shape("gemm", Kind.COMPUTATION, 4),
    Shape("gemm", Kind.COMPUTATION, 8),
    Shape("nccl", Kind.COMMUNICATION, 24),
    Shape("", Kind.MEMORY, None),
]
# shape, stream, start, length: whole microseconds, so that every sum is exact.
RAN = st.tuples(
    st.sampled_from(range(len(SHAPES))), st.sampled_from("78"), st.integers(-5, END + 5), st.integers(0, 12)
)
BOUNDS = st.lists(st.integers(0, END), min_size=2, max_size=6, unique=True).map(sorted)


def filled(ran: list[tuple[int, str, int, int]]) -> Columns:
    made = Columns()
    for shape, stream, start, length in ran:
        made.add(SHAPES[shape], stream, float(start), float(start + length))
    return made


def sampled(ran: list[tuple[int, str, int, int]], bounds: list[int]) -> list[Times]:
    """Each microsecond by itself; and each kernel of computation by those that it ran in."""
    kinds: defaultdict[int, set[Kind]] = defaultdict(set)
    for shape, _, start, length in ran:
        for moment in range(start, start + length):
            kinds[moment].add(SHAPES[shape].kind)
    alone = defaultdict(list)
    beside = defaultdict(list)
    steps = [Times(span=float(end - start)) for start, end in zip(bounds, bounds[1:])]
    for number, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        for moment in range(begin, end):
            now = kinds[moment]
            steps[number].computation += Kind.COMPUTATION in now
            steps[number].communication += Kind.COMMUNICATION in now
            steps[number].hidden += {Kind.COMPUTATION, Kind.COMMUNICATION} <= now
            steps[number].idle += not now
        for shape, _, start, length in ran:
            if (
                SHAPES[shape].kind is Kind.COMPUTATION
                and begin <= start < end
                and start + length <= bounds[-1]
                and length
            ):
                both = sum(Kind.COMMUNICATION in kinds[moment] for moment in range(start, start + length))
                if both == 0:
                    alone[number, shape].append(length)
                elif 2 * both >= length:
                    beside[number].append((shape, length))
    for number, times in enumerate(steps):
        known = [
            (length, sum(alone[number, shape]) / len(alone[number, shape]))
            for shape, length in beside[number]
            if alone[number, shape]
        ]
        if known:
            times.slowdown = sum(took for took, _ in known) / sum(expected for _, expected in known)
    return steps


@settings(max_examples=400)
@given(st.lists(RAN, max_size=25), BOUNDS)
def test_measures_are_what_a_sampler_sees(ran, bounds):
    found = measure(filled(ran), [float(bound) for bound in bounds])
    expected = sampled(ran, bounds)
    for one, other in zip(found, expected):
        assert (one.slowdown is None) == (other.slowdown is None)
        if one.slowdown is not None:
            assert one.slowdown == pytest.approx(other.slowdown)
            one.slowdown = other.slowdown
    assert found == expected


@settings(max_examples=100)
@given(st.lists(RAN, max_size=40))
def test_what_ran_comes_in_order_whatever_the_order_of_the_file(ran):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "_RUN", 7)
        made = filled(ran)
        for _ in range(2):
            found = [
                (made.shapes[one.shape], made.streams[one.stream], one.start_us, one.end_us) for one in made.in_order()
            ]
            assert [one[2] for one in found] == sorted(one[2] for one in found)
            assert sorted(map(repr, found)) == sorted(
                repr((SHAPES[shape], stream, float(start), float(start + length)))
                for shape, stream, start, length in ran
            )


def test_the_definitions_by_hand():
    """Two all-reduces of 10: one beside a GEMM of 8, one beside nothing; a copy keeps the GPU from being idle."""
    made = filled([(0, "7", 0, 8), (2, "8", 0, 10), (2, "8", 20, 10), (3, "7", 10, 5)])
    (times,) = measure(made, (0.0, 30.0))
    assert times == Times(span=30, computation=8, communication=20, hidden=8, idle=5)
    assert (times.exposed, times.share) == (12, 0.4)
    assert Times().share is None


def test_slowdown_is_weighted_by_time_and_compares_equal_grids():
    ran = [(0, "7", 0, 4), (0, "7", 4, 4), (1, "7", 8, 1)]  # alone: 4, 4 and 1
    ran += [(2, "8", 10, 30), (0, "7", 10, 6), (0, "7", 16, 6), (1, "7", 22, 2)]  # beside: 6, 6 and 2
    (times,) = measure(filled(ran), (0.0, 40.0))
    assert times.slowdown == pytest.approx((6 + 6 + 2) / (4 + 4 + 1))


def test_beside_is_half_of_its_time_or_more():
    alone, reduce = (0, "7", 0, 4), (2, "8", 10, 5)
    for length, slowdown in ((10, 10 / 4), (11, None)):
        (times,) = measure(filled([alone, reduce, (0, "7", 10, length)]), (0.0, 40.0))
        assert times.slowdown == slowdown


def test_a_kernel_belongs_to_the_step_that_it_begins_in():
    ran = [(0, "7", 0, 4), (2, "8", 8, 20), (0, "7", 8, 6), (0, "7", 30, 4), (0, "7", 14, 12)]
    first, second = measure(filled(ran), (0.0, 10.0, 40.0))
    assert (first.slowdown, second.slowdown) == (6 / 4, 12 / 4)


def test_steps_far_from_zero_lose_nothing():
    """Kineto's clock counts microseconds of years."""
    base, made = 4.4e12, random.Random(3)
    ran = [(made.choice((0, 2)), "7", made.randrange(0, 4000), made.randrange(1, 50)) for _ in range(300)]
    shifted = Columns()
    for shape, stream, start, length in ran:
        shifted.add(SHAPES[shape], stream, base + start, base + start + length)
    assert measure(shifted, (base, base + 2000, base + 5000)) == measure(filled(ran), (0.0, 2000.0, 5000.0))
