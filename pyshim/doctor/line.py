"""What a check says."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "warn", "fail"]


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
