"""The verdict about one process: what holds a step up, and whether raising streams helps.

Verdicts are of a fixed list. Several may hold; each is worth the time of a step that it costs, and the one that costs
most leads, after `yes`. What costs less than NEXT_TO_NOTHING of a step does not hold; where all cost little, the work
itself leads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyshim.diagnosis import estimate, exposed
from pyshim.diagnosis.result import NEXT_TO_NOTHING, ProcessResult
from pyshim.diagnosis.words import listed, milliseconds, of_step, part_of, percent, plural_of, streams

if TYPE_CHECKING:
    from pyshim.diagnosis.ranks import Ranks

YES = "yes"
ONE_STREAM, AT_ONCE, SAME_STREAM = "no: one stream", "no: waited for at once", "no: the same stream"
ONE_WAVE, LATE_RANKS, HOST_LATE = "no: one wave", "no: late ranks", "no: the host is late"
COPIES, TOO_LONG, COMPUTATION = "no: copies", "no: too much communication", "no: computation"
NOT_KNOWN = "not known"
VERDICTS = (
    *(YES, ONE_STREAM, AT_ONCE, SAME_STREAM, ONE_WAVE, LATE_RANKS, HOST_LATE, COPIES, TOO_LONG, COMPUTATION),
    NOT_KNOWN,
)

_LEADS = 0.03  # of a step: what costs less is no answer to what holds it up
_ALONE = 0.98  # of a GPU's work: what is on one stream where nothing runs beside anything


class Verdict(NamedTuple):
    kind: str
    cost_us: float  # of a step
    text: str  # the number that carries it, in words

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Late(NamedTuple):
    """What the ranks together say of the collectives of one process."""

    ranks: Ranks
    names: tuple[str, ...]  # of the ranks that the others wait for


def verdicts(one: ProcessResult, late: Late | None = None) -> list[Verdict]:
    """Return what holds, the most expensive first; at least one."""
    if one.unread:
        return [Verdict(NOT_KNOWN, 0.0, f"{one.unread}, so where the time goes is not known")]
    least = NEXT_TO_NOTHING * one.span_us
    found = [verdict for verdict in _candidates(one, late) if verdict.cost_us > least]
    # Where raising helps, no other verdict is an answer to whether it does.
    found.sort(key=lambda verdict: (verdict.kind != YES, -verdict.cost_us))
    first = {verdict.kind: verdict for verdict in reversed(found)}  # of each kind the most expensive
    found = [verdict for verdict in found if first[verdict.kind] is verdict]
    if any(verdict.kind == SAME_STREAM for verdict in found):
        found = [verdict for verdict in found if verdict.kind != ONE_STREAM]
    elif _is_alone(one) and not any(verdict.kind == ONE_STREAM for verdict in found):
        found.append(_one_stream(one, 0.0))
    if not found or (found[0].kind != YES and found[0].cost_us < _LEADS * one.span_us):
        found.sort(key=lambda verdict: verdict.kind != ONE_STREAM)
        if not found or found[0].kind != ONE_STREAM:
            found.insert(0, _computation(one))
    return found


def is_worth(one: ProcessResult) -> bool:
    """Whether raising streams is expected to save anything."""
    return not one.unread and bool(one.raising) and one.saves_us > NEXT_TO_NOTHING * one.span_us


def _candidates(one: ProcessResult, late: Late | None) -> Iterator[Verdict]:
    if is_worth(one):
        about = "at most" if one.saves_at_most else "about"
        share = f"{about} {part_of(one, one.saves_us)} of {of_step(one)}"
        if len(one.raising) == len(one.minor):  # what else waited would wait on
            wait = "they wait" if len(one.raising) > 1 else "it waits"
            least = "at least " if any(found.at_least for found in one.inversions) else ""
            share += f", of the {least}{part_of(one, one.waited_us)} that {wait}"
        names = streams(dict.fromkeys(raised.stream for raised in one.raising))
        yield Verdict(YES, one.saves_us, f"raise {names}, {share} ({estimate.words(one.saves_at_most)})")
    yield from _of_communication(one, late)
    if not one.communication_us and one.idle.event_us and len(one.devices) > 1:
        text = f"a GPU is idle {part_of(one, one.idle.event_us)} of {of_step(one)}, until an event of another GPU"
        yield Verdict(LATE_RANKS, one.idle.event_us, text)
    yield Verdict(COPIES, one.shares.copies_us, f"they take {_share(one, one.shares.copies_us)}, beside no kernel")
    yield _one_wave(one)
    if _is_alone(one):
        yield _one_stream(one, one.idle.start_us)
    yield from _unknown(one)


def _share(one: ProcessResult, time_us: float) -> str:
    return f"{part_of(one, time_us)} of {of_step(one)}"


def _of_communication(one: ProcessResult, late: Late | None) -> Iterator[Verdict]:
    """Yield what exposes communication, and that the host is late, which does that, too."""
    by_cause: defaultdict[str, float] = defaultdict(float)
    names: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for kind in one.kinds:
        for cause, time in kind.causes.items():
            by_cause[cause] += time
            names[cause][kind.name] += time

    def part(cause: str) -> str:
        """Return how much of which collectives it is."""
        name = max(names[cause], key=lambda word: names[cause][word]) if names[cause] else "collective"
        whole = sum(kind.us for kind in one.kinds if kind.name in names[cause])
        of = plural_of(name) if len(names[cause]) == 1 else "communication"
        return f"{milliseconds(by_cause[cause], whole)} of {of}"

    yield Verdict(
        AT_ONCE, by_cause[exposed.AT_ONCE], f"{part(exposed.AT_ONCE)} started only when the result was needed"
    )
    yield Verdict(
        SAME_STREAM,
        by_cause[exposed.SAME_STREAM],
        f"{part(exposed.SAME_STREAM)} run on the stream that computes, so nothing runs beside it",
    )
    yield Verdict(
        TOO_LONG,
        by_cause[exposed.TOO_LONG],
        f"{part(exposed.TOO_LONG)} is more than the computation beside it can hide",
    )
    if late:
        ranks = listed(late.names)
        if all(name.isdigit() for name in late.names):
            ranks = f"{'rank' if len(late.names) == 1 else 'ranks'} {ranks}"
        word = plural_of(late.ranks.name)
        begins = "begins" if len(late.names) == 1 else "begin"
        yield Verdict(
            LATE_RANKS,
            by_cause[exposed.LATE_RANKS],
            f"{percent(late.ranks.waiting)} of the {word} is waiting for {ranks}, which {begins} them later",
        )
    alone = by_cause[exposed.HOST_LATE]
    text = f"the GPU is idle {_share(one, one.idle.host_us)} until the host launches more work"
    if one.one_gap_us:
        text += f", most of it in one gap of {milliseconds(one.one_gap_us)} in {one.count:,} steps"
    if alone > NEXT_TO_NOTHING * one.span_us:
        text += f", and communicates alone {part_of(one, alone)}"
    yield Verdict(HOST_LATE, one.idle.host_us + alone, text)
    if by_cause[exposed.UNKNOWN]:
        text = f"{_share(one, by_cause[exposed.UNKNOWN])} is exposed communication, and {_missing(one)}"
        yield Verdict(NOT_KNOWN, by_cause[exposed.UNKNOWN], text)


def _one_wave(one: ProcessResult) -> Verdict:
    """Work behind kernels whose blocks are all resident: what is surely lost by it, or may be."""
    behind = sum(kind.causes.get(exposed.ONE_WAVE, 0.0) for kind in one.kinds)
    unclaimed = one.unclaimed_one_wave_us if one.untold else 0.0
    cost = max(one.one_wave_lost_us + behind, unclaimed)
    return Verdict(
        ONE_WAVE,
        cost,
        f"for {_share(one, cost)} work is queued, ready to run, behind kernels of one wave (all their blocks run at "
        "once): no priority helps",
    )


def _is_alone(one: ProcessResult) -> bool:
    """Whether all that counts runs on one stream, and none of it waits for another stream."""
    waited_us = (
        one.waited_us or one.unclaimed_us or one.one_wave_us or one.raised_us or sum(of.waited_us for of in one.major)
    )
    few = one.beside_us <= NEXT_TO_NOTHING * one.span_us
    return one.main_stream[1] >= _ALONE and few and not (waited_us or one.shares.hidden_us)


def _one_stream(one: ProcessResult, cost_us: float) -> Verdict:
    name, share = one.main_stream
    beside = f"next to nothing ({_share(one, one.beside_us)})" if one.beside_us else "nothing"
    text = f"{percent(share)} of the work is on stream {name}, and {beside} runs beside it"
    if cost_us > NEXT_TO_NOTHING * one.span_us:
        text += f"; between its kernels the GPU is idle {_share(one, cost_us)}"
    return Verdict(ONE_STREAM, cost_us, text)


def _computation(one: ProcessResult) -> Verdict:
    time = one.shares.computation_us + one.shares.hidden_us
    return Verdict(COMPUTATION, 0.0, f"it fills {_share(one, time)}{_held_up(one)}")


def _held_up(one: ProcessResult) -> str:
    """Return the end of a sentence about what waits longest although no verdict says so, and why nothing is gained."""
    least = "at least " if any(found.at_least for found in one.inversions) else ""
    major = max(one.major, key=lambda share: share.waited_us, default=None)
    found = []
    if one.waited_us:
        names = streams(dict.fromkeys(share.stream for share in one.minor))
        wait, raised = ("waits", "it") if len(one.minor) == 1 else ("wait", "them")
        why = f"raising {raised} would save next to nothing, because {why_not(one)}"
        if not one.raising:
            why = "they carry too much of the computation together to be raised"
        found.append((one.waited_us, f"{names} {wait} {least}{part_of(one, one.waited_us)}, but {why}"))
    if major:
        waits = f"stream {major.stream} waits {part_of(one, min(major.waited_us, one.span_us))}"
        why = f"has {percent(major.share)} of the computation, as the default counts it: raising it may cost time"
        found.append((major.waited_us, f"{waits}, but {why}"))
    for time, why in (
        (one.raised_us, "although it has the greater priority already"),
        (
            one.one_wave_us,
            "behind kernels of one wave, which no priority shortens, but next to nothing is lost by that",
        ),
        (one.unclaimed_us, "behind other streams, and nothing is known to wait for it"),
    ):
        found.append((time, f"work waits {part_of(one, min(time, one.span_us))} {why}"))
    time, said = max(found)
    return f"; {said}" if time > NEXT_TO_NOTHING * one.span_us else ", and little is held up"


def why_not(one: ProcessResult) -> str:
    """Return why raising would save next to nothing, as a part of a sentence."""
    if one.saves_us + one.moved_us > NEXT_TO_NOTHING * one.span_us:
        return "the GPU and the streams in front have other work all the same"
    if one.saves_us + one.still_us > NEXT_TO_NOTHING * one.span_us:
        return "raised, it still waits until blocks in front end"
    if one.as_before_us > NEXT_TO_NOTHING * one.span_us:
        return "it waits behind streams that are raised as well"
    return "nothing waits for it that long"


def _unknown(one: ProcessResult) -> Iterator[Verdict]:
    """Yield what the trace does not say, the greatest of it."""
    candidates = []
    queued = "work is queued, ready to run, behind other work"
    multiple_waves = one.unclaimed_us - one.unclaimed_one_wave_us
    if one.untold and multiple_waves > 0:
        candidates.append((multiple_waves, f"for {_share(one, multiple_waves)} {queued}, and {_missing(one)}"))
    if one.refuted_us:
        text = f"for {_share(one, one.refuted_us)} work seems ready, yet an idle GPU did not start it"
        candidates.append((one.refuted_us, text))
    unknown = one.idle.unknown_us + (one.idle.event_us if len(one.devices) == 1 else 0.0)
    why = "and the trace does not say why" if one.told else f"and {_missing(one)}"
    candidates.append((unknown, f"the GPU is idle {_share(one, unknown)}, {why}"))
    cost, text = max(candidates)
    yield Verdict(NOT_KNOWN, cost, text)


def _missing(one: ProcessResult) -> str:
    """Return what the trace leaves out, as a part of a sentence."""
    first = one.untold[0] if one.untold else "the trace does not say why"
    return first if first.startswith("the trace") else "the trace does not say what waits for it"
