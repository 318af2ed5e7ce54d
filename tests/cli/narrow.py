"""Screens of 60 columns, held to the golden screen of 80."""

from __future__ import annotations

import re
from collections import Counter

# Numbers, names and words; shortened names differ by width, and how lines and tables are folded is left open.
WORD = re.compile(r"\S+\.{3}\S+|(\w[\w,.%]*)")


def says_the_same(narrow: str, golden: str) -> None:
    """Fail unless a screen fits 60 columns and has every word and number of the golden screen, and no other."""
    assert max(map(len, narrow.splitlines())) <= 60
    words, expected = (Counter(WORD.findall(text)) for text in (narrow, golden))
    assert expected - words == Counter(), "words are lost"
    assert set(words) == set(expected), "a folded table repeats words of the golden screen only"
