"""What programs see, and what the driver gets, with the library and without it: words/*.txt, by words.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import words
from interposing import Build, Runner

CASES = {
    name: text
    for path in sorted((Path(__file__).parent / "words").glob("*.txt"))
    for name, text in words.read(path).items()
}


@pytest.mark.parametrize("name", CASES)
def test_words(name: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    words.check(CASES[name], build, bare, preloaded)
