"""The screens of one kernel, its answer and its sweep, and the parts that every screen is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple, TypeVar, Union

from pyshim.explain import planner
from pyshim.explain.answer import Answer, Explanation, Warps
from pyshim.explain.planner import RESIZES, Window
from pyshim.explain.policies import PolicyRule
from pyshim.explain.variants import Step, Sweep
from pyshim.policy.gpus import AMD
from pyshim.policy.show import one_line

Item = TypeVar("Item")


class Table(NamedTuple):
    """Rows below heads."""

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: Sequence[int] = (0,)  # columns of text
    above: bool = False  # names in the first column are worth a line of their own


class Prose(NamedTuple):
    """A paragraph."""

    text: str
    label: str = ""  # stands before it


class Line(NamedTuple):
    """Part of a picture, which is never broken: its maker knows the width of the screen."""

    text: str


Part = Union[Table, Prose, Line]


def apart(*groups: Iterable[Part]) -> Iterator[Part]:
    """Yield all parts, with an empty line between groups that are not empty."""
    first = True
    for group in groups:
        parts = list(group)
        if parts and not first:
            yield Line("")
        first = first and not parts
        yield from parts


def plural(number: int, word: str, words: str = "") -> str:
    """Return a number with its noun. words: the plural if it is not word + s."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def cut(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """Return the first items, and how many more there are; a single item more is shown rather than counted."""
    return (items, 0) if len(items) <= most + 1 else (items[:most], len(items) - most)


_HEADS = ("one block of", "threads", "registers", "static", "dynamic", "resident")
_SIZE_HEADS = ("blocks", "of its own", "make room, bytes", "quick entry, bytes")
_MOST_SIZES = 5  # rows; small kernels have up to 32
_MOST_SHADOWED, _MOST_CHANGES = 2, 5
_LIMITS = {"shared_memory": "shared memory", "slots": "block slots"}  # the others are words themselves
_SWEEP_HEADS = ("from", "to", "blocks", "warps", "beside", "reason")
_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 76, 56
_COLOURS = {"at once": "#2a9d4a", "once": "#e0a100", "never": "#c0392b"}
_MEANING = {"at once": "fits beside all of them", "once": "fits once some have ended", "never": "never fits"}


def screen(found: Explanation, usual: str = "", more: str = "") -> Iterator[Part]:
    """Return the screen of one kernel.

    usual: its communication, if no option gives it; more: what else to say about communication."""
    return apart(
        _headline(found.answer, found.warps), _footprints(found, usual), _sizes(found.answer), _verdict(found, more)
    )


def decided(control: str, size: int, asked: int) -> str:
    """Return what is done, with its number if the size changes."""
    return control if size == asked else f"{control}: {size:,} bytes of dynamic shared memory instead of {asked:,}"


def _asks(rule: PolicyRule) -> str:
    """Return what a rule asks for."""
    words = [rule.shape]
    if rule.asked.keep:
        words.append(f"keep_at_least {rule.asked.keep}%")
    if rule.place and rule.shape != "leave":
        words.append(f"when {rule.when}")
    if rule.when_dispatch != "unknown":
        words.append(f"when_dispatch {rule.when_dispatch}")
    return ", ".join(words)


def _headline(answer: Answer, warps: Warps) -> Iterator[Part]:
    gpu, request = answer.case.gpu, answer.request
    one, registers = "multiprocessor", f"{gpu.registers:,} registers"
    if gpu.vendor == AMD:
        one, registers = "compute unit", f"{gpu.registers // planner.struct(gpu).warp_size:,} registers a lane"
    if request.kernel:
        under = f" under {request.policy}" if request.policy is not None else ""
        yield Prose(f"{request.kernel} on {(request.gpu or '').lower()}{under}")
    yield Prose(
        f"{gpu.name}: {gpu.multiprocessors} {one}s, and each has room for {gpu.blocks} blocks, "
        f"{warps.most} warps, {registers} and {gpu.shared_memory:,} bytes of shared memory"
    )


def _footprints(found: Explanation, usual: str) -> Iterator[Part]:
    rows, limits = [], []
    for who, one in (("computation", found.computation), ("communication", found.communication)):
        rows.append((who, *(f"{number:,}" for number in one.block[:4]), f"{one.blocks}"))
        limits.append(
            f"{who} by {_LIMITS.get(one.limit, one.limit)}" if one.limit else f"{who}: no block fits on this GPU"
        )
    yield Table(_HEADS, rows)
    yield Prose(", ".join(limits), "limited")
    if usual:
        yield Prose(f"communication: {usual} (--comm-threads and similar options change it)")


def _sizes(answer: Answer) -> Iterator[Part]:
    """Yield the dynamic sizes with which so many blocks stay resident, from the most blocks down."""
    plan = answer.plan
    windows, entries = ({window.blocks: window for window in found} for found in (plan.windows, plan.entries))
    rows = [
        (f"{blocks}", f"{100 * blocks // plan.native_blocks} %", _span(windows, blocks), _span(entries, blocks))
        for blocks in sorted({*windows, *entries}, reverse=True)
    ]
    shown, more = cut(rows, _MOST_SIZES)
    if shown:
        yield Table(_SIZE_HEADS, shown, ())
    if more:
        yield Prose(f"... and {more} more for fewer blocks (--sweep and --json list all)")


def _span(windows: Mapping[int, Window], blocks: int) -> str:
    window = windows.get(blocks)
    return f"{window.minimum:,} to {window.maximum:,}" if window else "-"


def _verdict(found: Explanation, more: str) -> Iterator[Part]:
    """Yield what is done, why, by which rule, what it costs, and what would change it."""
    answer, asked = found.answer, found.answer.request.asked
    control, reason, size = answer.decision[:3]
    where = ": launched as asked" if size == asked else " (in overlap windows)" if answer.outside else ""
    yield Prose(f"{decided(control, size, asked)}{where}", "decision")
    yield Prose(f"{reason}: {planner.sentence(reason)}", "because")
    yield Prose(_rule(answer.rule), "rule")
    shown, rest = cut([other for other in found.shadowed if other.rule.place], _MOST_SHADOWED)
    for other in shown:
        says, size = other.reason, other.dynamic_shared_memory
        if size != asked:
            says = f"{decided(other.control, size, asked)} ({says})"
        text = f"{other.rule.place} matches as well: {_asks(other.rule)}; it would decide: {says}"
        yield Prose(text, "shadowed" if other is shown[0] else " ")
    if rest:
        yield Prose(f"... and {rest} more (--sweep --json lists all)", " ")
    if answer.plan.native_blocks:
        yield Prose(_cost(answer, found.warps), "cost")
        if _as_asked(answer):
            yield Prose(_as_asked(answer), "as asked")
    if answer.outside:
        yield Prose(f"of overlap windows the launch is left as asked ({answer.outside})", "outside")
    if found.raises not in (None, "off") and reason != "communication":
        yield Prose(f"left as asked on a raised stream (`streams: {{raise: {one_line(found.raises)}}}`)", "priority")
    if more:
        yield Prose(more, "also")
    yield from _helps(found)


def _rule(rule: PolicyRule | None) -> str:
    if rule is None:
        return "no rule of the policy matches"
    if rule.policy is None:
        return _asks(rule)
    if rule.place is None:
        return f"built in: {rule.match} are left alone, before the rule on line {rule.line}"
    return f"{rule.place} matches {rule.match} and asks for {_asks(rule)}"


def _cost(answer: Answer, warps: Warps) -> str:
    native = answer.plan.native_blocks
    before = _occupancy(native, warps.as_asked, warps.most)
    if native == answer.decision.blocks:
        return f"nothing: {before}, as before"
    return f"{before} before, {_occupancy(answer.decision.blocks, warps.as_decided, warps.most)} after"


def _occupancy(blocks: int, warps: int, most: int) -> str:
    return f"{plural(blocks, 'block')} ({plural(warps, 'warp')}, {100 * warps // most} % of {most})"


def _as_asked(answer: Answer) -> str:
    """Return how communication fits without any change of size."""
    beside, native = answer.plan.beside_after_drain, answer.plan.native_blocks
    if beside < 0:
        return "communication fits nowhere on this GPU"
    if beside == native:
        return "communication fits beside all of its blocks" if answer.decision.control in RESIZES else ""
    if beside == 0:
        return "communication waits until a multiprocessor is empty"
    return f"communication fits once {native - beside} of {native} blocks have ended"


def _helps(found: Explanation) -> Iterator[Part]:
    helps, reason = found.answer.help, found.answer.decision.reason
    if helps and " would: " not in helps:
        yield Prose(helps, "would help")
    shown, more = cut(found.changes, _MOST_CHANGES)
    for index, change in enumerate(shown):
        ranks = " on all ranks" if change.all_ranks else ""
        first = index == 0 and (not helps or " would: " in helps)
        yield Prose(f"{change.setting}{ranks}: {change.does}", "would help" if first else " ")
    if more:
        yield Prose(f"... and {more} more (--sweep --json lists all)", " ")
    refused = reason in ("priority", "below_keep", "capped_without_room", "no_rule") or reason.startswith("no_room_")
    if refused and not shown:
        yield Prose("no known setting, and no smaller block", "would help")


def sweep_screen(found: Sweep, of: Explanation, columns: int, is_ascii: bool) -> Iterator[Part]:
    """Return the screen of a sweep of an explanation, so many columns wide."""
    answer, decision = of.answer, of.answer.decision
    if not found.steps:
        yield Prose(f"{decision.reason}: {answer.help}")
        return
    said = "; ".join(
        f"{who}: {block.threads:,} threads of {block.registers} registers, {block.static:,} bytes static, "
        f"{block.dynamic:,} dynamic"
        for who, block in (("computation", of.computation.block), ("communication", of.communication.block))
    )
    name, gpu = answer.request.kernel or "one kernel", (answer.request.gpu or "").lower()
    yield Prose(f"{name} on {gpu} by dynamic shared memory; {said}")
    yield Line("")
    yield table(found)
    yield Line("")
    yield from picture(found, columns, is_ascii)
    yield Line("")
    yield Prose(f"{decided(decision.control, decision.dynamic, answer.request.asked)} ({decision.reason})", "decision")


def table(found: Sweep) -> Table:
    """Return a row for each step."""
    rows = [
        (
            f"{step.minimum:,}",
            f"{step.maximum:,}",
            f"{step.blocks}",
            f"{100 * step.blocks * found.warps // found.most} %",
            "-" if step.beside < 0 else f"{min(step.beside, step.blocks)}",
            step.reason,
        )
        for step in found.steps
    ]
    return Table(_SWEEP_HEADS, rows, (5,))


def picture(found: Sweep, columns: int, is_ascii: bool) -> Iterator[Part]:
    """Yield a bar for each step: its blocks, and of them those beside which communication fits."""
    full, empty, arrow = ("#", ".", "<-") if is_ascii else ("█", "░", "◀")
    most = max(step.blocks for step in found.steps)
    number = max(len(f"{step.minimum:,}") for step in found.steps)
    mark = max(len(found.mark(step)) for step in found.steps)
    room = max(10, min(columns - number - mark - len(arrow) - len(str(most)) - 6, 48))
    unit = max(1, room // most)  # so that blocks can be counted, where there are few
    for step in found.steps:
        inside = max(0, min(step.beside, step.blocks))
        bar = full * _cells(inside, unit, most, room) + empty * _cells(step.blocks - inside, unit, most, room)
        said = f"  {arrow} {found.mark(step)}" if found.mark(step) else ""
        yield Line(f"{step.minimum:>{number},}  {bar} {step.blocks}{said}")
    yield Prose(f"{full} blocks beside which communication fits, {empty} blocks that must end before it does")


def _cells(blocks: int, unit: int, most: int, room: int) -> int:
    return blocks * unit if unit * most <= room else -(-blocks * room // most)


def svg(found: Sweep, title: str) -> str:
    """Draw resident blocks over dynamic bytes, coloured by whether communication fits beside. found: with steps."""
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
        _svg_text(_LEFT, 24, title, size=14),
    ]
    at = _LEFT
    for kind, meaning in _MEANING.items():
        parts.append(f'<rect x="{at}" y="36" width="12" height="12" fill="{_COLOURS[kind]}"/>')
        parts.append(_svg_text(at + 18, 46, f"communication {meaning}" if kind == "at once" else meaning))
        at += 250 if kind == "at once" else 190
    for step in found.steps:
        left, right, top = x(step.minimum), x(step.maximum + 1 if step is not found.steps[-1] else high), y(step.blocks)
        said = (
            f"{step.minimum:,} to {step.maximum:,} bytes: {step.blocks} blocks; communication {_MEANING[_kind(step)]}"
        )
        parts.append(
            f'<rect x="{left}" y="{top}" width="{max(0.5, round(right - left, 1))}" height="{round(y(0) - top, 1)}" '
            f'fill="{_COLOURS[_kind(step)]}"><title>{escape(said)}</title></rect>'
        )
    for blocks in range(0, most + 1, max(1, most // 8)):
        parts.append(f'<line x1="{_LEFT - 4}" x2="{_LEFT}" y1="{y(blocks)}" y2="{y(blocks)}" stroke="black"/>')
        parts.append(_svg_text(_LEFT - 8, y(blocks) + 4, f"{blocks}", "end"))
    for index in range(5):
        size = low + (high - low) * index // 4
        parts.append(f'<line x1="{x(size)}" x2="{x(size)}" y1="{y(0)}" y2="{y(0) + 4}" stroke="black"/>')
        parts.append(_svg_text(x(size), y(0) + 18, f"{size:,}", "end" if index == 4 else "middle"))
    parts.append(f'<path d="M{_LEFT} {_TOP}V{y(0)}H{_WIDTH - _RIGHT}" fill="none" stroke="black"/>')
    parts.append(_svg_text(_LEFT + wide / 2, _HEIGHT - 12, "dynamic shared memory of a block, bytes", "middle"))
    parts.append(_svg_text(8, _TOP - 10, "blocks resident on a multiprocessor"))
    if found.chosen != found.asked:
        line = x(found.chosen)
        parts.append(f'<line x1="{line}" x2="{line}" y1="{_TOP}" y2="{y(0)}" stroke="black" stroke-dasharray="4 3"/>')
        anchor = "end" if line > _WIDTH / 2 else "start"
        parts.append(
            _svg_text(line + (-6 if anchor == "end" else 6), _TOP + 12, f"{found.control}: {found.chosen:,}", anchor)
        )
    return "\n".join([*parts, "</svg>\n"])


def _svg_text(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _kind(step: Step) -> str:
    if step.beside >= step.blocks:
        return "at once"
    return "once" if step.beside > 0 else "never"
