"""The answer on the screen: the verdict, and at most six lines that carry it."""

from __future__ import annotations

from collections.abc import Iterator

from pyshim.diagnosis import idle as gap
from pyshim.diagnosis import verdict
from pyshim.diagnosis.advice import code, next_step
from pyshim.diagnosis.look import TraceAnswer, member_name, rank_name
from pyshim.diagnosis.parts import Part, Prose, cut
from pyshim.diagnosis.queues import COMMUNICATION, HOST
from pyshim.diagnosis.result import NEXT_TO_NOTHING, ProcessResult
from pyshim.diagnosis.words import (
    a_step,
    kernel_name,
    milliseconds,
    of_step,
    part_of,
    percent,
    plural_of,
    size,
    streams,
)

LABEL = 8  # columns of the labels
_NAME, _LINES = 24, 6
# What is left out first where there are more than six lines.
_SPARE = ("idle", "exposed", "ranks", "also")


def screen(answer: TraceAnswer) -> Iterator[Part]:
    """Yield the answer."""
    leads, *parts = every(answer)
    yield leads
    for label in _SPARE:
        while len(parts) > _LINES and any(part.label == label for part in parts):
            parts.remove(next(part for part in parts if part.label == label))
    yield from parts


def every(answer: TraceAnswer) -> Iterator[Prose]:
    """Yield the answer, however many lines it has."""
    yield Prose(str(answer.verdicts[0]))
    for label, text in _lines(answer):
        yield Prose(text, label, LABEL, code=label in ("write", ""))


def _lines(answer: TraceAnswer) -> Iterator[tuple[str, str]]:
    one = answer.worst
    kinds = [found.kind for found in answer.verdicts]
    if len(answer.verdicts) > 1:
        yield "also", _also(answer)
    yield "step", _step(answer)
    if one.unread:
        yield "next", next_step(answer)
        return
    if one.idle_us > NEXT_TO_NOTHING * one.span_us:
        yield "idle", _idle(one)
    if one.shares.exposed_us > NEXT_TO_NOTHING * one.span_us:
        yield "exposed", _exposed(one)
    if answer.ranks and answer.ranks.waiting_us:
        yield "ranks", _ranks(answer)
    if verdict.YES in kinds or (one.inversions and one.waited_us > NEXT_TO_NOTHING * one.span_us):
        yield "behind", _behind(one, is_worth=verdict.YES in kinds, is_said=verdict.COMPUTATION in kinds)
    for fault in dict.fromkeys(fault for process in answer.processes for fault in process.faults):
        yield "fault", fault
    yield "next", next_step(answer)
    lines = code(answer)
    if lines:
        yield "write", lines[0]
        for line in lines[1:]:
            yield "", line


def _also(answer: TraceAnswer) -> str:
    """Return the verdicts that do not lead, each with what it costs; --full has them whole."""
    one = answer.worst
    words = []
    for found in answer.verdicts[1:]:
        kind = found.kind.removeprefix("no: ")
        words.append(f"{kind} {part_of(one, found.cost_us)}" if found.cost_us else kind)
    costs = f" of {of_step(one)}" if any(found.cost_us for found in answer.verdicts[1:]) else ""
    return ", ".join(words) + costs if answer.verdicts[-1].cost_us else ", ".join(words)


def _step(answer: TraceAnswer) -> str:
    """Return where the time goes."""
    one, shares = answer.worst, answer.worst.shares
    name = f"{answer.name}: " if answer.name else ""
    whole = one.span_us or 1.0
    computation = f"computation {percent((shares.computation_us + shares.hidden_us) / whole)}"
    if shares.hidden_us:
        computation += f" ({percent(shares.hidden_us / whole)} with communication beside it)"
    parts = [("exposed communication", shares.exposed_us), ("copies", shares.copies_us), ("idle", shares.idle_us)]
    shown = ", ".join([computation, *(f"{word} {percent(time / whole)}" for word, time in parts if time > 0)])
    simulated = " (simulated)" if answer.simulated else ""
    torn = ", of the whole steps of a torn file" if answer.trace.trace.torn else ""
    torn += ", of what could be read" if one.unread else ""
    ends = " and ".join(word for time, word in ((one.setup_us, "set-up"), (one.teardown_us, "tear-down")) if time)
    left = f", without {milliseconds(one.setup_us + one.teardown_us)} of {ends}" if ends else ""
    return f"{name}{milliseconds(one.span_us)} {a_step(one)}{left}{simulated}{torn}: {shown}"


