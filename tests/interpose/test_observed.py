"""Under `observe` the rule is judged as under the default, and nothing is raised: it is said what the default does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interposing import Build, Done, Runner
from iterating import HOST, JOIN, STYLE_0, Iterations, raised

from pyshim.start import plan

# Of each, whether the default raises anything.
PROGRAMS = {
    "communication behind a boundary": (f"b:1 b:2 begin {STYLE_0}", True),
    "the host waits": (f"begin {HOST.format(wait='s:2')}", True),
    "equal streams": (f"begin k:1:500 j:2:500 s:1 s:2 {JOIN}", False),
    "nothing waits": ("begin k:2:8 j:1:1000", False),
    "one stream": ("begin k:1:8 j:1:1000 s:1", False),
    "the program's own priorities": ("p:2:-1 begin k:2:8 j:1:1000 s:2", False),
    "the program sets one late": ("begin k:2:8 j:1:1000 s:2 a:2:-3", False),
    "a capture on the way": (f"{HOST.format(wait='s:2')} begin {HOST.format(wait='s:2')} B:3 k:3:8 G s:2", True),
    "a stream that ends": ("begin n:2 k:2:8 j:1:1000 s:2 d:2", False),
}


def told(done: Done) -> tuple[list[tuple[Any, ...]], int]:
    """Of each stream what does not depend on the policy, and the launches on streams that are or would be raised."""
    (process,) = done.report["processes"]
    fields = ("device", "status", "share", "communicates", "work", "creator")
    streams = [tuple(stream[field] for field in fields) for stream in process["streams"]]
    return streams, done.totals["raised"] + done.totals["would_be_raised"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_would_be_raised_is_what_the_default_raises(name: str, iterations: Iterations) -> None:
    words, some = PROGRAMS[name]
    default, observed = iterations(words, 70, "default"), iterations(words, 70, "observe")
    assert told(observed) == told(default)
    assert observed.totals["raised"] == default.totals["would_be_raised"] == 0
    assert bool(observed.totals["would_be_raised"]) == ("5" in raised(default)) == some
    assert set(raised(observed) + raised(observed, "j")) <= set("013"), "nothing of ours, which would be 5"
    assert set(observed.reasons) <= {"observe_only", "communication"}
    (process,) = observed.report["processes"]
    outcomes = {stream["outcome"] for stream in process["streams"]}
    assert "raised" not in outcomes
    assert {stream["priority"] for stream in process["streams"]} <= {None}


def test_since_when(iterations: Iterations) -> None:
    words = f"begin {HOST.format(wait='s:2')}"
    (process,) = iterations(words, 70, "observe").report["processes"]
    since = {stream["outcome"]: stream["since"] for stream in process["streams"]}
    assert since["not raised"] == 0
    assert process["start"] <= since["would be raised"] < process["start"] + 600 * 10**9


def test_the_last_line(build: Build, preloaded: Runner) -> None:
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])
    words = f"70 begin {HOST.format(wait='s:2')}"
    done = preloaded(words, "observe", program=program, env={"RANK": "0"})
    assert done.stderr.startswith("overlap: observed; the default would raise 1 of 2 streams (")


CREATED = 'streams: {raise: observe, created_by: ["waiting*"]}'


def test_no_stream_is_created_raised(iterations: Iterations) -> None:
    """Not even for a library that the policy names; so a capture holds the program's own priorities."""
    for words in ("B:1 n:2 k:1:8 G begin k:2:8 j:3:1000 s:2", "n:2 k:2:8 B:2 k:2:8 G begin k:2:8 g:2 s:2"):
        done = iterations(words, 20, CREATED)
        assert set(raised(done)) == {"0"}
        assert done.totals["streams_created_raised"] == 0


def test_a_device_without_a_policy_says_nothing(build: Build, preloaded: Runner, tmp_path: Path) -> None:
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])
    words = f"70 v:1 k:1:8 v:0 begin {HOST.format(wait='s:2')}"
    policy = tmp_path / "mine.yaml"
    policy.write_text('policy: 1\nname: mine\ngpu: ["NVIDIA H100*"]\nstreams: {raise: observe}\n')
    done = preloaded(words, str(policy), program=program, env={"RANK": "0", "SIMGPU": "h100+a100"})
    assert "observed; the default would raise 1 of " in done.stderr
