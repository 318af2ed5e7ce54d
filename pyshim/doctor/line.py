"""What a check says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

State = Literal["ok", "warn", "fail"]


_SHOWN = 4


class Line(NamedTuple):
    state: State  # warn: it may be meant so, or costs something; fail: nothing can work like this
    sentence: str  # without a full stop
    hint: str = ""  # what to do


def ok(sentence: str) -> Line:
    return Line("ok", sentence)


def warn(sentence: str, hint: str) -> Line:
    return Line("warn", sentence, hint)


def fail(sentence: str, hint: str) -> Line:
    return Line("fail", sentence, hint)


def some(names: Sequence[str]) -> str:
    """Return the first four, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
