"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, word: str, words: str = "") -> str:
    """Return "1 launch" or "1,200 launches". words: the plural where an ending does not make it.

    >>> counted(2, "box"), counted(1, "record has", "records have")
    ('2 boxes', '1 record has')
    """
    words = words or word + ("es" if word.endswith(("ch", "s", "x")) else "s")
    return f"{number:,} {word if number == 1 else words}"
