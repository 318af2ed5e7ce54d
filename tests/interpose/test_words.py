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
    why = re.search(r"^unsanitized: (.*)", CASES[name], re.M)
    if not why and "program: past" not in CASES[name]:
        return name
    reason = why[1] if why else "sanitizers refuse RTLD_DEEPBIND"
    return pytest.param(name, marks=pytest.mark.plain(reason, sanitized=True))


@pytest.mark.parametrize("name", map(case, CASES))
def test_words(name: str, build: Build, bare: Runner, preloaded: Runner, hip: Hip, world: World) -> None:
    words.check(CASES[name], build, bare, preloaded, hip, world)
