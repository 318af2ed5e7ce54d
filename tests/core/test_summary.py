"""The one line at the end of a process: what it says of streams that were raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native

NEXT = "; next: overlap-run --report DIR ... says why, and what to do"
LAUNCHES = ["no_rule=6040", "communication=6040", "communication:6040"]
# All but RAISED.
STREAMS = ["NOT_WAITED", "LARGE", "GRAPHS", "PROGRAMS", "DEFAULT", "WIDE", "TOGETHER", "FIXED"]


@pytest.fixture(scope="module")
def summary(compile_c: Any, run_program: Callable[..., str]) -> Callable[..., str]:
    program: Path = compile_c("summary_lines.c", "core/stats.c", "core/rows.c", "core/match.c")
    numbers = _native.header()

    def line(*words: str, directory: str = "") -> str:
        written = []
        for word in words:
            kind, _, name = word.partition(":")
            status = getattr(numbers, f"OVERLAP_STREAM_{name}", None) if kind in ("stream", "unfinished") else None
            written.append(word if status is None else f"{kind}:{status}")
        return run_program(program, directory, *written).rstrip("\n")

    return line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (LAUNCHES, "raised no stream (0 of 12,080 launches), 0 shaped, 6,040 of communication"),
        (
            [*LAUNCHES, "raised:1200", "stream:RAISED"],
            "raised 1 of 1 stream (1,200 of 12,080 launches), 0 shaped, 6,040 of communication",
        ),
        (
            [*LAUNCHES, "raised:1200", "stream:RAISED", *(f"stream:{name}" for name in STREAMS), "stream:RAISED"],
            "raised 2 of 10 streams (1,200 of 12,080 launches), 0 shaped, 6,040 of communication",
        ),
        (
            [*LAUNCHES, "raised:7", *(f"stream:{name}" for name in STREAMS)],
            "raised streams for a time (7 of 12,080 launches), 0 shaped, 6,040 of communication",
        ),
        (
            [*LAUNCHES, "stream:RAISED", "stream:LARGE"],
            "raised 1 of 2 streams (0 of 12,080 launches), 0 shaped, 6,040 of communication",
        ),
        ([*LAUNCHES, "unfinished:RAISED"], "raised no stream (0 of 12,080 launches), 0 shaped, 6,040 of communication"),
        (
            ["shaped=30", "capped_without_room=3", "one_wave=1", "captured=2", "raised=4", "raised:4"]
            + 16 * ["stream:RAISED"],
            "raised 16 of at least 16 streams (4 of 40 launches), 33 shaped, 0 of communication",
        ),
        (
            [*LAUNCHES, "raised:9", "created:2"],
            "raised 2 streams at their creation (9 of 12,080 launches), 0 shaped, 6,040 of communication",
        ),
        (
            [*LAUNCHES, "raised:1200", "graphs:10", "graphs_raised:8", "stream:RAISED"],
            "raised 1 of 1 stream (1,200 of 12,080 launches, 8 of 10 graphs), 0 shaped, 6,040 of communication",
        ),
        (
            ["graphs:10", "graphs_raised:8", "stream:RAISED", "stream:LARGE"],
            "raised 1 of 2 streams (8 of 10 graphs), 0 shaped, 0 of communication",
        ),
        (["graphs:1", "stream:LARGE"], "raised no stream (0 of 1 graph), 0 shaped, 0 of communication"),
        (["communication=1", "communication:1"], "raised no stream (0 of 1 launch), 0 shaped, 1 of communication"),
    ],
)
def test_what_was_done(summary: Callable[..., str], words: list[str], said: str) -> None:
    assert summary(*words) == said + NEXT


def test_next_is_the_report_that_there_is(summary: Callable[..., str]) -> None:
    assert summary(*LAUNCHES, directory="run-1").endswith(" of communication; next: overlap report run-1")


def test_no_launch_is_not_silence(summary: Callable[..., str]) -> None:
    unseen = "this process opened a GPU, but no kernel launch was seen: it launched none, or "
    said = summary("stream:RAISED")
    assert said.startswith(unseen + "a preloaded library cannot see its launches (") and said.endswith(NEXT)
