"""overlap explain from outside: what its JSON says of a trace that is made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.explain.steps import Step, trace


@pytest.fixture
def explained(overlap: Any, library: Any) -> Callable[..., dict[str, Any]]:
    """Return the answer about files or folders, whose parts add up."""

    def ask(*paths: Path, options: tuple[str, ...] = ()) -> dict[str, Any]:
        done = overlap("explain", *map(str, paths), "--json", *options)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        for process in found["processes"]:
            check_sums(process)
        return found

    return ask


@pytest.fixture
def of_steps(explained: Any, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return the answer about a step that comes again and again, with its only process under `process`."""

    def ask(step: Callable[[Step], None], **more: Any) -> dict[str, Any]:
        found = explained(trace(tmp_path / "trace.json", step, **more))
        (process,) = found["processes"]
        return {**found, "process": process}

    return ask


def check_sums(process: dict[str, Any]) -> None:
    """The parts of a step are the step, the causes of idle time all of it, those of exposed communication likewise."""
    of_step = pytest.approx(process["span_us"], abs=0.01)
    for shares in (process["shares"], *process["gpus"].values()):
        assert sum(value for name, value in shares.items() if name != "communication_us") == of_step
        assert min(shares.values()) >= 0
    idle = process["idle"]
    causes = [idle[f"{name}_us"] for name in ("host", "start", "event", "unknown")]
    assert sum(causes) == pytest.approx(process["shares"]["idle_us"], abs=0.01) and min(causes) >= 0
    exposed = sum(one["exposed_us"] for one in process["collectives"])
    assert exposed == pytest.approx(process["shares"]["exposed_us"], abs=0.01)
    for one in process["collectives"]:
        assert sum(one["causes"].values()) == pytest.approx(one["exposed_us"], abs=0.01)