def _idle(one: ProcessResult) -> str:
    idle, whole = one.idle, one.span_us or 1.0
    parts = [
        (gap.HOST, idle.host_us),
        (gap.START, idle.start_us),
        (gap.EVENT, idle.event_us),
        (gap.UNKNOWN, idle.unknown_us),
    ]
    shown = [f"{word} {percent(time / whole)}" for word, time in parts if time > 0.001 * whole]
    if idle.after_wait_us > 0.001 * whole:
        shown[0] += f" ({percent(idle.after_wait_us / whole)} after it waited for the GPU)"
    where = f" in {idle.longest_in[:_NAME]}" if idle.longest_in else ""
    return f"{', '.join(shown)}; longest {milliseconds(idle.longest_us)}{where}"


def _exposed(one: ProcessResult) -> str:
    """Return which collectives are exposed, and why."""
    said = []
    for kind in one.kinds:
        if kind.exposed_us < 0.1 * one.shares.exposed_us:
            continue
        each = f" of {size(kind.bytes)}" if kind.bytes else ""
        causes = ", ".join(
            f"{cause} {percent(time / kind.exposed_us)}"
            for cause, time in list(kind.causes.items())[:2]
            if time > 0.005 * kind.exposed_us
        )
        name = plural_of(kind.name, round(kind.count))
        said.append(f"{milliseconds(kind.exposed_us, kind.us)} of {_count(kind.count)} {name}{each} ({causes})")
    shown, more = cut(said, 2)
    return "; ".join(shown) + (f"; {more} more" if more else "")


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 9.95 or abs(number - round(number)) < 0.05 else f"{number:.1f}"


def _ranks(answer: TraceAnswer) -> str:
    """Return who is late, how often."""
    ranks = answer.ranks
    assert ranks is not None
    counted = max(row.collectives for row in ranks.rows)
    late = [
        f"{rank_name(member_name(row.member, answer.processes))} begins last in {percent(row.last / row.collectives)}"
        for row in ranks.late()
    ]
    shown, more = cut(late, 3)
    who = ", ".join(shown) + (f" and {more} more" if more else "")
    return f"{percent(ranks.waiting)} of {counted:,} shared collectives is waiting for late ranks; {who} of them"


def _behind(one: ProcessResult, is_worth: bool, is_said: bool) -> str:
    """Return what waits behind what; why raising it saves nothing, where it does and the verdict does not say so."""
    first = one.inversions[0]
    more = f", and {len(one.inversions) - 1} more pairs" if len(one.inversions) > 2 else ""
    on, behind = (
        streams(dict.fromkeys(stream for found in one.inversions for stream in getattr(found, name)))
        for name in ("streams", "behind_streams")
    )
    least = "at least " if any(found.at_least for found in one.inversions) else ""
    waiters = {waiter for found in one.inversions for waiter in found.waiters}
    waits = (
        f"{kernel_name(first.kernel, _NAME)} on {on} is queued, ready to run, for "
        f"{least}{milliseconds(one.waited_us)} {a_step(one)}"
    )
    front = f"{kernel_name(first.behind, _NAME)} on {behind}"
    why = (
        ""
        if is_worth or is_said or not one.raising
        else f"; raised, it would save next to nothing: {verdict.why_not(one)}"
    )
    return f"{waits} behind {front}{more}; {_who(waiters)} for it{why}"


def _who(waiters: set[str]) -> str:
    """Return who waits, with the verb."""
    words = [word for word in (HOST, COMMUNICATION) if word in waiters]
    if len(waiters) > len(words):
        words.append("other streams")
    return f"{' and '.join(words)} {'waits' if words in ([HOST], [COMMUNICATION]) else 'wait'}"
