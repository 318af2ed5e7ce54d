"""To whom callers are bound while libraries are closed (sys/bind.c), against a loader that counts what it is asked."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def told(compile_c: Any, run_program: Any) -> dict[str, set[str]]:
    """question -> all answers to it."""
    answers: dict[str, set[str]] = {}
    for line in run_program(compile_c("bind_corners.c")).splitlines():
        question, answer = line.split(": ")
        answers.setdefault(question, set()).add(answer)
    return answers


def test_answers_are_cached(told: dict[str, set[str]]) -> None:
    assert told["first"] == {"right, looked up"}
    assert told["second"] == told["several callers in turn"] == {"right, cached"}
    assert told["another page of the caller"] == {"right, cached"}


def test_a_destructor_uses_them(told: dict[str, set[str]]) -> None:
    """dlclose runs destructors before it unmaps anything, and a library may launch in its destructor, often."""
    assert told["second in a destructor"] == {"right, cached"}


@pytest.mark.parametrize(
    "when", ["after dlclose", "while another thread is in dlclose", "in a child", "in a signal handler"]
)
def test_no_answer_outlives_what_may_be_unmapped(when: str, told: dict[str, set[str]]) -> None:
    """A signal handler may have interrupted the thread while it writes its answers."""
    assert told[when] == {"right, looked up"}
