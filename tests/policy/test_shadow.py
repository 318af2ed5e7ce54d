"""Covering is claimed only where it is certain."""

from __future__ import annotations

from fnmatch import fnmatchcase
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.policy.model import ANY, Match, Range, Rule, Shape
from pyshim.policy.shadow import covers, pattern_covers, shadowed

PATTERNS = st.lists(st.sampled_from(["*", "?", "a", "b", "[ab]", "[!a]"]), max_size=6).map("".join)
NAMES = st.text(alphabet="abc", max_size=6)


@settings(max_examples=1000)
@given(PATTERNS, PATTERNS, NAMES)
def test_a_pattern_that_covers_another_matches_whatever_that_one_matches(wide: str, narrow: str, name: str) -> None:
    if pattern_covers(wide, narrow) and fnmatchcase(name, narrow):
        assert fnmatchcase(name, wide)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("*", "anything*", True),
        ("*gemm*", "sgemm_[0-9]*", False),
        ("*gemm*", "sgemm_*", True),
        ("*gemm*", "?gemm", True),
        ("gemm*", "*gemm*", False),
        ("?emm", "gemm", True),
        ("?emm", "*emm", False),
        ("[ab]", "a", True),
        ("*a*", "[abc]", False),
        ("", "", True),
    ],
)
def test_patterns(wide: str, narrow: str, expected: bool) -> None:
    assert pattern_covers(wide, narrow) is expected


@pytest.mark.parametrize("field", ["blocks", "threads", "registers", "waves_percent", "resident_blocks"])
def test_every_range_counts(field: str) -> None:
    wide, narrow = Match(), Match()
    object.__setattr__(wide, field, Range(2, 9))
    object.__setattr__(narrow, field, Range(3, 9))
    assert covers(wide, narrow)
    assert not covers(narrow, wide)
    assert covers(Match(), wide)
    assert not covers(wide, Match())


def test_no_pattern_takes_all_and_a_library_pattern_never_does() -> None:
    assert covers(Match(), Match(kernels=("a",), libraries=("b",)))
    assert covers(Match(kernels=("x", "*")), Match())
    assert not covers(Match(libraries=("*",)), Match())
    assert not covers(Match(kernels=("a",)), Match(kernels=("a", "b")))


RANGES = st.builds(lambda low, more: Range(low, low + more), st.integers(0, 3), st.integers(0, 3)) | st.just(ANY)
LIBRARIES = st.lists(st.sampled_from(["a", "a*", "*", "b"]), max_size=2).map(tuple)
RULES = st.builds(
    lambda kernels, libraries, blocks, threads: Rule(
        Match(kernels=tuple(kernels), libraries=libraries, blocks=blocks, threads=threads),
        Shape("make_room"), 50, "always",
    ),
    st.lists(st.sampled_from(["*", "a", "b", "a*", "*b", "?", "[ab]"]), max_size=2),
    LIBRARIES,
    RANGES,
    RANGES,
)  # fmt: skip


def matches(rule: Rule, launch: tuple[str, str, int, int]) -> bool:
    kernel, library, blocks, threads = launch
    match = rule.match
    return (
        (not match.kernels or any(fnmatchcase(kernel, glob) for glob in match.kernels))
        and (not match.libraries or (library != "" and any(fnmatchcase(library, glob) for glob in match.libraries)))
        and match.blocks.minimum <= blocks <= match.blocks.maximum
        and match.threads.minimum <= threads <= match.threads.maximum
    )


def deciding(rules: list[Rule], launch: tuple[str, str, int, int]) -> Rule | None:
    return next((rule for rule in rules if matches(rule, launch)), None)


@settings(max_examples=300)
@given(st.lists(RULES, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_no_launch_is_decided_by_a_rule_that_is_called_shadowed(rules: list[Rule], random: Random) -> None:
    useless = [rule for rule, _ in shadowed(rules)]
    for _ in range(40 if useless else 0):
        launch = (
            random.choice(["a", "b", "ab", "c"]),
            random.choice(["", "a", "ab", "b"]),
            random.randrange(8),
            random.randrange(8),
        )
        found = deciding(rules, launch)
        assert not any(found is rule for rule in useless)


def rule(kernel: str, **ranges: Range) -> Rule:
    return Rule(Match(kernels=(kernel,), **ranges), Shape("leave"), 0, "always")


def takers(*rules: Rule) -> list[int]:
    """Indices of the rules that take all of the last one."""
    return [rules.index(one) for last, others in shadowed(rules) if last is rules[-1] for one in others]


def test_several_rules_take_what_none_of_them_takes_alone() -> None:
    low, high, rest = Range(0, 3), Range(4, 9), Range(10, 2**64 - 1)
    assert takers(rule("*a*", blocks=low), rule("*", blocks=high), rule("*", blocks=rest), rule("a")) == [0, 1, 2]
    assert takers(rule("*a*", blocks=low), rule("*", blocks=rest), rule("a")) == []
    assert takers(rule("*", blocks=low, threads=low), rule("*", blocks=Range(4)), rule("a")) == []
    assert takers(rule("*", blocks=low, threads=low), rule("*", blocks=Range(4)), rule("a", threads=low)) == [0, 1]
