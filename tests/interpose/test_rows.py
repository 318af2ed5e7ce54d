"""What programs see, and what the driver gets, with the library and without it: rows/*.txt, by rows.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import rows
from interposing import Build, Runner

CASES = {
    name: text
    for path in sorted((Path(__file__).parent / "rows").glob("*.txt"))
    for name, text in rows.read(path).items()
}


@pytest.mark.parametrize("name", CASES)
def test_row(name: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    rows.check(CASES[name], build, bare, preloaded)
