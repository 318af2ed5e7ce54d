"""The picture of one step: a lane for each stream, and one for each GPU with what is lost and why.

Every lane is as wide as the chosen zoom, and the picture scrolls. Bars have places in percent, so that the browser
draws them anew at each width, and names stay readable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyshim import html
from pyshim.diagnosis import exposed, idle, verdict
from pyshim.diagnosis.exposed import CollectiveRun
from pyshim.diagnosis.find import COMMUNICATES, COMPUTES, COPIES, IDLE, WAITS
from pyshim.diagnosis.look import TraceAnswer
from pyshim.diagnosis.queues import Place
from pyshim.diagnosis.result import Bar
from pyshim.diagnosis.words import kernel_name, milliseconds, percent

EXPOSED = "exposed"
_LANES, _TICKS, _BARS = 24, 4, 1000  # lanes at most, marks of time, parts of a step that can be told apart
_ZOOMS = (1, 4, 16)
_SOLID = {
    COMPUTES: ("#4c78a8", "computation"),
    COMMUNICATES: ("#f58518", "communication"),
    COPIES: ("#8a8a8a", "copies"),
}
# Hatched, by cause: colour, angle.
_HATCHED: dict[str, tuple[str, int]] = {
    "ready": ("#c51b8a", 45),
    idle.HOST: ("#b279a2", 45),  # which also exposes communication
    idle.AFTER_WAIT: ("#9467bd", 135),
    idle.START: ("#9d9d9d", 90),
    idle.EVENT: ("#54a24b", 45),
    idle.UNKNOWN: ("#888888", 0),
    exposed.LATE_RANKS: ("#e45756", 45),
    exposed.SAME_STREAM: ("#eeca3b", 135),
    exposed.ONE_WAVE: ("#72b7b2", 45),
    exposed.BEHIND: ("#c51b8a", 135),
    exposed.AT_ONCE: ("#d62728", 0),
    exposed.TOO_LONG: ("#f58518", 45),
}
_CAUSES = list(_HATCHED)
STYLE = """\
figure input { margin-left: 10px }
.lanes { overflow-x: auto } .lane { position: relative; border-top: 1px solid var(--line) }
.lane span { position: sticky; left: 0; color: var(--dim) } .lane svg { display: block; width: 100%; height: 20px }
.lane.time svg { height: 14px } .lane.time text { fill: var(--dim); font-size: 11px }
@media (max-width: 600px) { .lane.time text:nth-child(even) { display: none } }
""" + "".join(f"#zoom{zoom}:checked ~ .lanes > .lane {{ width: {zoom}00% }}\n" for zoom in _ZOOMS)


class _Drawn(NamedTuple):
    """Bars of one kind that are drawn as one, in parts of the step."""

    left: float
    right: float
    bar: Bar
    pieces: int


def picture(answer: TraceAnswer) -> str:
    """Return a figure of the step that is nearest to the mean."""
    one = answer.worst
    begin, end = one.pictured
    if not one.picture or end <= begin:
        return ""
    raises = answer.verdicts[0].kind == verdict.YES
    bars = [bar for bar in one.picture if raises or bar.kind != WAITS]
    bars += _exposed(answer, begin, end)
    lanes: defaultdict[Place, list[Bar]] = defaultdict(list)
    for bar in sorted(bars, key=lambda bar: (bar.start_us, bar.end_us)):
        lanes[bar.place].append(bar)
    shown = _chosen(lanes)
    raised = {(share.device, share.stream) for share in one.raising} if raises else set()
    scale = 1 / (end - begin)
    parts = [f"<figure>{_patterns()}", "zoom", *_zoom(), '<div class="lanes">', _axis(end - begin)]
    for place in shown:
        drawn = [_Drawn((bar.start_us - begin) * scale, (bar.end_us - begin) * scale, bar, 1) for bar in lanes[place]]
        rectangles = "".join(_rectangle(one) for one in _united(drawn))
        parts.append(f'<div class="lane"><span>{html.text(_name(place, raised))}</span><svg>{rectangles}</svg></div>')
    parts += [
        "</div>",
        _key(bars),
        f"<figcaption>{html.text(_caption(answer, len(lanes) - len(shown)))}</figcaption></figure>",
    ]
    return "\n".join(parts)


def _exposed(answer: TraceAnswer, begin: float, end: float) -> Iterator[Bar]:
    """Yield what is exposed in the step, each collective by its greatest cause."""
    times = answer.ranks.transfer_us if answer.ranks else {}
    for run in answer.worst.collectives:
        if run.end_us <= begin or run.start_us >= end:
            continue
        for first, last, cause in _causes(run, times.get(id(run))):
            if last > first:
                yield Bar((run.device, ""), first, last, EXPOSED, cause)


def _causes(run: CollectiveRun, transfer_us: float | None) -> Iterator[tuple[float, float, str]]:
    causes = run.causes(transfer_us)
    others = {cause: time for cause, time in causes.items() if cause != exposed.LATE_RANKS}
    greatest = max(others, key=lambda cause: others[cause]) if others else exposed.UNKNOWN
    begins = run.start_us if transfer_us is None else run.end_us - transfer_us
    for first, last in run.exposed:
        waited = min(max(begins, first), last)
        yield first, waited, exposed.LATE_RANKS
        yield waited, last, greatest


def _chosen(lanes: dict[Place, list[Bar]]) -> list[Place]:
    """Return the lanes to show: those where something waits, then the busiest, in the order of their numbers."""
    waiting = {place for place, bars in lanes.items() if place[1] == "" or any(bar.kind == WAITS for bar in bars)}
    busiest = sorted(lanes, key=lambda of: (of not in waiting, -sum(bar.end_us - bar.start_us for bar in lanes[of])))
    return sorted(busiest[:_LANES], key=lambda place: (place[0], not place[1], len(place[1]), place[1]))


def _name(place: Place, raised: set[Place]) -> str:
    if not place[1]:
        return f"GPU {place[0]}: idle, or communication exposed"
    return f"GPU {place[0]}, stream {place[1]}{': to be raised' if place in raised else ''}"


def _united(drawn: Sequence[_Drawn]) -> Iterator[_Drawn]:
    """Yield the bars of a lane, narrow neighbours of one kind as one: a step may have many thousands."""
    last: _Drawn | None = None
    for one in drawn:
        one = one._replace(left=max(0.0, one.left), right=min(1.0, one.right))
        close = last is not None and one.right - last.left < (1 + last.pieces // 2) / _BARS
        if last and close and _fill(last.bar) == _fill(one.bar):
            last = last._replace(right=max(last.right, one.right), pieces=last.pieces + 1)
            continue
        if last:
            yield last
        last = one
    if last:
        yield last


def _rectangle(one: _Drawn) -> str:
    bar = one.bar
    what = {
        WAITS: f"queued, ready to run, behind {kernel_name(bar.what)}",
        IDLE: f"idle: {bar.what}",
        EXPOSED: f"exposed: {bar.what}",
    }.get(bar.kind) or kernel_name(bar.what)
    more = f" and {one.pieces - 1} more" if one.pieces > 1 else ""
    return (
        f'<rect class="{bar.kind}" x="{100 * one.left:.3f}%" width="{max(0.02, 100 * (one.right - one.left)):.3f}%" '
        f'height="20" fill="{_fill(bar)}"><title>{html.text(what + more)}: {milliseconds(bar.end_us - bar.start_us)}'
        "</title></rect>"
    )


def _fill(bar: Bar) -> str:
    if bar.kind in _SOLID:
        return _SOLID[bar.kind][0]
    return f"url(#{_id('ready' if bar.kind == WAITS else bar.what)})"


def _id(cause: str) -> str:
    return f"h{_CAUSES.index(cause)}" if cause in _HATCHED else _id(idle.UNKNOWN)


def _patterns() -> str:
    """Return the hatchings, in a drawing of no size."""
    found = []
    for cause, (color, angle) in _HATCHED.items():
        size = 'width="6" height="6" patternUnits="userSpaceOnUse"'
        back = f'<rect width="6" height="6" fill="{color}" fill-opacity="0.25"/>'
        line = f'<rect width="2" height="6" fill="{color}"/>'
        found.append(f'<pattern id="{_id(cause)}" {size} patternTransform="rotate({angle})">{back}{line}</pattern>')
    return f'<svg width="0" height="0" style="position: absolute"><defs>{"".join(found)}</defs></svg>'


def _zoom() -> Iterator[str]:
    for zoom in _ZOOMS:
        checked = " checked" if zoom == 1 else ""
        yield f'<input type="radio" name="zoom" id="zoom{zoom}"{checked}><label for="zoom{zoom}">{zoom} x</label>'


def _axis(length_us: float) -> str:
    ticks = []
    for tick in range(_TICKS + 1):
        anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
        time = milliseconds(length_us * tick / _TICKS)
        ticks.append(f'<text x="{100 * tick / _TICKS:.0f}%" y="11" text-anchor="{anchor}">{time}</text>')
    return f'<div class="lane time"><svg>{"".join(ticks)}</svg></div>'


def _key(bars: Iterable[Bar]) -> str:
    """Return what the fills that were used mean."""
    used = {(_fill(bar), bar.kind in (IDLE, EXPOSED) and bar.kind): bar for bar in bars}
    words = dict(_SOLID.values())
    found = []
    for (fill, _), bar in sorted(used.items(), key=str):
        lost = {WAITS: "queued, ready to run", IDLE: f"idle: {bar.what}", EXPOSED: f"exposed: {bar.what}"}
        found.append((fill, words.get(fill) or lost[bar.kind]))
    return html.key(found)


def _caption(answer: TraceAnswer, hidden: int) -> str:
    one = answer.worst
    begin, end = one.pictured
    name = f", {answer.name}" if answer.name else ""
    what = (
        f"The step of {one.count} that is nearest to the mean"
        if one.steps and one.count > 1
        else "All that was recorded"
    )
    more = f"; {hidden} more streams are not shown" if hidden else ""
    idled = sum(bar.end_us - bar.start_us for bar in one.picture if bar.kind == IDLE) / (len(one.devices) or 1)
    lost = sum(bar.end_us - bar.start_us for bar in _exposed(answer, begin, end)) / (len(one.devices) or 1)
    length = end - begin
    numbers = f"{milliseconds(length)}, idle {percent(idled / length)}, communication exposed {percent(lost / length)}"
    simulated = " (simulated)" if answer.simulated else ""
    return f"{what}, of {answer.source}{name}{simulated}: {numbers}{more}"
