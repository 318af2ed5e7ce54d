"""Everything that a report says, as `--full` and the page print it: lines, then tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyshim.report import streams, tables
from pyshim.report.collect import Collected
from pyshim.report.verdict import verdict

_FAR = 6
_FINDINGS = 10  # of many processes
_RULES = ("rule", "shape", "launches", "shaped", "in window", "refused", "outcome")


class Sheet(NamedTuple):
    """A table."""

    name: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: tuple[int, ...]  # columns of text
    said: str = ""  # a line in front of it


def lines(collected: Collected, found: Sequence[str], about: Sequence[str], full: bool) -> Iterator[tuple[str, str]]:
    """Yield what was done, what it gained, what to do next and a warning, each with its label; full: all, and notes."""
    yield from verdict(collected)._asdict().items()
    few = len(collected.pages) <= tables.FEW
    most = (len(found) if few else _FINDINGS) if full else 1
    for sentence in found[:most]:
        yield "warning", sentence
    if full and len(found) > most:
        yield "warning", f"{len(found) - most:,} more: --json has all"
    for sentence in about if full else ():
        yield "note", sentence


def sheets(collected: Collected) -> Iterator[Sheet]:
    """Yield the tables that have rows."""
    if len(collected.pages) > tables.FEW:
        made = list(_of_many(collected))
    else:
        made = [Sheet("processes", tables.heads(collected), tables.processes(collected), (0, 2, 3))]
    made += [
        Sheet(
            "reasons",
            ("launches", "share", "reason", "meaning"),
            tables.reasons(collected),
            (2, 3),
            tables.on_raised(collected),
        ),
        Sheet("streams", streams.HEADS, streams.rows(collected), (1, 2, 5)),
        Sheet("counts", ("count", "what"), tables.others(collected), (1,)),
        Sheet("rules", _RULES, tables.rules(collected), (0, 1, 6)),
        Sheet("kernels", tables.KERNEL_HEADS, tables.by_kernel(collected), (0, len(tables.KERNEL_HEADS) - 1)),
    ]
    yield from (sheet for sheet in made if sheet.rows)


def _of_many(collected: Collected) -> Iterator[Sheet]:
    yield Sheet("processes", tables.SUMMED_HEADS, tables.summed(collected), (2, 3, 4))
    far = tables.far(collected)
    more = f"; the farthest {_FAR} of {len(far):,}" if len(far) > _FAR else ""
    said = f"far from the others of their kind{more} (--json has every process):"
    yield Sheet("", tables.heads(collected), [tables.row(page, collected) for page in far[:_FAR]], (0, 2, 3), said)
