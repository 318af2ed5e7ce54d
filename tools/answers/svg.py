"""Pictures as SVG text, by hand: the same numbers give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

INK, GREY, LIGHT = "#222222", "#777777", "#dddddd"
COLORS = ("#2a7f62", "#b3402e", "#3465a4", "#c17d11", "#75507b")
DASHES = ("", "6 3", "2 3", "8 3 2 3")


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 11, color: str = INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{escape(words)}</text>'
    )


def line(x1: float, y1: float, x2: float, y2: float, color: str = GREY, width: float = 1, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{color}" stroke-width="{width:g}"{dashed}/>'


def path(points: Sequence[tuple[float, float]], color: str, width: float = 2, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    joined = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{joined}" fill="none" stroke="{color}" stroke-width="{width:g}"{dashed}/>'


def dots(points: Iterable[tuple[float, float]], color: str, width: float = 5) -> str:
    """Those that would hide another are left out."""
    joined = "".join(f"M{x} {y}h0" for x, y in sorted({(round(x), round(y)) for x, y in points}))
    style = f'stroke="{color}" stroke-width="{width:g}" stroke-linecap="round" stroke-opacity="0.75"'
    return f'<path d="{joined}" {style}/>'


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'


def ticks(least: float, most: float, count: int = 6) -> list[float]:
    """Round numbers between, about so many."""
    rough = (most - least) / count
    step = next(one * 10**power for power in range(-3, 9) for one in (1, 2, 5) if one * 10**power >= rough)
    return [number * step for number in range(math.ceil(least / step), math.floor(most / step) + 1)]


def document(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            *parts,
            "</svg>",
            "",
        ]
    )
