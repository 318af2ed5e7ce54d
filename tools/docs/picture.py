"""docs/pictures/stencil.svg: the stencil of `overlap demo` on a simulated H100, before and after.

The simulation computes, so the same sources give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape

from pyshim.demo import arms

GPU = "h100"
WIDTH, HEIGHT, LEFT, RIGHT = 840, 290, 90, 20
LANE, PANEL, TOP = 26, 106, 26  # pixels: a lane, from panel to panel, of the first panel
COLORS = {"interior": "#3465a4", "boundary": "#c17d11", "exchange": "#2a7f62"}
WAIT, INK = "#b3402e", "#222222"
LEGEND = (
    (COLORS["interior"], "interior"),
    (COLORS["boundary"], "boundary planes"),
    (COLORS["exchange"], "halo exchange"),
    ("none", "ready, waiting"),
)


def text(x: float, y: float, words: str, size: int = 13, weight: str = "normal") -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{INK}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def box(x: float, y: float, width: float, color: str) -> str:
    """Of height 20. Without a color: dashed, for work that waits."""
    edge = f' stroke="{WAIT}" stroke-dasharray="3 2"' if color == "none" else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.0):.1f}" height="20" fill="{color}"{edge}/>'


def panel(top: float, title: str, arm: arms.DemoArm, scale: float) -> Iterator[str]:
    yield text(10, top, title, weight="bold")
    compute, halo = top + 10, top + 10 + LANE
    yield text(10, compute + 15, "compute")
    yield text(10, halo + 15, "halo")
    for span in sorted(arm.spans, key=lambda span: span.what != "interior"):
        lane = compute if span.what == "interior" else halo
        if span.wait_us > 1 and lane == halo:
            yield box(LEFT + scale * span.ready_us, lane, scale * span.wait_us, "none")
        yield box(LEFT + scale * span.start_us, lane, scale * (span.end_us - span.start_us), COLORS[span.what])


def picture() -> str:
    run = arms.simulate(GPU, dict(os.environ))
    before, after = run.bare, run.default
    scale = (WIDTH - LEFT - RIGHT) / max(span.end_us for arm in (before, after) for span in arm.spans)
    change = run.change_percent
    caption = f"{run.gpu}: simulated, not measured; 2 iterations; drawn by tools/docs/picture.py"
    parts = [
        *panel(TOP, f"Without overlap-run: {before.milliseconds:.3f} ms an iteration (simulated)", before, scale),
        *panel(
            TOP + PANEL,
            f"With its default policy: {after.milliseconds:.3f} ms, {change:+.1f} % (simulated)",
            after,
            scale,
        ),
    ]
    x: float = LEFT
    for color, name in LEGEND:
        parts += [box(x, HEIGHT - 62, 28, color), text(x + 34, HEIGHT - 47, name)]
        x += 34 + 8 * len(name) + 24
    parts.append(text(10, HEIGHT - 12, caption, size=11))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
    title = "<title>A stencil's streams on a simulated GPU, without and with overlap-run</title>"
    white = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    return "\n".join([head, title, white, *parts, "</svg>", ""])
