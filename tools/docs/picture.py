"""Draw docs/pictures/stencil.svg: the stencil of `overlap demo` on a simulated H100, before and after.

    python -m tools.docs.picture --write    # needs the built library (make setup)
    python -m tools.docs.picture --check    # exit status 1 if the file differs

The simulation computes, so the same sources give the same bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from pyshim.demo import arms
from pyshim.demo.scenes import STENCIL
from pyshim.demo.timeline import Step
from tools.generate import files

ROOT = Path(__file__).resolve().parents[2]

PICTURE = ROOT / "docs" / "pictures" / "stencil.svg"
GPU, NAME, RULE = "h100", "NVIDIA H100 80GB HBM3", "hold"
WIDTH, HEIGHT, LEFT, RIGHT = 840, 290, 90, 20
LANE, PANEL, TOP = 26, 106, 26  # pixels: a lane, from panel to panel, of the first panel
INTERIOR, BOUNDARY, EXCHANGE, WAIT, INK = "#3465a4", "#c17d11", "#2a7f62", "#b3402e", "#222222"
LEGEND = (
    (INTERIOR, "interior"),
    (BOUNDARY, "boundary planes"),
    (EXCHANGE, "halo exchange"),
    ("none", "ready, waiting"),
)


def text(x: float, y: float, words: str, size: int = 13, weight: str = "normal") -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{INK}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def box(x: float, y: float, width: float, color: str) -> str:
    """Of height 20. Without a color: dashed, for work that waits."""
    edge = f' stroke="{WAIT}" stroke-dasharray="3 2"' if color == "none" else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.0):.1f}" height="20" fill="{color}"{edge}/>'


def panel(top: float, title: str, step: Step, scale: float) -> Iterator[str]:
    yield text(10, top, title, weight="bold")
    compute, halo = top + 10, top + 10 + LANE
    yield text(10, compute + 15, "compute")
    yield text(10, halo + 15, "halo")
    for span in step.computation:
        yield box(LEFT + scale * span.start_us, compute, scale * span.length_us, INTERIOR)
    for span, ready in zip(step.waited_for, step.ready_us):
        if span.start_us - ready > 1:
            yield box(LEFT + scale * ready, halo, scale * (span.start_us - ready), "none")
        color = EXCHANGE if span.communication else BOUNDARY
        yield box(LEFT + scale * span.start_us, halo, scale * span.length_us, color)


def picture() -> str:
    run = next(run for run in arms.simulate(STENCIL, GPU, NAME, dict(os.environ)) if run.rule == RULE)
    before, after = run.plain, run.default
    assert before.step and after.step
    scale = (WIDTH - LEFT - RIGHT) / max(before.step.end_us, after.step.end_us)
    change = run.change_percent
    caption = f"{run.gpu}: simulated, not measured; dispatch rule {RULE}; 2 iterations; drawn by tools/docs/picture.py"
    parts = [
        *panel(TOP, f"Without overlap-run: {before.milliseconds:.3f} ms an iteration (simulated)", before.step, scale),
        *panel(
            TOP + PANEL,
            f"With its default policy: {after.milliseconds:.3f} ms, {change:+.1f} % (simulated)",
            after.step,
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


def main() -> int:
    options = files.parser(__doc__).parse_args()
    return files.finish({PICTURE: picture()}, "tools.docs.picture", options.write)


if __name__ == "__main__":
    sys.exit(main())
