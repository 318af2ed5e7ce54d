"""Types of what the fixtures of these tests return."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

Lines = list[tuple[str, str, str]]  # state, sentence, hint
Look = Callable[..., Lines]
Compile = Callable[..., Path]


def states(lines: Lines) -> list[str]:
    return [state for state, _, _ in lines]
