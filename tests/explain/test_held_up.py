"""What waits although raising it saves nothing: the short answer says it, and why, and denies none of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.explain.steps import LARGE, SMALL, Step


def full(one: Step, blocks: int = SMALL) -> None:
    """The GPU is full all the time; a small kernel waits behind it, and the host for that."""
    one.kernel("gemm", 0, 1000, called=-400)
    one.kernel("pack", 800, 20, stream=20, blocks=blocks, called=50)
    number = one.call("cudaStreamSynchronize", 60, 765)
    one._add("cuda_sync", "Stream Sync", 61, 762, 0, 20, stream=20, correlation=number, device=0)


def full_major(one: Step) -> None:
    full(one, 2 * LARGE)


def said(overlap: Any, path: Path, *options: str) -> str:
    done = overlap("explain", str(path), *options, env={"COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_a_full_gpu_says_what_waits_and_why_raising_it_saves_nothing(
    of_steps: Any, overlap: Any, tmp_path: Path
) -> None:
    found = of_steps(full, count=10)
    assert found["verdict"] == "no: computation" and found["process"]["waited_us"] > 700
    text = found["verdicts"][0]["text"]
    assert re.search(r"; stream 20 waits (at least )?7\d %, but raising it would save next to nothing, because ", text)
    assert "the GPU and the streams in front have other work all the same" in text and "little" not in text
    assert text in said(overlap, tmp_path / "trace.json")


def test_a_stream_that_carries_much_and_is_waited_for_is_not_nothing(of_steps: Any) -> None:
    found = of_steps(full_major, count=10)
    text = found["verdicts"][0]["text"]
    assert found["process"]["major"] and found["verdict"] == "no: computation", found["verdicts"]
    assert re.search(r"; stream 20 waits 7\d %, but has 67 % of the computation, as the default counts it", text), text


@pytest.mark.parametrize(("length", "words"), [(0, "nothing"), (10, r"next to nothing \(1\.0 % of a step\)")])
def test_what_runs_beside_the_one_stream_is_counted(of_steps: Any, length: int, words: str) -> None:
    def step(one: Step) -> None:
        one.kernel("gemm", 0, 990)
        if length:
            one.kernel("pack", 500, length, stream=20, blocks=SMALL, called=499)

    found = of_steps(step)
    assert found["verdict"] == "no: one stream" and found["process"]["beside_us"] == pytest.approx(length, abs=0.1)
    assert re.search(f"of the work is on stream 7, and {words} runs beside it", found["verdicts"][0]["text"])


def test_little_is_held_up_only_where_nothing_waits(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("gemm", 0, 900)
        one.kernel("tail", 850, 145, stream=20, called=848)

    found = of_steps(step)
    assert found["verdicts"][0]["text"].endswith(", and little is held up"), found["verdicts"]


def test_waits_that_overlap_are_said_to(overlap: Any, library: Any) -> None:
    """The table has 0.197 and 0.098 ms, the sentence 0.204."""
    words = said(overlap, Path("demo-stencil"), "--full")
    assert "is queued, ready to run, for 0.204 ms a step" in words
    assert "These waits add up to 0.295 ms. Some overlap in time: for 0.204 ms a step there is at least one." in words
