"""The report as data: what `overlap report --json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from pyshim.pages.judged import judged
from pyshim.pages.page import Page, PageRule, Row
from pyshim.report.collect import Collected, Step
from pyshim.report.kernels import Kernel, Key, RuleUse, count, kernels, keyed, rules
from pyshim.report.verdict import verdict

COUNTERS = (
    "launches",
    "shaped",
    "communication",
    "raised",
    "would_be_raised",
    "refused",
    "graph_launches",
    "graphs_raised",
    "graphs_would_be_raised",
    "streams_created_raised",
    "judgements",
    "unrecorded",
)
TABLES = ("reasons",)
VERSION = 1  # of the object: what is there keeps its name and its meaning, and more may come (report.schema.json)
_NOT_AS_IT_IS = ("devices", "rows", "rules", "streams")


def policy_of(page: Page, collected: Collected) -> str | None:
    """Return the policy of a page's first device, or the only one of its run before a device was opened; else None."""
    if page.devices:
        return page.devices[0].policy
    names = {item.get("name") for run in collected.runs for item in run.policies}
    return names.pop() if len(names) == 1 else None


def totals(pages: tuple[Page, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {name: sum(getattr(page, name) for page in pages) for name in COUNTERS}
    for name in TABLES:
        counts: Counter[str] = Counter()
        for page in pages:
            counts.update(getattr(page, name))
        result[name] = dict(counts)
    return result


def as_json(collected: Collected, findings: list[str], remarks: Sequence[str] = ()) -> dict[str, Any]:
    every = kernels(collected)
    places = {_key(kernel): index for index, kernel in enumerate(every)}
    return {
        "version": VERSION,
        "verdict": verdict(collected)._asdict(),
        "processes": [_process(page, collected, places) for page in collected.pages],
        "totals": totals(collected.pages),
        "kernels": [_kernel(kernel) for kernel in every],
        "rules": [_use(use) for use in rules(collected)],
        "runs": [run._asdict() for run in collected.runs],
        "steps": [_step(step) for step in collected.steps],
        "findings": findings,
        "remarks": list(remarks),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "world": step.world,
        "ranks": len(step.ranks),
        "missing": step.missing,
        "processes": len(step.pages),
    }


def _process(page: Page, collected: Collected, places: dict[Key, int]) -> dict[str, Any]:
    first = {"pid": page.pid, "host": page.host, "rank": page.rank, "policy": policy_of(page, collected)}
    rest = {item.name: getattr(page, item.name) for item in fields(page) if item.name not in first}
    return {
        **first,
        **{name: value for name, value in rest.items() if name not in _NOT_AS_IT_IS},
        "unrecorded": page.unrecorded,
        "devices": [asdict(device) for device in page.devices],
        "streams": [{**stream._asdict(), "outcome": judged(page, stream).outcome} for stream in page.streams],
        "kernels": _kernels_of(page, places),
    }


def _kernels_of(page: Page, places: dict[Key, int]) -> list[dict[str, Any]]:
    """kernel: index into the kernels of all processes."""
    groups: dict[int, list[Row]] = {}
    for key, row in keyed(page):
        groups.setdefault(places[key], []).append(row)
    return [{"kernel": place, **count(rows)._asdict()} for place, rows in sorted(groups.items())]


def _key(kernel: Kernel) -> Key:
    return kernel.kernel, kernel.library, kernel.rule, kernel.footprint, kernel.device_name


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        **{item.name: getattr(kernel, item.name) for item in fields(kernel)},
        "communication": kernel.communication,
        "rule": kernel.rule and _rule(kernel.rule),
        "footprint": kernel.footprint._asdict(),
    }


def _rule(rule: PageRule) -> dict[str, Any]:
    return {"policy": rule.policy, "file": rule.file or None, "line": rule.line, "shape": rule.shape}


def _use(use: RuleUse) -> dict[str, Any]:
    return {
        **{item.name: getattr(use, item.name) for item in fields(use)},
        "rule": _rule(use.rule),
        "when": use.rule.when,
        "matched": use.matched,
        "acted": use.acted,
        "unsure": use.unsure,
    }
