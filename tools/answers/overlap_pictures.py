"""The pictures of docs/overlap.md."""

from __future__ import annotations

from collections.abc import Sequence

from answers import svg
from answers.agreement import Agreement
from answers.comparing import Against
from answers.overlap_tables import title
from answers.suite import Curve

LEFT, WIDTH, RIGHT = 170, 600, 30
ROW, PANEL, LABEL = 15, 130, 14.0
CUT = 60.0  # per cent: where a dot stands at the edge


def of_arms(what: str, found: Sequence[Against]) -> str:
    """A line for each arm, a dot for each cell, a bar for the median; found: against plain."""
    changes = [min(change.median, CUT) for one in found for change in one.changes] + [0.0]
    least, most = min(changes) - 1, max(changes) + 1
    scale = WIDTH / (most - least)
    cut = f"; cut off at {CUT:+g} %" if max(c.median for one in found for c in one.changes) > CUT else ""
    top = 62.0
    bottom = top + len(found) * ROW + 4
    parts = [
        svg.text(16, 22, f"{what}: change of T against plain streams, by arm", size=15),
        svg.text(16, 40, f"left is faster; a dot is a cell, the bar the median{cut}", color=svg.GREY),
    ]
    for tick in svg.ticks(least, most):
        x = LEFT + (tick - least) * scale
        parts += [
            svg.line(x, top - 10, x, bottom, svg.LIGHT if tick else svg.INK),
            svg.text(x, bottom + 14, f"{tick:+.0f} %" if tick else "0", "middle", 10),
        ]
    y = top
    for one in found:
        parts.append(svg.text(LEFT - 8, y + 4, one.arm, "end", 10))
        for sides, color in (((0,), svg.GREY), ((-1,), svg.COLORS[0]), ((1,), svg.COLORS[1])):
            chosen = [change for change in one.changes if change.verdict in sides]
            if chosen:
                places = ((LEFT + (min(change.median, CUT) - least) * scale, y) for change in chosen)
                parts.append(svg.dots(places, color))
        x = LEFT + (min(one.median, CUT) - least) * scale
        parts.append(svg.line(x, y - 6, x, y + 6, svg.COLORS[2], 2.5))
        y += ROW
    words = ((svg.GREY, "no difference shown"), (svg.COLORS[0], "surely faster"), (svg.COLORS[1], "surely slower"))
    for index, (color, word) in enumerate(words):
        x = LEFT + 150.0 * index
        parts += [svg.dots([(x, bottom + 30)], color), svg.text(x + 8, bottom + 34, word, size=10)]
    return svg.document(LEFT + WIDTH + RIGHT, bottom + 44, f"{what}: change of T by arm", parts)


def of_curves(what: str, curves: Sequence[Curve]) -> str:
    """A panel for each kernel: time alone and together against dynamic bytes of a block."""
    parts = [
        svg.text(16, 22, f"{what}: time against dynamic shared memory of a block", size=15),
        svg.text(
            16, 40, "change against the smallest size, %; steps: resident blocks; dashed: the planner's", color=svg.GREY
        ),
    ]
    top = 76.0
    for curve in curves:
        parts += _panel(curve, top)
        top += PANEL + 60
    return svg.document(LEFT + WIDTH + RIGHT, top - 24, f"{what}: time against shared memory", parts)


def _panel(curve: Curve, top: float) -> list[str]:
    first, end = curve.points[0], max(1, curve.points[-1].dynamic)
    alone = [(point.dynamic, 100 * (point.alone / first.alone - 1)) for point in curve.points]
    together = [
        (point.dynamic, 100 * (point.together / first.together - 1))
        for point in curve.points
        if point.together is not None and first.together
    ]
    values = [value for _, value in (*alone, *together)]
    least, most = min(*values, 0.0) - 2, max(*values, 0.0) + 2
    scale, height = WIDTH / end, PANEL / (most - least)

    def place(point: tuple[int, float]) -> tuple[float, float]:
        return LEFT + point[0] * scale, top + (most - point[1]) * height

    parts = [svg.text(LEFT, top - 10, title(curve), size=11)]
    for tick in svg.ticks(least, most, 4):
        y = top + (most - tick) * height
        parts += [
            svg.line(LEFT, y, LEFT + WIDTH, y, svg.LIGHT if tick else svg.INK),
            svg.text(LEFT - 6, y + 4, f"{tick:+g}" if tick else "0", "end", 10),
        ]
    for tick in svg.ticks(0, end / 1024, 8):
        x = LEFT + tick * 1024 * scale
        parts.append(svg.text(x, top + PANEL + 14, f"{tick:g} KiB", "middle", 10))
    before, labelled = 0, -LABEL
    for point in curve.points:
        if point.resident != before:
            x = LEFT + point.dynamic * scale
            parts.append(svg.line(x, top, x, top + PANEL, svg.LIGHT))
            if x - labelled >= LABEL:
                parts.append(svg.text(x + 2, top + 10, str(point.resident), size=9, color=svg.GREY))
                labelled = x
            before = point.resident
    if curve.dynamic is not None:
        x = LEFT + curve.dynamic * scale
        parts += [
            svg.line(x, top, x, top + PANEL, svg.COLORS[3], 2, svg.DASHES[1]),
            svg.text(x + 4, top + PANEL - 6, curve.control, size=10, color=svg.COLORS[3]),
        ]
    for index, (label, line) in enumerate((("alone", alone), ("together", together))):
        if line:
            color = (svg.GREY, svg.COLORS[2])[index]
            parts.append(svg.path([place(point) for point in line], color))
            x = LEFT + WIDTH - 180.0 + 90 * index
            parts += [svg.line(x, top - 14, x + 24, top - 14, color, 2), svg.text(x + 30, top - 10, label, size=10)]
    return parts


def of_model(found: Agreement) -> str:
    """Measured against simulated ratios, with the line on which they agree."""
    side, left, top = 360, 70, 60.0
    values = [value for ratio in found.ratios for value in (ratio.simulated, ratio.measured)]
    least, most = min(values) - 0.02, min(max(values), 1 + CUT / 100) + 0.02
    scale = side / (most - least)

    def place(simulated: float, measured: float) -> tuple[float, float]:
        x, y = (min(value, most) - least for value in (simulated, measured))
        return left + x * scale, top + side - y * scale

    parts = [
        svg.text(16, 22, f"Simulated under {found.rule} against measured: T over T of plain", size=15),
        svg.text(16, 40, "a dot is an arm of a primary cell; on the line they agree", color=svg.GREY),
    ]
    for tick in svg.ticks(least, most, 6):
        x, y = place(tick, tick)
        parts += [
            svg.line(left, y, left + side, y, svg.LIGHT),
            svg.line(x, top, x, top + side, svg.LIGHT),
            svg.text(left - 6, y + 4, f"{tick:.2f}", "end", 10),
            svg.text(x, top + side + 14, f"{tick:.2f}", "middle", 10),
        ]
    parts.append(svg.path([place(least, least), place(most, most)], svg.INK, 1))
    parts.append(svg.dots((place(ratio.simulated, ratio.measured) for ratio in found.ratios), svg.COLORS[2], 4))
    parts.append(svg.text(left + side / 2, top + side + 34, "simulated", "middle"))
    parts.append(svg.text(left + 6, top + 12, "measured"))
    return svg.document(left + side + RIGHT, top + side + 46, f"Simulated under {found.rule} against measured", parts)
