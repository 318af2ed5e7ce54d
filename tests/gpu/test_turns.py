"""Processes that take turns: a rank that answers, one that dies, one that cannot."""

from __future__ import annotations

import sys

import pytest

from tools.gpu.turns import Ranks

RANK = """
import os, sys
from tools.gpu.turns import say, serve
print("what somebody else prints")
def turn(request):
    print("more of it")
    if request == "die" and os.environ["RANK"] == "1":
        os._exit(3)
    if request == "fail" and os.environ["RANK"] == "1":
        raise RuntimeError("out of memory")
    return [request, int(os.environ["RANK"]), os.environ["WORLD_SIZE"], os.environ.get("SETTING")]
serve("ready", turn)
say("counted")
"""


def ranks(world: int = 2) -> Ranks:
    return Ranks("arm", [sys.executable, "-c", RANK], {"SETTING": "7"}, world, 29999)


def test_every_rank_answers_in_its_place_whatever_else_is_printed() -> None:
    arm = ranks()
    assert arm.answers(20) == ["ready", "ready"]
    assert arm.ask("one") == [["one", 0, "2", "7"], ["one", 1, "2", "7"]]
    assert arm.end() == [0, 0]
    assert arm.last == ["counted", "counted"]
    assert not arm.broken


def test_a_request_that_fails_spoils_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    arm = ranks()
    arm.answers(20)
    assert arm.ask("fail") == [["fail", 0, "2", "7"], None]
    assert "arm: out of memory" in capsys.readouterr().err
    assert arm.ask("two")[1] == ["two", 1, "2", "7"]
    assert arm.end() == [0, 0]


def test_a_rank_that_dies_is_not_waited_for_and_nothing_more_is_asked() -> None:
    arm = ranks()
    arm.answers(20)
    assert arm.ask("die", patience=20)[1] is None
    assert arm.broken
    assert arm.ask("again") == [None, None]
    assert arm.end() == [0, 3]


def test_a_rank_that_does_not_end_is_killed_and_collected() -> None:
    arm = Ranks("arm", [sys.executable, "-c", "import time; time.sleep(60)"], {}, 1, 29999)
    assert arm.end(patience=0.2) == [-999]
    assert arm.processes[0].returncode == -9
