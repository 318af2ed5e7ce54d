"""The one line at the end of a process: what it says of streams that were raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

COMMUNICATION, HOST = 1, 2
RAISED, MAJOR = 1, 2


@pytest.fixture(scope="module")
def program(compile_c: Any) -> Path:
    return compile_c("summary_lines.c", "core/stats.c", "core/rows.c", "core/match.c")


@pytest.mark.parametrize(
    ("counts", "streams", "said"),
    [
        ((6040, 6040, 6040, 0), [], "12,080 launches: 0 shaped, 6,040 of 6,040 communication launches raised; left "),
        (
            (6040, 6040, 40, 0),
            [(HOST, MAJOR)],
            "40 of 6,040 communication launches raised; left alone most often: no_rule",
        ),
        (
            (3, 6040, 0, 6040),
            [(COMMUNICATION, RAISED)],
            "12,083 launches: 0 shaped, 0 of 6,040 communication launches raised by themselves, 6,040 others raised on "
            "1 critical stream, and the communication on it; left alone most often: no_rule (3); next: ",
        ),
        (
            (0, 6040, 40, 1),
            [(COMMUNICATION | HOST, RAISED), (HOST, RAISED), (HOST, MAJOR)],
            "40 of 6,040 communication launches raised by themselves, 1 other raised on 2 critical streams, and the "
            "communication on them; next: ",
        ),
        (
            (0, 0, 0, 500),
            [(HOST, RAISED)],
            "0 of 0 communication launches raised, 500 others raised on 1 critical stream; next: ",
        ),
        (
            (0, 0, 0, 500),
            [(HOST, MAJOR)],
            "0 of 0 communication launches raised, 500 others raised on 0 critical streams; next: ",
        ),
    ],
)
def test_what_was_raised_with_its_stream(
    program: Path,
    run_program: Callable[..., str],
    counts: tuple[int, ...],
    streams: list[tuple[int, int]],
    said: str,
) -> None:
    words = [*map(str, counts), *(f"{why},{status}" for why, status in streams)]
    assert said in run_program(program, *words)


@pytest.mark.parametrize(
    ("status", "kept", "said"),
    [
        (0, 0, "no verdict"),
        (1, 1, "b kept"),
        (1, 2, f"{'c' * 64} kept"),
        (1, 6, "no verdict"),
        (2, 0, "nothing kept, no arm is faster"),
        (3, 0, "no verdict"),
        (7, 1, "no verdict"),
    ],
)
def test_what_a_trial_kept(program: Path, run_program: Callable[..., str], status: int, kept: int, said: str) -> None:
    """Instead of why launches were left alone: under which arm?"""
    line = run_program(program, "9", "9", "0", "0", f"trial:{status}:{kept}")
    assert line.strip() == (
        f"18 launches: 0 shaped, 0 of 9 communication launches raised; trial: {said}; "
        "next: overlap-run --report DIR ... says why"
    )
