"""The table as a picture, SVG by hand: for each policy and rule a panel, in it a bar for each program, by change."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tools.bench.suites.rows import LIMIT_PERCENT, Row

BAR, GAP, HEAD, MARGIN = 11, 3, 34, 16
LABEL, HALF = 190, 150  # columns: names of programs; from zero to the end of the longest bar
VALUE = 48
PANEL = LABEL + 2 * (HALF + VALUE)
FASTER, SLOWER, NEITHER = "#2a7f62", "#b3402e", "#8a8a8a"


def picture(rows: Sequence[Row]) -> str:
    """Policies go down, rules across. Bars to the left are faster."""
    policies = list(dict.fromkeys((row.gpu, row.policy) for row in rows))
    rules = list(dict.fromkeys(row.rule for row in rows))
    scale = HALF / max(5.0, *(abs(row.change_percent) for row in rows))
    most = max(
        sum((row.gpu, row.policy, row.rule) == (*key, rule) for row in rows) for key in policies for rule in rules
    )
    panel = HEAD + most * (BAR + GAP) + MARGIN
    width, height = MARGIN + len(rules) * (PANEL + MARGIN), 56 + len(policies) * panel
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="10">',
        "<title>Simulated change of the time of a step, by program</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="22" font-size="15">Simulated change of the time of a step against the program as '
        "written, by program; left is faster</text>",
        f'<text x="{MARGIN}" y="38" fill="#555">Simulated GPU, assumed costs: tools/bench/suite --picture. '
        f"Red: slower by more than {LIMIT_PERCENT:g} %.</text>",
    ]
    for down, (gpu, policy) in enumerate(policies):
        for across, rule in enumerate(rules):
            chosen = [row for row in rows if (row.gpu, row.policy, row.rule) == (gpu, policy, rule)]
            parts.append(
                f'<g transform="translate({MARGIN + across * (PANEL + MARGIN)},{56 + down * panel})">'
                f'<text y="16" font-size="12" font-weight="bold">{escape(policy)} on simulated {escape(gpu)}, '
                f"rule {escape(rule)}</text>"
            )
            chosen.sort(key=lambda row: (row.change_percent, row.program))
            parts += [_bar(row, HEAD + number * (BAR + GAP), scale) for number, row in enumerate(chosen)]
            zero = LABEL + VALUE + HALF
            parts.append(f'<path d="M{zero} {HEAD - 4}V{panel - MARGIN}" stroke="#333" stroke-width="1"/></g>')
    return "\n".join([*parts, "</svg>", ""])


def _bar(row: Row, top: int, scale: float) -> str:
    zero, length = LABEL + VALUE + HALF, abs(row.change_percent) * scale
    slower = row.change_percent > 0
    color = SLOWER if row.change_percent > LIMIT_PERCENT else NEITHER if slower else FASTER
    at = zero if slower else zero - length
    end, anchor = (zero + length + 4, "start") if slower else (at - 4, "end")
    base = top + BAR - 2
    return (
        f'<g class="program" data-program="{escape(row.program)}" data-change="{row.change_percent}">'
        f'<text x="0" y="{base}">{escape(row.program)}</text>'
        f'<rect x="{at:.1f}" y="{top}" width="{max(length, 0.5):.1f}" height="{BAR}" fill="{color}"/>'
        f'<text x="{end:.1f}" y="{base}" text-anchor="{anchor}">{row.change_percent:+.1f}%</text></g>'
    )
