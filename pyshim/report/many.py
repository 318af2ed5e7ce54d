"""Many processes in a few rows: what processes of one kind counted, and which of them are far from the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import quantiles

from pyshim.report.collect import Collected
from pyshim.report.summary import policy_of
from pyshim.stats.page import Page

FEW = 16  # processes that have a row each
COUNTED = ("launches", "shaped", "communication", "raised", "refused")
HEADS = ("processes", "hosts", "program", "policy", "counted", "least", "median", "most", "all")
_KINDS = 4
LEAST = 5  # processes of a kind, for one of them to be far from the others
_FAR = 3.0  # Tukey's word for it: so many times the distance of the quartiles beyond them
_SHARE = 0.01  # of the median: less is never far
Kind = tuple[str, str]


def program(page: Page) -> str:
    return page.program.rpartition("/")[2] + (" (forked)" if page.forked else "")


def kinds(collected: Collected) -> dict[Kind, list[Page]]:
    """Group by program and policy, the most frequent first."""
    found: dict[Kind, list[Page]] = defaultdict(list)
    for page in collected.pages:
        found[program(page), policy_of(page, collected) or "-"].append(page)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def rows(collected: Collected) -> list[list[str]]:
    """Return the rows; apart from launches, counts that are 0 everywhere are left out."""
    every = kinds(collected)
    result = [row for kind, pages in list(every.items())[:_KINDS] for row in _rows(kind, pages)]
    rest = [page for pages in list(every.values())[_KINDS:] for page in pages]
    return result + (_rows((f"{len(every) - _KINDS} more", ""), rest)[:1] if rest else [])


def _rows(kind: Kind, pages: Sequence[Page]) -> list[list[str]]:
    result = []
    who = [f"{len(pages):,}", f"{len({page.host for page in pages}):,}", *kind]
    for name in COUNTED:
        values = sorted(getattr(page, name) for page in pages)
        if values[-1] or name == "launches":
            numbers = values[0], values[len(values) // 2], values[-1], sum(values)
            result.append([*who, name, *(f"{number:,}" for number in numbers)])
            who = [""] * len(who)
    return result


def far(collected: Collected) -> list[Page]:
    """Return the processes that counted far more or less than others of their kind, the farthest first."""
    found: list[tuple[float, Page]] = []
    for pages in kinds(collected).values():
        if len(pages) < LEAST:
            continue
        fences = {name: fence([getattr(page, name) for page in pages]) for name in COUNTED}
        for page in pages:
            distance = max(beyond(getattr(page, name), *fences[name]) for name in COUNTED)
            if distance > 0:
                found.append((distance, page))
    return [page for _, page in sorted(found, key=lambda item: (-item[0], item[1].host, item[1].pid))]


def fence(values: list[int]) -> tuple[float, float, float]:
    """Return what is far below, what is far above, and the median."""
    first, median, third = quantiles(values, n=4, method="inclusive")
    width = max(_FAR * (third - first), _SHARE * median)
    return first - width, third + width, median


def beyond(value: int, below: float, above: float, median: float) -> float:
    return max(below - value, value - above) / max(median, 1)
