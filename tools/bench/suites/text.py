"""The table as text: for each GPU and rule the programs, with the policies side by side; then the extremes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tools.bench.suites import variants
from tools.bench.suites.rows import LIMIT_PERCENT, Row, harmed


def table(rows: Sequence[Row]) -> str:
    parts = [
        "Everything here is simulated: virtual milliseconds of a step on a simulated GPU, from assumed costs.",
        "Changes are against plain (the program as written); negative is faster. ideal: the larger of computation and",
        "communication alone. shaped: share of the launches; of ideal: ideal time over time under the policy.",
    ]
    if any(variants.base_of(row.policy) for row in rows):
        parts.append("NAME-paper-windows: NAME-paper with `when: overlapping`, made by this suite.")
    groups = dict.fromkeys((row.gpu, row.rule) for row in rows)
    for gpu, rule in groups:
        chosen = [row for row in rows if (row.gpu, row.rule) == (gpu, rule)]
        parts.append(f"\nsimulated {gpu}, dispatch rule {rule}")
        parts.append(_group(chosen))
    parts.append("\nsimulated extremes by policy and rule")
    parts.append(extremes(rows))
    parts.append("")
    parts.append(verdict(rows))
    return "\n".join(parts)


def _group(rows: Sequence[Row]) -> str:
    policies = list(dict.fromkeys(row.policy for row in rows))
    head = ["program", "plain ms", "ideal ms", "sequential", "priority"]
    for policy in policies:
        head += [policy, "shaped", "of ideal"]
    by = {(row.program, row.policy): row for row in rows}
    lines = [head]
    for program in dict.fromkeys(row.program for row in rows):
        first = by[program, policies[0]]
        line = [program, f"{first.plain_ms:.3f}", f"{first.ideal_ms:.3f}"]
        line += [_percent(first.sequential_change_percent), _percent(first.priority_change_percent)]
        for policy in policies:
            row = by[program, policy]
            line += [_percent(row.change_percent), f"{100 * row.shaped_share:.0f}%", f"{100 * row.ideal_share:.0f}%"]
        lines.append(line)
    return aligned(lines)


def extremes(rows: Sequence[Row]) -> str:
    lines = [
        ["policy", "gpu", "rule", "worst", "program", "best", "program", f"over {LIMIT_PERCENT:g}%", "first steps"]
    ]
    for key in dict.fromkeys((row.policy, row.gpu, row.rule) for row in rows):
        chosen = sorted(
            (row for row in rows if (row.policy, row.gpu, row.rule) == key), key=lambda row: row.change_percent
        )
        best, worst = chosen[0], chosen[-1]
        losses = sum(row.change_percent > LIMIT_PERCENT for row in chosen)
        first = max(row.first_change_percent for row in chosen)
        lines.append(
            [
                *key,
                _percent(worst.change_percent),
                worst.program,
                _percent(best.change_percent),
                best.program,
                f"{losses} of {len(chosen)}",
                _percent(first),
            ]
        )
    return aligned(lines, left=(0, 1, 2, 4, 6))


def verdict(rows: Sequence[Row]) -> str:
    found = harmed(rows)
    if not any(row.default for row in rows):
        return "no default policy among them"
    if not found:
        return f"no default policy loses more than {LIMIT_PERCENT:g} % of virtual time in any of these (simulated)"
    named = []
    for row in found:
        named.append(f"  {row.policy}, {row.rule}, {row.program}: {_percent(row.change_percent)} ({_reasons(row)})")
        named.append(f"      {row.step.strip()}")
    return "\n".join([f"default policies lose more than {LIMIT_PERCENT:g} % of virtual time here (simulated):", *named])


def _reasons(row: Row) -> str:
    counted = sorted(row.reasons.items(), key=lambda item: -item[1])
    return f"{row.raised} raised, " + ", ".join(f"{count} {name}" for name, count in counted)


def _percent(value: float) -> str:
    return f"{value + 0.0:+.1f}%" if abs(value) >= 0.05 else "0.0%"


def aligned(lines: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    table = list(lines)
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in table
    )
