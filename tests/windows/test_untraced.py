"""The checker reads a trace, and a trace asks about every launch. Without one most launches go by what their thread was
told last, or unseen: that must come to the same."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyshim.report import collect, summary
from tests.windows.generate import examples, random_program
from tests.windows.operations import line_of
from tests.windows.targets import Target, compile_to, environment_of

EACH = 50
# What a query answers depends on how far the GPU is.
WITHOUT = "qQT"


@pytest.fixture(scope="module")
def program(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_to(tmp_path_factory.mktemp("untraced"), target)


def reasons(
    program: Path, target: Target, base: Mapping[str, str], folder: Path, lines: Sequence[str], trace: bool
) -> dict[str, int]:
    pages = folder / f"trace-{trace}"
    pages.mkdir(parents=True)
    env = {**environment_of(base, folder, target), "OVERLAP_REPORT": str(pages)}
    if not trace:
        del env["OVERLAP_TRACE"]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([str(program)], env=env, input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(summary.as_json(collect.collect(str(pages)), [])["totals"]["reasons"])


def test_a_trace_changes_nothing(
    program: Path, target: Target, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"longest": 60, "without": WITHOUT, "vendor": target.vendor}
    for first in range(0, examples(300), EACH):
        lines = [line_of(random_program(seed, **options)) for seed in range(first, first + EACH)]
        folder = tmp_path / str(first)
        found = [reasons(program, target, clean_environment, folder, lines, trace) for trace in (True, False)]
        assert found[0] == found[1], f"programs {first} to {first + EACH - 1}"


@pytest.mark.parametrize("waiter", [0, 1], ids=["the thread that launches", "another thread"])
@pytest.mark.parametrize("stream", ["s1", "s2", "l0"], ids=["non-blocking", "blocking", "default"])
def test_a_wait_ends_the_window(
    stream: str, waiter: int, program: Path, target: Target, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    """...for launches of a thread that was told before that it is in one."""
    made = "ns0,1,0,0 ns1,1,0,0 ns2,0,0,0 e--,0,0,0"
    launch = f"k{stream},0,0,0"
    line = f"{made} {launch} cs0,0,0,0 rs0,0,0,0 {launch} {launch} w{stream},0,0,{waiter} {launch} {launch}"
    found = [reasons(program, target, clean_environment, tmp_path, [line], trace) for trace in (True, False)]
    assert found[0] == found[1]
    assert found[0]["shaped"] == found[0]["not_overlapping"] == 2
