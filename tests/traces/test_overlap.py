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
    """Each microsecond by itself."""
    kinds: defaultdict[int, set[Kind]] = defaultdict(set)
    for shape, _, start, length in ran:
        for moment in range(start, start + length):
            kinds[moment].add(SHAPES[shape].kind)
    steps = [Times(span=float(end - start)) for start, end in zip(bounds, bounds[1:])]
    for number, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        for moment in range(begin, end):
            steps[number].communication += Kind.COMMUNICATION in kinds[moment]
            steps[number].hidden += {Kind.COMPUTATION, Kind.COMMUNICATION} <= kinds[moment]
    return steps


@settings(max_examples=400)
@given(st.lists(RAN, max_size=25), BOUNDS)
def test_measures_are_what_a_sampler_sees(ran, bounds):
    assert measure(filled(ran), [float(bound) for bound in bounds]) == sampled(ran, bounds)


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
    """Two all-reduces of 10: one beside a GEMM of 8, one beside a copy, which hides nothing."""
    made = filled([(0, "7", 0, 8), (2, "8", 0, 10), (2, "8", 20, 10), (3, "7", 10, 15)])
    assert measure(made, (0.0, 30.0)) == [Times(span=30, communication=20, hidden=8)]


def test_steps_far_from_zero_lose_nothing():
    """Kineto's clock counts microseconds of years."""
    base, made = 4.4e12, random.Random(3)
    ran = [(made.choice((0, 2)), "7", made.randrange(0, 4000), made.randrange(1, 50)) for _ in range(300)]
    shifted = Columns()
    for shape, stream, start, length in ran:
        shifted.add(SHAPES[shape], stream, base + start, base + start + length)
    assert measure(shifted, (base, base + 2000, base + 5000)) == measure(filled(ran), (0.0, 2000.0, 5000.0))
