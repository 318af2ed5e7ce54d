"""What was done with each kernel, and by each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyshim.html import draw
from pyshim.report.kernels import RAISED
from pyshim.stats.page import sentences

Data = Mapping[str, Any]
LEGEND = (
    ("shaped", "shaped"),
    ("raised", "raised"),
    ("window", "in an overlap window, left alone"),
    ("alone", "left alone"),
)
_KERNELS = 30


@dataclass(frozen=True)
class Counted:
    """A kernel or a rule, and what was done with its launches."""

    data: Data
    most: int  # launches of the row with the most

    @property
    def rule(self) -> str:
        """Return FILE:LINE, of the file that has the rule's line."""
        rule = self.data["rule"]
        return f"{rule.get('file') or rule['policy']}:{rule['line']}" if rule else ""

    @property
    def bar(self) -> list[draw.Box]:
        launches, shaped = self.data["launches"], self.data["shaped"]
        raised = int(self.data["reasons"].get(RAISED, 0))
        window = max(0, min((self.data["in_window"] or 0) - shaped, launches - shaped - raised))
        values = (shaped, raised, window, launches - shaped - raised - window)
        parts = ((value, kind, f"{words}: {value:,}") for value, (kind, words) in zip(values, LEGEND))
        return draw.bar(parts, self.most)

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Return (name, title), the commonest first."""
        ordered = sorted(self.data["reasons"].items(), key=lambda item: -item[1])
        return [(name, f"{name} {count:,}: {sentences().get(name, '')}") for name, count in ordered]

    @property
    def footprint(self) -> str:
        takes = self.data["footprint"]
        bytes_of = f"{takes['static_shared_memory']:,} + {takes['dynamic_shared_memory']:,} B"
        return f"{takes['threads']:,} threads, {takes['registers']:,} registers, {bytes_of}" if takes["threads"] else ""


@dataclass(frozen=True)
class Table:
    rows: list[Counted]
    refused: bool  # there is a column of what was refused
    all: int  # rows that there would be


def kernels(every: Sequence[Data]) -> Table:
    """Return the kernels that were launched most."""
    return _table(every, _KERNELS)


def rules(every: Sequence[Data]) -> Table:
    return _table(every, len(every))


def _table(every: Sequence[Data], shown: int) -> Table:
    most = max((counted["launches"] for counted in every), default=0) or 1
    rows = [Counted(counted, most) for counted in every]
    refused = any(counted["refused"] for counted in every)
    return Table(rows[:shown], refused, len(rows))
