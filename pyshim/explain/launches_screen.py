"""Launched kernels and priority inversions, for people and as JSON: would it help me?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from pyshim.explain.kernels import readable, trace_name
from pyshim.explain.launches import (
    BESIDE,
    LATER,
    LEFT,
    NEVER,
    OUTCOMES,
    UNKNOWN,
    WINDOW,
    Judged,
    Use,
    Weight,
    weight_of,
)
from pyshim.explain.policies import rule_text
from pyshim.explain.request import COMM_FOOTPRINT
from pyshim.explain.screen import Line, Part, Prose, Table, apart, cut, plural
from pyshim.traces.names import driver_name
from pyshim.traces.waiting import COPY, Found, Waiting

_MOST = 18  # rows
_MEANING = {
    BESIDE: "communication fits beside it as it is",
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
    """Return one screen: priority first, which default policies change; then shaping, which they do not."""
    answer = [Prose(sentence(use)), *(Prose(text) for text in _settings(use))]
    waiting = waiting_screen(use.waiting) if use.waiting else []
    shaping = [*_headline(use), Line(""), *_table(use)]
    return apart([Prose(_launches(use))], waiting, _measured(use), shaping, _legend(use), answer, _notes(use))


def about_one(use: Use, one: Iterator[Part]) -> Iterator[Part]:
    """Return the screen of the only kernel with what is known of its launches."""
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
    left: dict[str, Weight] = {}
    for one in (one for one in use.judged if one.outcome == LEFT):
        left[one.decision.reason] = left.get(one.decision.reason, Weight()).plus(*one.weight)
    why = sorted(left, key=lambda reason: -use.launched.weigh(left[reason]))
    why = why if len(why) == 1 else [f"{_percent(use, left[reason])} {reason}" for reason in why]
    words = {**_DOES, LEFT: f"is left alone ({', '.join(why)})", UNKNOWN: "is not known"}
    said = [f"{shares[outcome]} {words[outcome]}" for outcome in OUTCOMES if totals[outcome].launches]
    return f"Of the {what}, {', '.join(said)}. {_advice(use)}"


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
    unknown = [one.kernel for one in use.judged if one.outcome == UNKNOWN]
    fields = {
        "threads of a block": [kernel.threads for kernel in unknown],
        "registers of a thread": [kernel.registers for kernel in unknown],
        "shared memory": [value for kernel in unknown for value in (kernel.static, kernel.dynamic)],
    }
    missing = [name for name, values in fields.items() if None in values]
    lacks = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
    if len(unknown) == len(use.judged):
        return f"Whether it would help is not known, because the recording lacks {lacks}."
    if not any(one.outcome in (BESIDE, WINDOW, LATER) and one.weight.launches for one in use.judged):
        advice = (
            "Shaping would not help as it is; --kernel NAME that matches one kernel shows what would change "
            "that. Priority is separate: overlap report --compare measures it."
        )
    elif use.talking.launches:
        advice = "Whether that helps depends on what the program lets overlap: overlap report --compare measures it."
    else:
        advice = "The recording has no communication kernel, so it cannot show whether there is anything to overlap."
    return advice + (f" Some kernels are not judged, because the recording lacks {lacks}." if lacks else "")


def _measured(use: Use) -> Iterator[Part]:
    """Yield what there is to gain: communication that nothing hides."""
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
    threads, registers, static, dynamic = use.communication.takes[:4]
    is_default = (use.request.policy, use.request.shape, use.request.keep_at_least) == (None, None, None)
    default = " (default policies shape nothing)" if is_default else ""
    found = {one.when for one in use.judged} - {None}
    when = "in overlap windows" + (", where it does not say always" if "always" in found else "")
    yield Prose(f"shaping rule: {rule_text(use.request)}, {'always' if found == {'always'} else when}{default}")
    yield Prose(
        f"communication: {use.communication.name}: {threads:,} threads of {registers} registers, "
        f"{static + dynamic:,} bytes"
    )


def _table(use: Use) -> Iterator[Part]:
    """Yield a row for all grids of a kernel together if the same is decided."""
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for one in use.judged:
        groups.setdefault((one.kernel._replace(blocks=None, library=""), one.decision), []).append(one)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for (one, *_), weight in ((found, weight_of(found)) for found in groups.values()):
        f, decision = one.kernel.footprint, one.decision
        takes = (f"{f.threads:,} x {f.registers}", f"{f.static + f.dynamic:,}") if f else ("?", "?")
        said = f"{decision.control} {decision.dynamic:,}" if one.outcome == WINDOW else decision.reason
        about = (f"{weight.launches:,}", _percent(use, weight), *takes, f"{one.outcome}: {said}")
        rows.append((use.launched.weigh(weight), (readable(one.kernel.name), *about)))
    shown, more = cut([row for _, row in sorted(rows, key=lambda row: -row[0])], _MOST)
    unit = "time" if use.launched.timed else "share"
    yield Table(("kernel", "count", unit, "thr x regs", "shared", "outcome"), shown, (0, 5), above=True)
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


def as_json(use: Use) -> dict[str, object]:
    """Return everything, as --json prints it."""
    return {
        "source": use.launched.source,
        "gpu": use.gpu.key,
        "rule": rule_text(use.request),
        "communication": {"name": use.communication.name, **dict(zip(COMM_FOOTPRINT, use.communication.takes))},
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
                **one.decision.as_json(),
            }
            for one in use.judged
        ],
        "waiting": _waiting_json(use.waiting) if use.waiting else None,
        "notes": list(use.launched.notes),
    }


def _weight(use: Use, weight: Weight) -> dict[str, object]:
    return {"launches": weight.launches, "us": round(weight.microseconds, 3) if use.launched.timed else None}


def _share(use: Use, weight: Weight) -> float:
    whole: Sequence[float] = [use.launched.weigh(one.weight) for one in use.judged]
    return use.launched.weigh(weight) / sum(whole) if sum(whole) else 0.0


def _percent(use: Use, weight: Weight) -> str:
    share = 100 * _share(use, weight)
    return f"{share:.0f} %" if share >= 10 or share == 0 else f"{share:.1f} %"


def _milliseconds(microseconds: float) -> str:
    return f"{microseconds / 1000:,.1f} ms" if microseconds >= 100 else f"{microseconds:,.1f} us"


_HEADS = ("kernel", "count", "waits", "on", "waited for by", "behind")
_MOST_WAITS = 8  # rows
_NEXT_TO_NOTHING = 0.02  # of a step
_IDLE = 0.15  # of a step, in which the GPU waits for the host: other work would wait without the profiler
_SHOWN_US = 1.0  # the last digit of a time
_HOW = (
    "torch.profiler records waits with enable_cuda_sync_events, and with CUDA up to 12.8 what they are for; nsys "
    "records both with --trace=cuda."
)


def waiting_screen(found: Sequence[Found]) -> Iterator[Part]:
    """Return the screen of the process that has most to gain."""
    processes = [process for one in found for process in one.processes]
    untold = list(dict.fromkeys(sentence for one in found for sentence in one.untold))
    worst = max(processes, key=lambda process: (process.most_us, process.waited_us), default=None)
    notes: list[Part] = []
    if worst is None:
        notes.append(Prose(f"Whether work waited behind other streams is not told: {'; '.join(untold)}."))
        return iter(notes)
    rest = len(processes) - 1
    if rest:
        notes.append(Prose(f"This is process {worst.process} of {trace_name(worst.path)}; --json has {rest:,} more."))
    if untold:
        notes.append(Prose(f"The trace does not tell all: {'; '.join(untold)}. {_HOW}"))
    return apart(_process(worst, bool(untold)), notes)


def _process(one: Waiting, partly: bool) -> Iterator[Part]:
    step = "a step" if one.steps else "in the whole trace"
    if one.waited_us > _NEXT_TO_NOTHING * one.span_us:
        yield from _inversions(one, step)
    elif one.inversions:
        yield Prose(
            "No priority inversion to speak of: what something waited for stood behind blocks of other streams for "
            f"{_ms(one.waited_us)} of {_ms(one.span_us)} {step}."
        )
    else:
        seen = "No priority inversion is seen" if partly else "No priority inversion"
        yield Prose(f"{seen}: nothing that something waited for stood behind blocks of another stream.")
    for major in one.major:
        yield Prose(
            f"Work on stream {major.stream} waited, too ({_ms(major.waited_us)} {step}). It has "
            f"{_of_step(major.share)} of the computation of GPU {major.device}, so raising it may cost time."
        )
    if one.one_wave_us > _NEXT_TO_NOTHING * one.span_us:
        yield Prose(
            f"For {_ms(one.one_wave_us)} {step}, work waited behind kernels whose blocks are all resident at once: no "
            "priority shortens that."
        )
    if one.unclaimed_us > _NEXT_TO_NOTHING * one.span_us:
        why = "the trace does not say whether anything waited for it" if partly else "nothing waited for it"
        yield Prose(f"For {_ms(one.unclaimed_us)} {step}, other work stood behind other streams; {why}.")
    if one.idle_us > _IDLE * one.span_us:
        yield Prose(
            f"For {_ms(one.idle_us)} {step} ({_of_step(one.idle_us / one.span_us)}), the GPU had nothing to do: the "
            "host launched too late, perhaps only under the profiler. Without it, other work may wait, and for longer."
        )


def _inversions(one: Waiting, step: str) -> Iterator[Part]:
    where = f"on average of {plural(one.count, 'step')}" if one.steps else "over the whole trace"
    # Times of work that waits at the same time add up to more than the time in which any of it waited.
    overlap = sum(found.waited_us for found in one.inversions) > one.waited_us + 0.5 * _SHOWN_US
    yield Prose(
        f"Priority inversions ({where}): in {_ms(one.span_us)}, work that something waited for stood ready behind "
        f"blocks of another stream for {_ms(one.waited_us)}{' (the waits below overlap)' * overlap}."
    )
    named = [found for found in one.inversions if found.waited_us > _NEXT_TO_NOTHING * one.waited_us]
    rows = [
        (
            found.kernel if found.kernel == COPY else readable(driver_name(found.kernel)),
            f"{found.count:.1f}",
            f"{'at least ' if found.at_least else ''}{_ms(found.waited_us)}",
            _listed(found.streams),
            _listed(found.waiters),
            f"{readable(driver_name(found.behind))} on {_listed(found.behind_streams)}",
        )
        for found in named
    ]
    shown, more = cut(rows, _MOST_WAITS)
    yield Table(_HEADS, shown, (0, 3, 4, 5), above=True)
    if more:
        yield Prose(f"... and {more:,} more (--json lists all)")
    streams = list(dict.fromkeys(stream for found in named for stream in found.streams))
    what = f"Raising {'stream' if len(streams) == 1 else 'streams'} {_listed(streams)}"
    limit = (
        f"the kernels on the stream in front need the other {_ms(one.busy_us)}"
        if one.span_us - one.busy_us <= one.most_us + 0.001
        else "nothing waited for it any longer"
    )
    yield Prose(f"{what} can save at most {_ms(one.most_us)} {step} ({_of_step(one.most_us / one.span_us)}): {limit}.")
    yield Prose(
        "The default policy raises what something waits for, if it carries at most half of the computation (`streams: "
        "{raise: auto}`): overlap-run --report DIR PROGRAM. To see what that gains, compare the program's own time; "
        "with NCCL or RCCL, also overlap report --compare."
    )


def _listed(words: Sequence[str]) -> str:
    """Return three of them, and how many more there are."""
    shown, more = cut(words, 3)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _of_step(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:,.3f} ms"


def _waiting_json(found: Sequence[Found]) -> list[dict[str, object]]:
    return [
        {
            "untold": list(one.untold),
            "processes": [
                {
                    name: round(value, 4) if isinstance(value, float) else value
                    for name, value in asdict(process).items()
                }
                for process in one.processes
            ],
        }
        for one in found
    ]
