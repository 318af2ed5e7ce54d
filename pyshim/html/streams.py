"""Streams that are waited for: which were raised, and which were left as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyshim.html.processes import name
from pyshim.html.table import WORDS, Cell, table
from pyshim.html.tree import Child, element
from pyshim.report.many import FEW
from pyshim.report.streams import OUTCOMES, because

Data = Mapping[str, Any]
_ROWS = 200
_HEADS = ("process", "GPU", "made by", "why", "share of computation", "priority", "launches", "what was done")
_TEXT = {"process": WORDS, "made by": WORDS, "why": WORDS, "what was done": WORDS}


def streams(every: Sequence[Data]) -> Child:
    found = [(process, stream) for process in every for stream in process["streams"]]
    if not found:
        return None
    rows = [
        (
            name(process),
            stream["device"],
            element("code", stream["library"]) if stream["library"] else "",
            because(stream["why"]),
            Cell(f"{stream['share_percent']:.1f} %", stream["share_percent"]),
            "" if stream["priority"] is None else Cell(f"{stream['priority']}", stream["priority"]),
            stream["launches"],
            _outcome(stream["status"]),
        )
        for process, stream in found[:_ROWS]
    ]
    made = table(_HEADS, rows, _TEXT)
    which = f"the first {_ROWS} of {len(found):,} streams" if len(found) > _ROWS else f"all {len(found):,} streams"
    many_ = element("details", element("summary", which), made) if len(found) > FEW else made
    return [element("h2", "Streams that are waited for"), many_]


def _outcome(status: str) -> Child:
    said = OUTCOMES.get(status, status)
    return element("span", said, class_="badge warn") if said.startswith("left alone") else said
