"""The screen of one kernel beside one communication kernel."""

from __future__ import annotations

from collections.abc import Iterator

from pyshim.explain import planner
from pyshim.explain.answer import Answer
from pyshim.explain.parts import Line, Part, Prose, Table, apart, cut
from pyshim.explain.policies import PolicyRule
from pyshim.stats.page import sentences

_HEADS = ("one block of", "threads", "registers", "static", "dynamic", "resident")
_SIZE_HEADS = ("blocks", "of its own", "make room, bytes")
_MOST_SIZES = 5  # rows; small kernels have up to 32
_LIMITS = {"shared_memory": "shared memory", "slots": "block slots"}  # the others are words themselves


def screen(answer: Answer, usual: str = "") -> Iterator[Part]:
    """Return the screen of one kernel.

    usual: its communication, if no option gives it."""
    return apart(_footprints(answer, usual), _sizes(answer), _verdict(answer))


def _footprints(answer: Answer, usual: str) -> Iterator[Part]:
    gpu, request = answer.case.gpu, answer.request
    kernel = f"{request.kernel} on " if request.kernel else ""
    yield Prose(f"{kernel}{gpu.name}" + (f" under {request.policy}" if request.policy else ""))
    yield Line("")
    rows, limits = [], []
    for who, block in (("computation", answer.case.block), ("communication", answer.case.communication)):
        blocks, limit = planner.occupancy(gpu, block)
        rows.append((who, *(f"{number:,}" for number in block[:4]), f"{blocks}"))
        limits.append(f"{who} by {_LIMITS.get(limit, limit)}" if limit else f"{who}: no block fits on this GPU")
    yield Table(_HEADS, rows)
    yield Prose(", ".join(limits), "limited")
    if usual:
        yield Prose(f"communication: {usual} (--comm-threads and similar options change it)")


def _sizes(answer: Answer) -> Iterator[Part]:
    """Yield the dynamic sizes with which so many blocks stay resident, from the most blocks down."""
    plan = answer.plan
    rows = [
        (f"{one.blocks}", f"{100 * one.blocks // plan.native_blocks} %", f"{one.minimum:,} to {one.maximum:,}")
        for one in plan.windows
    ]
    shown, more = cut(rows, _MOST_SIZES)
    if shown:
        yield Table(_SIZE_HEADS, shown, ())
    if more:
        yield Prose(f"... and {more} more for fewer blocks (--json lists all)")


def _verdict(answer: Answer) -> Iterator[Part]:
    """Yield what is done, why, by which rule, and what would change a refusal."""
    asked, native = answer.request.asked, answer.plan.native_blocks
    control, reason, size, blocks = answer.decision
    if size == asked:
        yield Prose(f"{control}: launched as asked", "decision")
    else:
        when = ", in overlap windows" if answer.rule and answer.rule.when == "overlapping" else ""
        kept = f"{blocks} of {native} blocks stay{when}"
        yield Prose(f"{control}: {size:,} bytes of dynamic shared memory instead of {asked:,} ({kept})", "decision")
    yield Prose(f"{reason}: {sentences()[reason]}", "because")
    yield Prose(_rule(answer.rule), "rule")
    if native and (text := _as_asked(answer)):
        yield Prose(text, "as asked")
    if answer.help:
        yield Prose(answer.help.replace(" would: ", ": "), "would help")


def _rule(rule: PolicyRule | None) -> str:
    if rule is None:
        return "no rule of the policy matches"
    words = [rule.shape]
    if rule.asked.keep:
        words.append(f"keep_at_least {rule.asked.keep}%")
    if rule.place and rule.shape != "leave":
        words.append(f"when {rule.when}")
    if rule.policy and not rule.place:
        return f"built in: kernels that compute and communicate at once are left alone, before line {rule.line}"
    return f"{rule.place}: {', '.join(words)}" if rule.place else ", ".join(words)


def _as_asked(answer: Answer) -> str:
    """Return how communication fits without any change of size."""
    beside, native = answer.plan.beside_after_drain, answer.plan.native_blocks
    if beside < 0:
        return "communication fits nowhere on this GPU"
    if beside == native:
        return "communication fits beside all of its blocks" if answer.decision.control in planner.RESIZES else ""
    if beside == 0:
        return "communication waits until a multiprocessor is empty"
    return f"communication fits after {native - beside} of {native} blocks have ended"
