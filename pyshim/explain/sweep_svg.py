"""The picture of a sweep as one SVG file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from pyshim.explain.sweep import Step, Sweep

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 76, 56
_COLOURS = {"at once": "#2a9d4a", "once": "#e0a100", "never": "#c0392b"}
_MEANING = {"at once": "fits beside all of them", "once": "fits once some have ended", "never": "never fits"}


def svg(found: Sweep, title: str) -> str:
    """Resident blocks over dynamic bytes; the colour says whether communication fits beside them. found: with steps."""
    low, high = found.steps[0].minimum, found.steps[-1].maximum
    most = max(step.blocks for step in found.steps)
    wide, high_pixels = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(size: int) -> float:
        return round(_LEFT + wide * (size - low) / max(1, high - low), 1)

    def y(blocks: int) -> float:
        return round(_TOP + high_pixels * (1 - blocks / most), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 24, title, size=14),
        *_legend(),
    ]
    for step in found.steps:
        left, right, top = x(step.minimum), x(step.maximum + 1 if step is not found.steps[-1] else high), y(step.blocks)
        said = (
            f"{step.minimum:,} to {step.maximum:,} bytes: {step.blocks} blocks; communication {_MEANING[_kind(step)]}"
        )
        parts.append(
            f'<rect x="{left}" y="{top}" width="{max(0.5, round(right - left, 1))}" height="{round(y(0) - top, 1)}" '
            f'fill="{_COLOURS[_kind(step)]}"><title>{escape(said)}</title></rect>'
        )
    for blocks in _ticks(most):
        parts.append(f'<line x1="{_LEFT - 4}" x2="{_LEFT}" y1="{y(blocks)}" y2="{y(blocks)}" stroke="black"/>')
        parts.append(_text(_LEFT - 8, y(blocks) + 4, f"{blocks}", "end"))
    for index in range(5):
        size = low + (high - low) * index // 4
        parts.append(f'<line x1="{x(size)}" x2="{x(size)}" y1="{y(0)}" y2="{y(0) + 4}" stroke="black"/>')
        parts.append(_text(x(size), y(0) + 18, f"{size:,}", "end" if index == 4 else "middle"))
    parts.append(f'<path d="M{_LEFT} {_TOP}V{y(0)}H{_WIDTH - _RIGHT}" fill="none" stroke="black"/>')
    parts.append(_text(_LEFT + wide / 2, _HEIGHT - 12, "dynamic shared memory of a block, bytes", "middle"))
    parts.append(_text(8, _TOP - 10, "blocks resident on a multiprocessor"))
    if found.chosen != found.asked:
        at = x(found.chosen)
        parts.append(f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{y(0)}" stroke="black" stroke-dasharray="4 3"/>')
        anchor = "end" if at > _WIDTH / 2 else "start"
        parts.append(
            _text(at + (-6 if anchor == "end" else 6), _TOP + 12, f"{found.control}: {found.chosen:,}", anchor)
        )
    return "\n".join([*parts, "</svg>\n"])


def _legend() -> Iterator[str]:
    at = _LEFT
    for kind, meaning in _MEANING.items():
        yield f'<rect x="{at}" y="36" width="12" height="12" fill="{_COLOURS[kind]}"/>'
        yield _text(at + 18, 46, f"communication {meaning}" if kind == "at once" else meaning)
        at += 250 if kind == "at once" else 190


def _text(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _kind(step: Step) -> str:
    if step.beside >= step.blocks:
        return "at once"
    return "once" if step.beside > 0 else "never"


def _ticks(most: int) -> range:
    return range(0, most + 1, max(1, most // 8))
