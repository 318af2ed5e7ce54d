"""To whom callers are bound while libraries are closed (sys/bind.c), against a loader that counts what it is asked."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def told(compile_c: Any, run_program: Any) -> dict[str, list[str]]:
    """question -> every answer to it, in order."""
    answers: dict[str, list[str]] = {}
    for line in run_program(compile_c("bind_corners.c")).splitlines():
        question, answer = line.split(": ")
        answers.setdefault(question, []).append(answer)
    return answers


def test_every_answer_is_right(told: dict[str, list[str]]) -> None:
    assert "wrong" not in told
    assert not any("wrong" in answer for answers in told.values() for answer in answers)


def test_answers_are_kept(told: dict[str, list[str]]) -> None:
    assert told["first"] == told["another object"] == ["right, 1 lookups, 2 walks"]
    assert told["second"] == told["and then"] == told["and again"] == ["right, 0 lookups, 0 walks"]


def test_nothing_is_looked_up_again_while_a_library_is_closed(told: dict[str, list[str]]) -> None:
    """As long as nothing was unmapped: a destructor may wait for threads that launch. Only a count is read."""
    assert told["again"] == ["right, 0 lookups, 1 walks"] * 4
    assert told["in a destructor"][0] == told["meanwhile"][0] == "right, 0 lookups, 1 walks"


def test_once_something_was_unmapped_answers_are_looked_up(told: dict[str, list[str]]) -> None:
    assert [answer.split(", ")[1] for answer in told["once it was unmapped"]] == ["1 lookups"] * 2
    assert [answer.split(", ")[1] for answer in told["after it"]] == ["0 lookups", "1 lookups"]


def test_a_library_without_answers_leaves_all_others(told: dict[str, list[str]]) -> None:
    assert told["one without answers was unmapped"] == ["generation stays"]
    assert told["another object is where one was"] == ["generation changes"]


def test_closing_takes_one_walk_for_all_answers(told: dict[str, list[str]]) -> None:
    """And one for the loader's count."""
    assert told["nothing was unmapped"] == ["1 walks"]
    assert told["an object of an answer was unmapped"] == ["2 walks"]
