"""The pictures of docs/sensitivity.md."""

from __future__ import annotations

from collections.abc import Sequence

from answers import svg
from answers.grids import ARMS, BARE, Shaped
from answers.rows import RULES
from answers.sweep import Range, Times

LEFT, RIGHT, PANEL, WIDTH = 60, 20, 130, 760
CUT, MARGIN = 60.0, 2.0  # per cent: where a curve of times leaves the picture, and what is left around it


def _steps(
    ranges: Sequence[Range], values: Sequence[float], most: float, height: float, top: float, scale: float
) -> list[tuple[float, float]]:
    points = []
    for range_, value in zip(ranges, values):
        y = top + height * (1 - value / most)
        points += [(LEFT + range_.minimum * scale, y), (LEFT + (range_.maximum + 1) * scale, y)]
    return points


def _panel(top: float, end: int, scale: float) -> list[str]:
    parts = [svg.line(LEFT, top + PANEL, WIDTH - RIGHT, top + PANEL, svg.INK)]
    for tick in svg.ticks(0, end / 1024, 8):
        x = LEFT + tick * 1024 * scale
        parts += [
            svg.line(x, top, x, top + PANEL, svg.LIGHT),
            svg.text(x, top + PANEL + 14, f"{tick:g} KiB", "middle", 10),
        ]
    return parts


def of_pair(title: str, ranges: Sequence[Range], times: Sequence[Times] | None) -> str:
    end = ranges[-1].maximum
    scale = (WIDTH - LEFT - RIGHT) / end
    top, most = 70.0, max(range_.resident for range_ in ranges)
    parts = [svg.text(16, 22, title, size=15)]
    parts.append(
        svg.text(16, 40, "against dynamic shared memory of a block; shaded: room for communication", color=svg.GREY)
    )
    tops = [top] if times is None else [top, top + PANEL + 60]
    for one in tops:
        parts += [
            svg.box(
                LEFT + range_.minimum * scale,
                one,
                max(1.0, (range_.maximum - range_.minimum) * scale),
                PANEL,
                "#dff0e8",
            )
            for range_ in ranges
            if range_.first == 0
        ]
        parts += _panel(one, end, scale)
    parts.append(svg.text(LEFT, top - 8, "computed: blocks on a multiprocessor", size=11))
    for count in sorted({1, most // 2, most} - {0}):
        parts.append(svg.text(LEFT - 6, top + PANEL * (1 - count / most) + 4, str(count), "end", 10))
    for index, (label, values) in enumerate(
        (
            ("resident", [range_.resident for range_ in ranges]),
            ("of them beside communication", [max(0, range_.beside) for range_ in ranges]),
        )
    ):
        color = (svg.INK, svg.COLORS[0])[index]
        parts.append(svg.path(_steps(ranges, values, most, PANEL, top, scale), color, dash=svg.DASHES[index]))
        parts += _legend(WIDTH - RIGHT - 330 + 110 * index, top - 12, label, color, svg.DASHES[index])
    if times is not None:
        parts += _changes(ranges, times, tops[1], scale)
    return svg.document(WIDTH, tops[-1] + PANEL + 30, title, parts)


def _legend(x: float, y: float, label: str, color: str, dash: str) -> list[str]:
    return [svg.line(x, y, x + 24, y, color, 2, dash), svg.text(x + 30, y + 4, label, size=10)]


def _changes(ranges: Sequence[Range], times: Sequence[Times], top: float, scale: float) -> list[str]:
    curves = [("alone", [own.alone for own in times])]
    curves += [(rule, [own.beside[index] for own in times]) for index, rule in enumerate(RULES)]
    every = [value for _, values in curves for value in values]
    least, most = min(every) - MARGIN, min(max(every), CUT) + MARGIN
    cut = f"; cut off at {CUT:+g}" if max(every) > CUT else ""
    parts = [svg.text(LEFT, top - 8, f"simulated: change of the time, %; below 0 is faster{cut}")]
    for tick in svg.ticks(least, most, 4):
        y = top + PANEL * (1 - (tick - least) / (most - least))
        parts += [
            svg.line(LEFT, y, WIDTH - RIGHT, y, svg.INK if tick == 0 else svg.LIGHT),
            svg.text(LEFT - 6, y + 4, f"{tick:+g}" if tick else "0", "end", 10),
        ]
    for index, (label, values) in enumerate(curves):
        color = (svg.GREY, *svg.COLORS)[index]
        shifted = [min(value, most) - least for value in values]
        parts.append(svg.path(_steps(ranges, shifted, most - least, PANEL, top, scale), color, dash=svg.DASHES[index]))
        parts += _legend(WIDTH - RIGHT - 330 + 85 * index, top - 12, label, color, svg.DASHES[index])
    return parts


def of_grids(rows: Sequence[Shaped]) -> str:
    """Two panels of bars: what it costs, what it gains."""
    label, half, top, bar = 250, 190, 66, 15
    right = label + half + 90
    parts = [
        svg.text(
            16, 22, "Measured on one H200: what shaping costs a long grid, and how long communication waits", size=15
        ),
        svg.text(label, 50, "time alone over bare"),
        svg.text(right, 50, "last block of communication starts, us"),
    ]
    factors, waits = max(row.factor for row in rows), max(row.room.wait_us for row in rows)
    y = float(top)
    for row in rows:
        y += 8 if row.arm == BARE else 0
        parts.append(svg.text(label - 8, y + 10, f"{row.room.low}: {ARMS[row.arm]} ({row.resident})", "end", 10))
        length, wait = half * row.factor / factors, half * (row.room.wait_us / waits) ** 0.5
        for start, long, color, words in (
            (label, length, svg.COLORS[1] if row.size else svg.GREY, f"{row.factor:.2f}"),
            (right, wait, svg.COLORS[2], f"{row.room.wait_us:,.0f}"),
        ):
            parts += [svg.box(start, y, long, bar - 4, color), svg.text(start + long + 4, y + 10, words, size=10)]
        y += bar
    parts.append(
        svg.text(
            16,
            y + 22,
            "In brackets: resident blocks. Right: square roots. Communication of 288 threads. tools/gpu/room.cu",
            color=svg.GREY,
        )
    )
    return svg.document(label + 2 * half + 150, y + 34, "Measured cost and gain of shaping on one H200", parts)
