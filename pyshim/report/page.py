"""The page of --html: the report's sentences, its shares as bars, and its tables.

Pages of processes hold counts and no times, so bars are shares: of launches by reason, and of the computation by
stream. All that the page says is in the text of `--full`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyshim import html
from pyshim.pages import judged
from pyshim.report import full, streams, tables
from pyshim.report.as_json import totals
from pyshim.report.collect import Collected
from pyshim.report.kernels import COMMUNICATION, RAISED, SHAPED

_RAISED, _SHAPED, _COMMUNICATION, _LEFT = "#2a9d5c", "#8e6bbf", "#f58518", "#8a8a8a"
_STYLE = """\
.bar { margin: 6px 0 } .bar svg { display: block; width: 100%; height: 14px; background: var(--line) }
"""


class _Bar(NamedTuple):
    words: str
    percent: float
    fill: str
    meaning: str


def page(collected: Collected, found: Sequence[str], about: Sequence[str]) -> str:
    """Return the whole document. found, about: warnings and notes."""
    sentences = full.lines(collected, found, about, full=True)
    started, *more = [*tables.runs(collected), *tables.devices(collected)] or ["overlap report"]
    body = [
        html.labelled((label, html.text(sentence)) for label, sentence in sentences),
        *(f"<p>{html.text(line)}</p>" for line in more),
        *_launches(collected),
        *_streams(collected),
    ]
    for sheet in full.sheets(collected):
        body += [f"<h2>{html.text(sheet.name)}</h2>"] if sheet.name else []
        body += [f"<p>{html.text(sheet.said)}</p>"] if sheet.said else []
        body.append(html.table(sheet.heads, sheet.rows, sheet.left))
    return html.document("overlap report", started, _STYLE, body)


def _launches(collected: Collected) -> Iterator[str]:
    """Yield the shares of the launches by reason; each launch has one."""
    total = totals(collected.pages)
    if not total["launches"]:
        return
    bars = []
    for name, count, _ in tables.reasons_of(total["reasons"]):
        share = 100 * count / total["launches"]
        bars.append(_Bar(f"{name}: {count:,} ({share:.1f} %)", share, *_of_reason(name)))
    yield _figure("launches by reason", bars)


def _of_reason(reason: str) -> tuple[str, str]:
    """Return the colour of a reason, and what it means."""
    if reason in SHAPED:
        return _SHAPED, "shaped"
    known = {RAISED: (_RAISED, "raised"), COMMUNICATION: (_COMMUNICATION, "communication")}
    return known.get(reason, (_LEFT, "left alone"))


def _streams(collected: Collected) -> Iterator[str]:
    """Yield the streams' last shares of the computation."""
    shown = streams.groups(collected)[: streams.ROWS]
    if not shown:
        return
    bars = []
    for group in shown:
        most = 100 * max(stream.share for stream in group.streams)
        by = group.creator or "(not known)"
        words = f"{streams.count(group.streams)} made by {by}: {streams.share(group.streams)}, {streams.said(group)}"
        fill = _RAISED if group.status == judged.RAISED else _LEFT
        bars.append(_Bar(words, most, fill, group.outcome))
    yield _figure("streams: last share of the computation", bars)


def _figure(title: str, bars: Sequence[_Bar]) -> str:
    """Return bars below their words, and what their colours mean."""
    rows = []
    for bar in bars:
        rectangle = (
            f'<rect class="share" width="{min(100.0, max(0.2, bar.percent)):.2f}%" height="14" fill="{bar.fill}"/>'
        )
        rows.append(f'<div class="bar">{html.text(bar.words)}<svg>{rectangle}</svg></div>')
    meanings = html.key({bar.fill: bar.meaning for bar in bars}.items())
    return f"<h2>{html.text(title)}</h2>\n<figure>{''.join(rows)}{meanings}</figure>"
