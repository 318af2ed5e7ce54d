"""Everything that the traces say, as `--full` and the page print it."""

from __future__ import annotations

from collections.abc import Iterator

from pyshim.counts import counted
from pyshim.diagnosis.answer import every
from pyshim.diagnosis.look import TraceAnswer, member_name, names
from pyshim.diagnosis.parts import Part, Prose, Table, apart, cut
from pyshim.diagnosis.result import NEXT_TO_NOTHING, ProcessResult
from pyshim.diagnosis.verdict import why_not
from pyshim.diagnosis.words import a_step, kernel_name, listed, milliseconds, percent, size

_ROWS = 12  # of a table


def whole(answer: TraceAnswer) -> Iterator[Part]:
    """Yield the answer and everything else."""
    one = answer.worst
    groups = [every(answer), _collectives(one), _inversions(one)]
    return apart(*groups, map(Prose, sentences(answer)), _processes(answer), _ranks(answer), _table(one))


def sentences(answer: TraceAnswer) -> Iterator[str]:
    """Yield what else is to be known."""
    one = answer.worst
    step = a_step(one)
    yield from (f"{found}." for found in answer.verdicts[1:])
    if one.steps:
        yield f"Times are means of {counted(one.count, 'step')}, by the ranges {one.steps}."
    for time, which, name in ((one.setup_us, "first", "set-up"), (one.teardown_us, "last", "tear-down")):
        if time:
            yield f"The {which} {milliseconds(time)} are left out as {name}: next to no kernel ran."
    if len(one.gpus) > 1:
        yield f"Shares are means of {len(one.gpus)} GPUs; --json has each."
    for major in one.major:
        share = percent(major.share)
        too = ", too" if one.waited_us else ""
        yield (
            f"Work on stream {major.stream} waited{too} ({milliseconds(major.waited_us)} {step}). It has {share} of "
            "the computation, as the default counts it: raising it may cost time."
        )
    if one.minor and not one.raising:
        streams = listed(share.stream for share in one.minor)
        yield f"Streams {streams} carry too much of the computation together: the default raises none of them."
    for time, what in (
        (one.one_wave_us, "behind kernels whose blocks are all resident at once: no priority shortens that"),
        (one.raised_us, "although it has the greater priority already"),
        (one.unclaimed_us, "behind other streams, and nothing is known to have waited for it"),
    ):
        if time > NEXT_TO_NOTHING * one.span_us:
            yield f"For {milliseconds(time)} {step}, work waited {what}."
    if one.raising and one.saves_us <= NEXT_TO_NOTHING * one.span_us < one.waited_us:
        yield f"Raising would save next to nothing ({milliseconds(one.saves_us, one.span_us)} {step}): {why_not(one)}."
    if one.still_us > NEXT_TO_NOTHING * one.span_us:
        yield f"Raised, work would still wait {milliseconds(one.still_us)} {step}, until blocks in front of it end."
    if one.moved_us > NEXT_TO_NOTHING * one.span_us:
        yield (
            f"Of what raised work would begin earlier, {milliseconds(one.moved_us)} {step} save nothing: kernels that "
            "fill the GPU, or the streams in front, take that time, before or after."
        )
    yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in one.untold)
    yield from answer.notes


def _collectives(one: ProcessResult) -> Iterator[Part]:
    rows = [
        (
            kind.name,
            f"{kind.count:,.1f}",
            "?" if kind.bytes is None else size(kind.bytes),
            milliseconds(kind.us),
            milliseconds(kind.exposed_us),
            ", ".join(f"{cause} {milliseconds(time)}" for cause, time in kind.causes.items() if time >= 0.5) or "-",
        )
        for kind in one.kinds
    ]
    shown, more = cut(rows, _ROWS)
    if shown:
        yield Table(("collective", "count", "size", "time", "exposed", "because"), shown, (0, 5))
    if more:
        yield Prose(f"... and {more:,} more (--json lists all)")


def _inversions(one: ProcessResult) -> Iterator[Part]:
    rows = [
        (
            kernel_name(found.kernel),
            f"{found.count:.1f}",
            f"{'at least ' if found.at_least else ''}{milliseconds(found.waited_us)}",
            listed(found.streams),
            listed(found.waiters),
            f"{kernel_name(found.behind)} on {listed(found.behind_streams)}",
        )
        for found in one.inversions
    ]
    shown, more = cut(rows, _ROWS)
    if shown:
        yield Table(("kernel", "count", "waits", "on", "waited for by", "behind"), shown, (0, 3, 4, 5), above=True)
    if more:
        yield Prose(f"... and {more:,} more (--json lists all)")
    together = sum(found.waited_us for found in one.inversions)
    if together > one.waited_us + 0.5:  # the last digit of the table
        yield Prose(
            f"These waits add up to {milliseconds(together)}. Some overlap in time: for {milliseconds(one.waited_us)} "
            f"{a_step(one)} there is at least one."
        )


def _processes(answer: TraceAnswer) -> Iterator[Part]:
    """Yield a row for each rank."""
    rows = [
        (
            name,
            milliseconds(one.span_us),
            milliseconds(one.communication_us),
            milliseconds(one.shares.exposed_us),
            milliseconds(one.shares.copies_us),
            milliseconds(one.shares.idle_us),
            milliseconds(one.saves_us),
        )
        for name, one in zip(names(answer.processes), answer.processes)
    ]
    if len(rows) > 1:
        yield Table(("trace", "step", "communication", "exposed", "copies", "idle", "saves"), rows)


def _ranks(answer: TraceAnswer) -> Iterator[Part]:
    """Yield what the shared collectives say of each GPU."""
    if answer.ranks is None:
        return
    rows = [
        (
            member_name(row.member, answer.processes),
            f"{row.collectives:,}",
            milliseconds(row.waiting_us),
            f"{row.last:,}",
            milliseconds(row.caused_us),
            milliseconds(row.offset_us),
        )
        for row in answer.ranks.rows
    ]
    yield Table(("rank", "shared collectives", "waits for others", "last", "others wait for it", "clock ahead"), rows)
    if answer.ranks.unmatched:
        yield Prose(f"The collectives of {answer.ranks.unmatched} GPUs could not be found on others.")


def _table(one: ProcessResult) -> Iterator[Part]:
    """Yield what kernels take: the numbers that `overlap policy room` asks for."""
    time = sum(kernel.us for kernel in one.kernels) or 1.0
    rows = [
        (
            kernel_name(kernel.kernel),
            f"{kernel.launches:,}",
            percent(kernel.us / time),
            *("?" if number is None else f"{number:,}" for number in (kernel.threads, kernel.registers)),
            "?" if kernel.shared_memory is None else f"{kernel.shared_memory:,}",
        )
        for kernel in one.kernels
    ]
    shown, more = cut(rows, _ROWS)
    if shown:
        yield Table(("kernel", "count", "time", "threads", "registers", "shared"), shown, (0,), above=True)
    if more:
        yield Prose(f"... and {more:,} more (--json lists all)")
