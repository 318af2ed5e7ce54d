"""The picture of one step, as inline SVG: a lane for each stream, what ran in it, and hatched what stood ready."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from pyshim.diagnosis.answer import TraceAnswer, kernel_name, milliseconds
from pyshim.diagnosis.result import COMMUNICATES, COMPUTES, COPIES, WAITS, Bar, Place
from pyshim.errors import printable

_LEFT, _WIDTH, _LANE, _TOP = 130, 1000, 30, 24  # pixels: of names, of the step, of a lane, above the first
_LANES, _TICKS = 24, 5
_NARROW = 1.0  # pixels: narrower bars of one kind are drawn as one if they are next to each other
_FILLS = {COMPUTES: "#4c78a8", COMMUNICATES: "#f58518", COPIES: "#9d9d9d", WAITS: "url(#waits)"}
_LEGEND = {COMPUTES: "computation", COMMUNICATES: "communication", COPIES: "copies", WAITS: "ready, but waiting"}
_PATTERN = (
    '<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#fde0dd"/><rect width="2" height="6" fill="#c51b8a"/></pattern></defs>'
)


class _Drawn(NamedTuple):
    """Bars of one kind that are drawn as one, in pixels."""

    left: float
    right: float
    bar: Bar
    pieces: int


def picture(answer: TraceAnswer) -> str:
    """Return a figure of the step in which most waited, for a page that loads nothing."""
    one = answer.worst
    bars = sorted(one.picture, key=lambda bar: (bar.start_us, bar.end_us))
    if not bars:
        return ""
    begin, end = one.pictured
    lanes: defaultdict[Place, list[Bar]] = defaultdict(list)
    for bar in bars:
        lanes[bar.place].append(bar)
    waiting = {bar.place for bar in bars if bar.kind == WAITS}
    busiest = sorted(lanes, key=lambda place: (place not in waiting, -sum(b.end_us - b.start_us for b in lanes[place])))
    shown = sorted(busiest[:_LANES], key=lambda place: (place[0], len(place[1]), place[1]))
    height = _TOP + _LANE * len(shown) + 40
    scale = _WIDTH / ((end - begin) or 1.0)
    title = f"One step of {answer.source}" if one.steps else answer.source
    more = f"; {len(lanes) - len(shown)} more streams are not shown" if len(lanes) > len(shown) else ""
    parts = [
        f'<figure style="margin: 0"><svg viewBox="0 0 {_LEFT + _WIDTH + 10} {height}" role="img" '
        f'aria-label="{_text(title)}" style="width: 100%; font: 12px sans-serif; background: #fff">{_PATTERN}',
        *_axis(end - begin, height),
    ]
    for number, place in enumerate(shown):
        top = _TOP + _LANE * number
        name = f"GPU {place[0]}, stream {place[1]}"
        parts.append(f'<text x="{_LEFT - 8}" y="{top + 19}" text-anchor="end">{_text(name)}</text>')
        drawn = [_Drawn((bar.start_us - begin) * scale, (bar.end_us - begin) * scale, bar, 1) for bar in lanes[place]]
        parts += [_rectangle(one, top + 4) for one in _united(drawn)]
    parts += _legend(height - 16, {bar.kind for bar in bars})
    caption = f"{title}: {milliseconds(end - begin)}{more}"
    return "\n".join([*parts, f"</svg><figcaption>{_text(caption)}</figcaption></figure>"])


def _united(drawn: Sequence[_Drawn]) -> Iterator[_Drawn]:
    """Yield the bars of a lane, narrow neighbours of one kind as one: a step may have many thousands."""
    last: _Drawn | None = None
    for one in drawn:
        one = one._replace(left=max(0.0, one.left), right=min(float(_WIDTH), one.right))
        if last and last.bar.kind == one.bar.kind and one.right - last.left < _NARROW * (1 + last.pieces // 2):
            last = last._replace(right=max(last.right, one.right), pieces=last.pieces + 1)
            continue
        if last:
            yield last
        last = one
    if last:
        yield last


def _rectangle(one: _Drawn, top: int) -> str:
    bar = one.bar
    what = kernel_name(bar.what) if bar.kind != WAITS else f"ready, behind {kernel_name(bar.what)}"
    more = f" and {one.pieces - 1} more" if one.pieces > 1 else ""
    return (
        f'<rect class="{bar.kind}" x="{_LEFT + one.left:.1f}" y="{top}" width="{max(0.5, one.right - one.left):.1f}" '
        f'height="{_LANE - 8}" fill="{_FILLS[bar.kind]}"><title>{_text(what + more)}: '
        f"{milliseconds(bar.end_us - bar.start_us)}</title></rect>"
    )


def _axis(length_us: float, height: int) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDTH * tick / _TICKS
        yield f'<line x1="{x}" x2="{x}" y1="{_TOP - 4}" y2="{height - 36}" stroke="#ddd"/>'
        anchor = "end" if tick == _TICKS else "middle"
        yield f'<text x="{x}" y="{_TOP - 8}" text-anchor="{anchor}">{milliseconds(length_us * tick / _TICKS)}</text>'


def _legend(y: int, kinds: set[str]) -> Iterator[str]:
    for number, (kind, word) in enumerate((kind, word) for kind, word in _LEGEND.items() if kind in kinds):
        x = _LEFT + 150 * number
        yield f'<rect x="{x}" y="{y - 10}" width="20" height="12" fill="{_FILLS[kind]}"/>'
        yield f'<text x="{x + 26}" y="{y}">{word}</text>'


def _text(words: str) -> str:
    """Return text that means nothing to a browser, whatever a kernel or a file is called."""
    return escape(printable(words))
