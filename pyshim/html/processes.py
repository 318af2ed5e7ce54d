"""The processes of a report: a row each, or one for each kind of process; and who is far from the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyshim.html import draw
from pyshim.html.table import PICTURE, WORDS, Cell, Content, table
from pyshim.html.tree import Child, element
from pyshim.report import many

Process = Mapping[str, Any]
_SHORT = {"communication": "comm"}
_SPREAD = "from least to most"
_TEXT = {"process": WORDS, "program": WORDS, "policy": WORDS, "state": WORDS}


def processes(every: Sequence[Process]) -> Child:
    found = [element("h2", "Processes")]
    if len(every) <= many.FEW:
        return [found, _table(every), _spread(every) if len(every) > 1 else None]
    far = _all_far(every)
    said: Child = None
    if far:
        words = f"{len(far):,} processes are" if len(far) > 1 else "one process is"
        said = [
            element("h3", "Far from the others"),
            element("p", f"{words} far from the others of the same program and policy:"),
            _table(far),
        ]
    whole = element("details", element("summary", f"all {len(every):,} processes"), _table(every))
    return [found, _spread(every), said, whole]


def name(process: Process) -> str:
    """node1:7, or with its rank: rank 3 (node1:7)"""
    place = f"{process['host']}:{process['pid']}"
    return place if process["rank"] is None else f"rank {process['rank']} ({place})"


def _program(process: Process) -> str:
    return str(process["program"]).rpartition("/")[2] + (" (forked)" if process["forked"] else "")


def _table(every: Sequence[Process]) -> Child:
    names = many.columns(sum(process["critical"] for process in every))
    counted = [[process[key] for key in names] for process in every]
    sums: list[Content] = [f"all {len(every):,}", "", "", "", *map(sum, zip(*counted)), ""] if len(every) > 1 else []
    rows = [
        [
            element("code", f"{process['host']}:{process['pid']}"),
            "" if process["rank"] is None else f"{process['rank']:,}",
            element("span", _program(process), title=process["program"]),
            process["policy"] or "none",
            *numbers,
            "ended" if process["ended"] else "not ended",
        ]
        for process, numbers in zip(every, counted)
    ]
    heads = ("process", "rank", "program", "policy", *(_SHORT.get(name, name) for name in names), "state")
    return table(heads, rows, _TEXT, sums)


def kinds(every: Sequence[Process]) -> dict[tuple[str, str], list[Process]]:
    """By program and policy, the most frequent first."""
    found: dict[tuple[str, str], list[Process]] = defaultdict(list)
    for process in every:
        found[_program(process), process["policy"] or "none"].append(process)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _spread(every: Sequence[Process]) -> Child:
    """What each process counted, as a strip of dots for each counter."""
    shown = []
    for (program, policy), members in kinds(every).items():
        hosts = len({process["host"] for process in members})
        words = f"{len(members):,} x {program}, policy {policy}, on {f'{hosts:,} hosts' if hosts > 1 else 'one host'}"
        rows = [_row(counter, members) for counter in many.COUNTED if any(process[counter] for process in members)]
        if rows and len(members) > 1:
            heads = ("counted", _SPREAD, "least", "median", "most", "all")
            shown.append(
                [
                    element("h3", words),
                    table(heads, rows, {"counted": WORDS, _SPREAD: PICTURE}),
                ]
            )
    return shown


def _row(counter: str, members: Sequence[Process]) -> Sequence[Content]:
    values = sorted(process[counter] for process in members)
    far = {id(process) for process in _far(counter, members)}
    dots = [
        draw.Dot(process[counter], f"{name(process)}: {process[counter]:,}", id(process) in far) for process in members
    ]
    label = f"{counter}: {values[0]:,} to {values[-1]:,}"
    return counter, Cell(draw.strip(dots, label), counter), values[0], values[len(values) // 2], values[-1], sum(values)


def _far(counter: str, members: Sequence[Process]) -> list[Process]:
    if len(members) < many.LEAST:
        return []
    fence = many.fence([process[counter] for process in members])
    return [process for process in members if many.beyond(process[counter], *fence) > 0]


def _all_far(every: Sequence[Process]) -> list[Process]:
    found = {
        id(process): process
        for members in kinds(every).values()
        for counter in many.COUNTED
        for process in _far(counter, members)
    }
    return list(found.values())
