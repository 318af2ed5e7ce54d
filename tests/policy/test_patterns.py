"""Covering is claimed only where it is certain."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.policy.values import pattern_covers

PATTERNS = st.lists(st.sampled_from(["*", "?", "a", "b", "[ab]", "[!a]"]), max_size=6).map("".join)
NAMES = st.text(alphabet="abc", max_size=6)


@settings(max_examples=500)
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
