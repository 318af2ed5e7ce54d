"""What was launched and what would be done with it, for people and as JSON: would it help me?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyshim.explain import inversions
from pyshim.explain.beside import NAMES
from pyshim.explain.binaries import readable
from pyshim.explain.parts import Line, Part, Prose, Table, apart, cut, plural
from pyshim.explain.used import BESIDE, LATER, LEFT, NEVER, OUTCOMES, UNKNOWN, WINDOW, Judged, Use, Weight, by_reason

_MOST = 18  # rows
_MEANING = {
    BESIDE: "communication fits beside it as it is, at once or as soon as one block has ended",
    WINDOW: "it gains a window: with more dynamic shared memory, as the rule asks, communication fits",
    LATER: "no size that the rule allows makes them co-resident; communication starts once blocks have ended",
    NEVER: "shares no multiprocessor with communication: no size that the rule allows makes them co-resident",
    LEFT: "the rule leaves it alone, or it must not be shaped",
    UNKNOWN: "its resources are not known",
}

_DOES = {
    BESIDE: "can run beside communication as it is",
    WINDOW: "gains a window by the rule",
    LATER: "lets communication in once blocks have ended",
    NEVER: "shares no multiprocessor with communication",
}


def screen(use: Use) -> Iterator[Part]:
    """Priority first, which default policies change; then shaping, which they do not."""
    answer = [Prose(sentence(use)), *(Prose(text) for text in _settings(use))]
    waiting = inversions.screen(use.waiting) if use.waiting else []
    shaping = [*_headline(use), Line(""), _table(use), *_more(use)]
    return apart([Prose(_launches(use))], waiting, _measured(use), shaping, _legend(use), answer, _notes(use))


def about_one(use: Use, one: Iterator[Part]) -> Iterator[Part]:
    """Around the screen of the only kernel."""
    headline = _launches(use)
    grids = [f"{grid:,} blocks" for grid in dict.fromkeys(judged.kernel.blocks for judged in use.judged) if grid]
    if len(grids) > 1:
        headline += f"; of {len(grids)} grids, here that of {grids[0]}"
    return apart([Prose(headline)], one, _measured(use), _notes(use))


def sentence(use: Use) -> str:
    """Return the answer for all kernels in one paragraph."""
    totals = use.totals()
    shares = {outcome: _percent(use, totals[outcome]) for outcome in OUTCOMES}
    what = "GPU time of computation" if use.launched.timed else "launches of computation"
    words = {**_DOES, LEFT: f"is left alone ({_why_left(use)})", UNKNOWN: "is not known"}
    said = [f"{shares[outcome]} {words[outcome]}" for outcome in OUTCOMES if totals[outcome].launches]
    return f"Of the {what}, {', '.join(said)}. {_advice(use)}"


def _why_left(use: Use) -> str:
    """The reasons, with the share of each where there are several."""
    weights = by_reason(use.judged, LEFT)
    ordered = sorted(weights, key=lambda reason: -use.weigh(weights[reason]))
    return ", ".join(ordered if len(ordered) == 1 else (f"{_percent(use, weights[one])} {one}" for one in ordered))


def _settings(use: Use) -> Iterator[str]:
    """Yield the settings of NCCL or RCCL with which communication fits beside more of the computation."""

    def shares(totals: Mapping[str, Weight]) -> list[float]:
        return [_share(use, totals[outcome]) for outcome in (BESIDE, WINDOW, LATER)]

    before = shares(use.totals())
    for setting, totals in use.settings.items():
        after = shares(totals)
        if sum(after) > sum(before) or sum(after[:2]) > sum(before[:2]):
            said = [f"{_percent(use, totals[one])} {_DOES[one]}" for one in _DOES if totals[one].launches]
            yield f"With {setting.replace(' with ', ' and ')} on all ranks, {', '.join(said)}."


def _advice(use: Use) -> str:
    totals = use.totals()
    lacks = _lacks(use)
    nothing = f"the recording lacks {lacks}"
    if all(one.outcome == UNKNOWN for one in use.judged):
        return f"Whether it would help is not known, because {nothing}."
    rest = f" Some kernels are not judged, because {nothing}." if lacks else ""
    return _known_advice(use, totals) + rest


def _known_advice(use: Use, totals: Mapping[str, Weight]) -> str:
    if totals[BESIDE].launches or totals[WINDOW].launches or totals[LATER].launches:
        ran = use.talking
        if not ran.launches:
            return "The recording has no communication kernel, so it cannot show whether there is anything to overlap."
        return "Whether that helps depends on what the program lets overlap: overlap report --compare measures it."
    return (
        "Shaping would not help as it is; --kernel NAME that matches one kernel shows what would change "
        "that. Priority is separate: overlap report --compare measures it."
    )


def _lacks(use: Use) -> str:
    """Return the fields that the recording lacks for kernels of unknown outcome."""
    unknown = [one.kernel for one in use.judged if one.outcome == UNKNOWN]
    fields = {
        "threads of a block": [kernel.threads for kernel in unknown],
        "registers of a thread": [kernel.registers for kernel in unknown],
        "shared memory": [value for kernel in unknown for value in (kernel.static, kernel.dynamic)],
    }
    missing = [name for name, values in fields.items() if None in values]
    return " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)


def _measured(use: Use) -> Iterator[Part]:
    """What there is to gain: communication that nothing hides."""
    times = use.launched.overlap
    if times is None:
        return
    simulated = "simulated; " if times.simulated else ""
    where = "on average of a step" if times.steps else "over the whole trace"
    span, takes, hidden, exposed = (
        f"{value / 1000:,.3f} ms"
        for value in (times.span, times.communication, times.hidden, times.communication - times.hidden)
    )
    yield Prose(
        f"Measured ({simulated}{where}): in {span}, communication runs for {takes}; {hidden} of that is "
        f"overlapped with computation and {exposed} is exposed, which is the most that hiding more of it can gain."
    )


def _launches(use: Use) -> str:
    launches = sum(one.weight.launches for one in use.judged)
    times = f", {_milliseconds(sum(one.weight.microseconds for one in use.judged))}" if use.launched.timed else ""
    count = plural(launches, "launch", "launches")
    return f"{use.launched.source} on {use.gpu.key}: {count} of computation{times}"


def _headline(use: Use) -> Iterator[Part]:
    threads, registers, static, dynamic = use.communication.numbers[:4]
    asked = use.asked.keys() & {"policy", "shape", "keep_at_least"}
    default = "" if asked else " (default policies shape only where `overlap probe` found backfill)"
    yield Prose(f"shaping rule: {use.rule}, {_when(use)}{default}")
    yield Prose(
        f"communication: {use.communication.name}: {threads:,} threads of {registers} registers, "
        f"{static + dynamic:,} bytes"
    )


def _when(use: Use) -> str:
    found = {one.when for one in use.judged} - {None}
    if found == {"always"}:
        return "always"
    return "in overlap windows" + (", where it does not say always" if "always" in found else "")


def _table(use: Use) -> Table:
    shown, _ = cut(_rows(use), _MOST)
    unit = "time" if use.launched.timed else "share"
    return Table(("kernel", "count", unit, "thr x regs", "shared", "outcome"), shown, (0, 5), above=True)


def _rows(use: Use) -> list[tuple[str, ...]]:
    """Launches of all grids of a kernel together, where the same is decided."""
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for one in use.judged:
        key: tuple[object, ...] = (one.kernel._replace(blocks=None, library=""), one.reason, one.dynamic)
        groups.setdefault(key, []).append(one)
    weights = {key: Weight() for key in groups}
    for key, found in groups.items():
        for one in found:
            weights[key].add(one.weight)
    ordered = sorted(groups, key=lambda key: -use.weigh(weights[key]))
    return [_row(use, groups[key][0], weights[key]) for key in ordered]


def _row(use: Use, one: Judged, weight: Weight) -> tuple[str, ...]:
    numbers = one.kernel.footprint
    takes = (f"{numbers[0]:,} x {numbers[1]}", f"{numbers[2] + numbers[3]:,}") if numbers else ("?", "?")
    said = f"{one.control} {one.dynamic:,}" if one.outcome == WINDOW else one.reason
    return readable(one.kernel.name), f"{weight.launches:,}", _percent(use, weight), *takes, f"{one.outcome}: {said}"


def _more(use: Use) -> Iterator[Part]:
    _, more = cut(_rows(use), _MOST)
    if more:
        yield Prose(f"... and {more:,} more (--json lists all, --kernel PATTERN leaves fewer)")


def _legend(use: Use) -> Iterator[Part]:
    """Yield the share and the meaning of each outcome."""
    for outcome, total in use.totals().items():
        if total.launches:
            launches = f"{total.launches:,} of the launches"
            time = f", {_milliseconds(total.microseconds)}" if use.launched.timed else ""
            yield Prose(f"{_percent(use, total)} ({launches}{time}): {_MEANING[outcome]}", outcome)


def _notes(use: Use) -> Iterator[Part]:
    if use.talking.launches:
        time = f", {_milliseconds(use.talking.microseconds)}" if use.launched.timed else ""
        yield Prose(f"communication itself: {use.talking.launches:,} launches{time}; never shaped")
    for note in use.launched.notes:
        yield Prose(note)


def as_json(use: Use) -> dict[str, Any]:
    return {
        "source": use.launched.source,
        "gpu": use.gpu.key,
        "rule": use.rule,
        "communication": {"name": use.communication.name, **dict(zip(NAMES, use.communication.numbers))},
        "communication_launches": use.talking.launches,
        "communication_us": use.talking.microseconds if use.launched.timed else None,
        "overlap": None if use.launched.overlap is None else use.launched.overlap._asdict(),
        "totals": {
            outcome: {**_weight(use, total), "share": _share(use, total)} for outcome, total in use.totals().items()
        },
        "settings": [
            {"setting": setting, "totals": {outcome: _weight(use, total) for outcome, total in totals.items()}}
            for setting, totals in use.settings.items()
        ],
        "kernels": [
            {
                "kernel": one.kernel.name,
                "library": one.kernel.library or None,
                "grid": one.kernel.blocks,
                "threads": one.kernel.threads,
                "registers": one.kernel.registers,
                "static_shared_memory": one.kernel.static,
                "asked": one.kernel.dynamic,
                **_weight(use, one.weight),
                "outcome": one.outcome,
                "control": one.control,
                "reason": one.reason,
                "dynamic_shared_memory": one.dynamic,
                "blocks": one.blocks,
                "native_blocks": one.native,
            }
            for one in use.judged
        ],
        "waiting": inversions.as_json(use.waiting) if use.waiting else None,
        "notes": use.launched.notes,
    }


def _weight(use: Use, weight: Weight) -> dict[str, Any]:
    return {"launches": weight.launches, "us": round(weight.microseconds, 3) if use.launched.timed else None}


def _share(use: Use, weight: Weight) -> float:
    whole: Sequence[float] = [use.weigh(one.weight) for one in use.judged]
    return use.weigh(weight) / sum(whole) if sum(whole) else 0.0


def _percent(use: Use, weight: Weight) -> str:
    share = 100 * _share(use, weight)
    return f"{share:.0f} %" if share >= 10 or share == 0 else f"{share:.1f} %"


def _milliseconds(microseconds: float) -> str:
    return f"{microseconds / 1000:,.1f} ms" if microseconds >= 100 else f"{microseconds:,.1f} us"
