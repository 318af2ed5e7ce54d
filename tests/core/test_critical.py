"""Critical streams by themselves: what rounds say, what is over, and threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., str]
SOURCES = ("core/critical.c", "core/sync_model.c", "core/event.c", "core/window.c", "core/knowledge.c")
MINOR, MAJOR, EDGE = "k:1:8 k:2:100 c:1", "k:1:100 k:2:8 c:1", "k:1:30 k:2:70 c:1"


@pytest.fixture(scope="module")
def states(compile_c: Any, run_program: Run) -> Callable[..., str]:
    program = compile_c("critical_corners.c", *SOURCES)

    def run(*words: str, share: int = 25) -> str:
        return run_program(program, share, *" ".join(words).split()).strip()

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param([MINOR] * 4, "??c!c", id="two rounds with a small share"),
        pytest.param([MAJOR] * 4, "??m!m", id="two rounds with a large one"),
        pytest.param([MINOR, MINOR, MAJOR, MINOR, MAJOR, MINOR, MINOR], "??????c!", id="in a row"),
        pytest.param([MINOR] * 3 + [EDGE] * 4, "??c!cccc", id="half as much again stays"),
        pytest.param([EDGE] * 4, "??m!m", id="...and is not small"),
        pytest.param([MINOR] * 3 + [MAJOR, MINOR, MAJOR, MINOR], "??c!cccc", id="a large round alone"),
        pytest.param([MINOR] * 3 + [MAJOR] * 2 + [MINOR] * 4, "??c!cm!mmmc!", id="twice as many once it fell"),
        pytest.param(
            [MINOR] * 3 + [MAJOR] * 2 + [MINOR] * 4 + [MAJOR] * 2 + [MINOR] * 8,
            "??c!cm!mmmc!cm!mmmmmmmc!",
            id="...and again",
        ),
        pytest.param(["k:1:8 c:1"] * 5, "?????", id="nobody else computes"),
        pytest.param(["k:1:8 k:2:100 c:1 c:1 c:1 c:1"] * 2, "????????", id="waited for many times in one round"),
        pytest.param(["k:2:100 c:1"] * 4, "?e!ee", id="it carries nothing"),
        pytest.param([MINOR, MINOR, "count", MINOR, MINOR], "???c!", id="counting begins anew"),
        pytest.param(["k:1:25 k:2:75 c:1"] * 3, "??c!", id="just as much as is allowed"),
        pytest.param(["k:1:26 k:2:74 c:1"] * 3, "??m!", id="just more"),
        pytest.param(["k:1:2000000000 k:2:2000000000"] * 9 + [MINOR] * 3, "?" + "?c!", id="much work before"),
    ],
)  # fmt: skip
def test_rounds(states: Callable[..., str], words: list[str], said: str) -> None:
    assert states(*words) == said


def test_falls_are_counted_to_a_limit(states: Callable[..., str]) -> None:
    """A program that changes for the twentieth time can still be learnt."""
    for falls in range(1, 9):
        asked = 2 << min(falls, 5)
        words = [MINOR]
        for fall in range(falls):
            words += [MINOR] * (2 << min(fall, 5)) + [MAJOR] * 2
        assert states(*words, *[MINOR] * (asked - 1))[-1] == "m"
        assert states(*words, *[MINOR] * asked)[-2:] == "c!"


@pytest.mark.parametrize(
    ("between", "said"),
    [
        pytest.param("", "??c!c", id="others are at it"),
        pytest.param("o:2", "????", id="seen to be over"),
        pytest.param("r:1:2 w:1:1", "????", id="waited for by the stream itself"),
        pytest.param("r:1:2 k:2:8 w:1:1", "??c!c", id="...but not all of it"),
        pytest.param("r:1:2 w:3:1 o:3", "????", id="seen to be over behind a third"),
        pytest.param("gone:2", "????", id="its stream is gone"),
        pytest.param("k:3:8 o:2", "??c!c", id="another one is at it"),
        pytest.param("k:3:8 k:4:8 k:5:8 r:1:2 r:2:3 r:3:4 r:4:5 w:1:1 w:1:2 w:1:3 w:1:4", "????", id="four"),
        pytest.param("k:3:8 o:2 r:2:3 gone:3 w:1:2", "????", id="an event of a stream that is gone"),
    ],
)  # fmt: skip
def test_the_host_waits_while_others_run(states: Callable[..., str], between: str, said: str) -> None:
    """What is waited for when nothing else runs is no reason to hurry."""
    assert states(*[f"k:1:8 k:2:100 {between} h:1 o:1"] * 4) == said


def test_communication_counts_whatever_runs(states: Callable[..., str]) -> None:
    assert states(*["k:1:8 k:2:100 o:2 c:1"] * 3) == "??c!"


def test_what_is_over_is_over_once(states: Callable[..., str]) -> None:
    assert states("k:1:8 k:2:100 r:1:2 left o:2 left o:2 left w:1:1 o:1 left k:1:5 left gone:2 left count left") == (
        "108  8  8  0  5  5  0"
    )


@pytest.mark.parametrize("flags", [(), ("-fsanitize=thread", "-Wno-error")], ids=["plain", "tsan"])
def test_threads_lose_no_work(flags: tuple[str, ...], compile_c: Any, run_program: Run) -> None:
    program: Path = compile_c(
        "critical_stress.c", *SOURCES, flags=flags, name="critical_stress" + ("-tsan" if flags else "")
    )
    output = run_program(program, 20000, TSAN_OPTIONS="halt_on_error=1 exitcode=66")
    lost, left, too_much, changes = map(int, output.split())
    assert (lost, left, too_much) == (0, 0, 0)
    assert changes > 0
