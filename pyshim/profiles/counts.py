"""Numbers with their nouns."""

from __future__ import annotations


def plural(number: int, word: str, words: str = "") -> str:
    """Return a number with its noun. words: the plural if it is not word + s."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"
