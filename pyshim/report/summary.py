"""The report as data: what `overlap report --json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pyshim.report.collect import Collected
from pyshim.report.steps import Step
from pyshim.stats.page import Page

COUNTERS = (
    "launches",
    "shaped",
    "communication",
    "raised",
    "refused",
    "graph_launches",
    "streams_raised",
    "streams_reduced",
    "communication_same_stream",
    "communication_waited_for",
    "communication_unhurried",
    "trace_dropped",
)
TABLES = ("entry_points", "reasons")


def policy_of(page: Page, collected: Collected) -> str | None:
    """The policy of its first device; before a device was opened the only one of its run; None where none is for it."""
    if page.devices:
        return page.devices[0].policy
    names = [item.get("name") for run in collected.runs if run.id == page.run for item in run.policies]
    return names[0] if len(names) == 1 else None


def totals(pages: tuple[Page, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {name: sum(getattr(page, name) for page in pages) for name in COUNTERS}
    for name in TABLES:
        counts: Counter[str] = Counter()
        for page in pages:
            counts.update(getattr(page, name))
        result[name] = dict(counts)
    return result


def as_json(collected: Collected, findings: list[str], remarks: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "processes": [_process(page, collected) for page in collected.pages],
        "totals": totals(collected.pages),
        "runs": [run._asdict() for run in collected.runs],
        "steps": [_step(step) for step in collected.steps],
        "findings": findings,
        "remarks": list(remarks),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "id": step.id,
        "runs": [run.id for run in step.runs],
        "world": step.world,
        "ranks": len(step.ranks),
        "missing": step.missing,
        "processes": len(step.pages),
    }


def _process(page: Page, collected: Collected) -> dict[str, Any]:
    first = {"pid": page.pid, "host": page.host, "rank": page.rank, "policy": policy_of(page, collected)}
    return {**first, **{name: value for name, value in asdict(page).items() if name not in first}}
