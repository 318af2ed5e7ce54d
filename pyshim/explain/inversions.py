"""Priority inversions in traces, for people and as JSON: would raising help?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pyshim.explain.answer import Explainer
from pyshim.explain.binaries import readable
from pyshim.explain.launched import as_kernel, called
from pyshim.explain.parts import Part, Prose, Table, apart, cut, plural
from pyshim.traces.names import driver_name
from pyshim.traces.record import TracedLaunch
from pyshim.traces.waiting import COPY, Found, Inversion, Resident, Waiting, find

_HEADS = ("kernel", "count", "waits", "on", "waited for by", "behind")
_MOST = 8  # rows
_NEXT_TO_NOTHING = 0.02  # of a step
_SHOWN_US = 1.0  # the last digit of a time
_HOW = (
    "torch.profiler records waits with enable_cuda_sync_events, and with CUDA up to 12.8 what they are for; nsys "
    "records both with --trace=cuda."
)


def of_traces(paths: Sequence[str], gpu: str, explainer: Explainer) -> list[Found]:
    """gpu: whose limits say how many blocks of a kernel are resident. Raises OverlapError."""
    resident = _resident(gpu, explainer)
    return [find(path, resident) for path in paths]


def _resident(gpu: str, explainer: Explainer) -> Resident:
    known: dict[tuple[int, ...], int | None] = {}

    def blocks(launch: TracedLaunch) -> int | None:
        footprint = as_kernel(launch).footprint
        if footprint is None:
            return None
        if footprint not in known:
            known[footprint] = explainer.resident(gpu, footprint) or None  # 0: it cannot have been launched
        return known[footprint]

    return blocks


def screen(found: Sequence[Found]) -> Iterator[Part]:
    """Of several processes the one that has most to gain."""
    processes = [process for one in found for process in one.processes]
    untold = list(dict.fromkeys(sentence for one in found for sentence in one.untold))
    worst = max(processes, key=lambda process: (process.most_us, process.waited_us), default=None)
    notes: list[Part] = []
    if worst is None:
        notes.append(Prose(f"Whether work waited behind other streams is not told: {'; '.join(untold)}."))
        return iter(notes)
    rest = len(processes) - 1
    if rest:
        notes.append(Prose(f"This is process {worst.process} of {called(worst.path)}; --json has {rest:,} more."))
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
            f"{_percent(major.share)} of the computation of GPU {major.device}, so raising it gains nothing."
        )
    if one.one_wave_us > _NEXT_TO_NOTHING * one.span_us:
        yield Prose(
            f"For {_ms(one.one_wave_us)} {step}, work waited behind kernels whose blocks are all resident at once: no "
            "priority shortens that."
        )
    if one.unclaimed_us > _NEXT_TO_NOTHING * one.span_us:
        why = "the trace does not say whether anything waited for it" if partly else "nothing waited for it"
        yield Prose(f"For {_ms(one.unclaimed_us)} {step}, other work stood behind other streams; {why}.")


def _inversions(one: Waiting, step: str) -> Iterator[Part]:
    where = f"on average of {plural(one.count, 'step')}" if one.steps else "over the whole trace"
    # Times of work that waits at the same time add up to more than the time in which any of it waited.
    overlap = sum(found.waited_us for found in one.inversions) > one.waited_us + 0.5 * _SHOWN_US
    yield Prose(
        f"Priority inversions ({where}): in {_ms(one.span_us)}, work that something waited for stood ready behind "
        f"blocks of another stream for {_ms(one.waited_us)}{' (the waits below overlap)' * overlap}."
    )
    named = [found for found in one.inversions if found.waited_us > _NEXT_TO_NOTHING * one.waited_us]
    shown, more = cut([_row(found) for found in named], _MOST)
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
    yield Prose(f"{what} can save at most {_ms(one.most_us)} {step} ({_percent(one.most_us / one.span_us)}): {limit}.")
    yield Prose(
        f"The default policy raises {'it' if len(streams) == 1 else 'them'} (`critical: auto`): "
        "overlap-run --report DIR PROGRAM. To see what that gains, compare the program's own time; with NCCL or RCCL, "
        "also overlap report --compare."
    )


def _row(found: Inversion) -> tuple[str, ...]:
    least = "at least " if found.at_least else ""
    return (
        found.kernel if found.kernel == COPY else _name(found.kernel),
        f"{found.count:.1f}",
        f"{least}{_ms(found.waited_us)}",
        _listed(found.streams),
        _listed(found.waiters),
        f"{_name(found.behind)} on {_listed(found.behind_streams)}",
    )


def _name(kernel: str) -> str:
    return readable(driver_name(kernel))


def _listed(words: Sequence[str]) -> str:
    """Three, and how many more there are."""
    shown, more = cut(words, 3)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:,.3f} ms"


def as_json(found: Sequence[Found]) -> list[dict[str, Any]]:
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
