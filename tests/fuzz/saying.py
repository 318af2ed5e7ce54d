"""What a person's terminal may be sent, whatever a file holds."""

from __future__ import annotations

import unicodedata


def unprintable(text: str) -> str:
    """The first characters that would move a cursor, start an escape sequence or turn letters around."""
    bad = {character for character in set(text) if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return ascii("".join(sorted(bad - {"\n"})[:8])) if bad - {"\n"} else ""
