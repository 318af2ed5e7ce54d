"""What programs see, and what the driver gets, with the library and without it: words/*.txt, by words.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import words
from hip_interposing import Hip, World
from interposing import Build, Runner

CASES = {
    name: text
    for path in sorted((Path(__file__).parent / "words").glob("*.txt"))
    for name, text in words.read(path).items()
}


def case(name: str) -> object:
    if not re.search(r"^program: past$|RTLD_DEEPBIND", CASES[name], re.M):
        return name
    return pytest.param(name, marks=pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True))


@pytest.mark.parametrize("name", map(case, CASES))
def test_words(name: str, build: Build, bare: Runner, preloaded: Runner, hip: Hip, world: World) -> None:
    words.check(CASES[name], build, bare, preloaded, hip, world)
