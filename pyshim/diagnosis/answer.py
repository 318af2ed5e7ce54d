"""The answer about traces: how much waits, behind what, which streams to raise, and about how much that saves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from pyshim import _native
from pyshim.diagnosis.find import find
from pyshim.diagnosis.parts import Part, Prose, Table, UnbrokenLine, apart, cut, plural
from pyshim.diagnosis.queues import COMMUNICATION, HOST
from pyshim.diagnosis.result import (
    COPY,
    LEGACY,
    NEXT_TO_NOTHING,
    NO_CALLS,
    TOGETHER,
    ProcessResult,
    Share,
    TraceResult,
    together,
)
from pyshim.errors import USAGE, OverlapError
from pyshim.profiles.folder import files
from pyshim.profiles.kernel_names import readable

SHIPPED = ("demo-stencil",)  # recorded on two H200
# The estimates for bare traces of programs, against the most that a priority gained in them, in points of the time of a
# step: docs/data/estimates.csv.
PROGRAMS, MEDIAN, LARGEST = 17, 3.3, 39
_IDLE = 0.15  # of a step, in which the GPU waits for the host: other work would wait without the profiler
_ROWS, _NAME = 12, 24  # of a table; characters of a kernel's name in a line
_INDENT = " " * 8
_RECORD = "torch.profiler records it with enable_cuda_sync_events=True, nsys with --trace=cuda"
_CUDA = (
    "cudaDeviceGetStreamPriorityRange(&least, &greatest);  // greatest is the smaller number",
    "cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest);",
)
_HIP = tuple(line.replace("cuda", "hip") for line in _CUDA)
_TORCH = "stream = torch.cuda.Stream(priority=-1)  # the smaller number is the greater priority"
_TORCH_WORK = "with torch.cuda.stream(stream): ...  # the work that waits"
_TORCH_NCCL = "TORCH_NCCL_HIGH_PRIORITY=1 python ...  # for the streams of NCCL"


class TraceAnswer(NamedTuple):
    """What all traces say together."""

    source: str
    found: Sequence[TraceResult]
    worst: ProcessResult  # the process that has most to gain
    notes: Sequence[str]

    @property
    def trace(self) -> TraceResult:
        """The one with the worst process."""
        return next(one for one in self.found if self.worst in one.processes)

    @property
    def processes(self) -> list[ProcessResult]:
        """Those of all traces."""
        return [process for one in self.found for process in one.processes]

    @property
    def untold(self) -> list[str]:
        """What the traces do not say."""
        return list(dict.fromkeys(sentence for one in self.found for sentence in one.untold))

    @property
    def simulated(self) -> bool:
        """Whether times are of a simulated GPU."""
        return any(one.trace.kind == "simulated" for one in self.found)

    @property
    def name(self) -> str:
        """Of the worst process, if there are several."""
        same_file = [process for process in self.processes if process.path == self.worst.path]
        if len(self.processes) == 1:
            return ""
        ranks = [process.rank for process in self.processes]
        is_rank = self.worst.rank is not None and ranks.count(self.worst.rank) == 1
        name = f"rank {self.worst.rank}" if is_rank else Path(self.worst.path).name
        return f"{name}, process {self.worst.process}" if len(same_file) > 1 else name


def look(paths: Sequence[str], steps: str | None = None) -> TraceAnswer:
    """Read traces, or folders of the ranks' traces, each once. steps: to look at alone. Raises OverlapError."""
    found: list[TraceResult] = []
    notes: list[str] = []
    for path in paths:
        for file in _files(path):
            try:
                one = find(file, steps=steps)
            except OverlapError as error:
                if file == path:
                    error.status = USAGE
                    raise
                if file.endswith((".json", ".gz", ".sqlite", ".nsys-rep")):
                    notes.append(f"{error.sentence}: it was passed over")
                continue
            notes += one.trace.warnings
            if not one.processes and file != path:
                notes.append(f"{file}: no kernel of a GPU in it")
            if one.trace.kind == "simulated" and len(one.processes) > 1:
                added = "SIMGPU_TRACE adds to a file that is there; this is about one of them"
                notes.append(f"{file} holds {len(one.processes)} processes: {added}")
            found.append(one)
    processes = [process for one in found for process in one.processes]
    source = paths[0] if len(paths) == 1 else f"{len(paths)} traces"
    if not processes:
        hint = "torch.profiler records them with activities=[ProfilerActivity.CUDA, ...], nsys with --trace=cuda"
        sentence = f"{source}: no kernel of a GPU in it" if found else f"{source} holds no trace"
        raise OverlapError(sentence, "; ".join(notes) or hint, USAGE)
    # Where a file is torn, what its last work was waited for is not in it.
    sound = [process for one in found if not one.trace.torn for process in one.processes]
    worst = max(
        sound or processes, key=lambda one: (one.saves_us / (one.span_us or 1), one.waited_us / (one.span_us or 1))
    )
    return TraceAnswer(source, found, worst, notes)


def _files(path: str) -> list[str]:
    """Return the files of a folder, and of those in it; else the file, or the trace that ships."""
    if not os.path.isdir(path):
        shipped = _native.DEMO / f"{path}.json.gz"
        return [str(shipped) if path in SHIPPED and not os.path.exists(path) and shipped.exists() else path]
    return files(path)


# ---- six lines ----


def screen(answer: TraceAnswer) -> Iterator[Part]:
    """Yield the answer: six lines, and one more for each priority that does not do what it says."""
    one = answer.worst
    inverted = one.waited_us > NEXT_TO_NOTHING * one.span_us
    yield _line("waits", _waits(answer, inverted))
    if inverted:
        yield _line("behind", _behind(one))
        yield _line("raise", _raise(one, _is_amd(answer)))
        if one.raising:
            yield _line("saves", _saves(one) + _simulated(answer))
            for index, line in enumerate(_code(answer) if _is_worth(one) else ()):
                yield _line("" if index else "write", line)
    else:
        yield from _otherwise(answer)
    for fault in dict.fromkeys(fault for process in answer.processes for fault in process.faults):
        yield Prose(fault, "fault", len(_INDENT))


def _line(label: str, text: str) -> UnbrokenLine:
    return UnbrokenLine(f"{label:<{len(_INDENT)}}{text}")


def _waits(answer: TraceAnswer, inverted: bool) -> str:
    one = answer.worst
    name = f"{answer.name}: " if answer.name else ""
    step = f"of {_of(one)}"
    if not one.told:
        return f"{name}not known: {NO_CALLS}"
    if inverted:
        least = "at least " if any(found.at_least for found in one.inversions) else ""
        waiters = {waiter for found in one.inversions for waiter in found.waiters}
        share = _percent(one.waited_us / one.span_us)
        waited = f"{name}{least}{_number(one.waited_us)} {step} ({share})"
        return f"{waited}: {_who(waiters)} for work that stands ready{_simulated(answer)}"
    if _is_doubtful(answer):
        return f"{name}{_number(one.unclaimed_us)} {step}; the trace does not say whether anything waits for that work"
    little = f"next to nothing ({_number(one.waited_us)} {step})" if one.inversions else "nothing"
    return f"{name}{little} that other work waits for stands ready behind another stream"


def _who(waiters: set[str]) -> str:
    """Return who waits, with the verb."""
    words = [word for word in (HOST, COMMUNICATION) if word in waiters]
    if len(waiters) > len(words):
        words.append("other streams")
    return f"{' and '.join(words)} {'waits' if words in ([HOST], [COMMUNICATION]) else 'wait'}"


def _is_doubtful(answer: TraceAnswer) -> bool:
    """Whether work waited, and the trace does not say all about what for."""
    return bool(answer.trace.untold) and answer.worst.unclaimed_us > NEXT_TO_NOTHING * answer.worst.span_us


def _behind(one: ProcessResult) -> str:
    first = one.inversions[0]
    more = f", and {len(one.inversions) - 1} more pairs" if len(one.inversions) > 2 else ""
    streams, behind = (
        _streams(dict.fromkeys(stream for found in one.inversions for stream in getattr(found, name)))
        for name in ("streams", "behind_streams")
    )
    waits = f"{kernel_name(first.kernel, _NAME)} on {streams}"
    return f"{kernel_name(first.behind, _NAME)} on {behind}; {waits} waits{more}"


def _raise(one: ProcessResult, amd: bool) -> str:
    streams = _streams(dict.fromkeys(share.stream for share in one.raising or one.minor))
    share = _percent(max(together(one.raising or one.minor).values()))
    if not one.raising:
        return f"none: {streams} carry {share} of the computation together, and at most {_percent(TOGETHER)} is raised"
    if any(raised.stream == LEGACY for raised in one.raising):
        how = f"{LEGACY} is the default stream, so put this work on another one"
    elif amd:
        how = "overlap-run cannot, because HIP takes a priority only when a stream is created"
    elif one.has_priorities:
        how = "overlap-run does not if the program itself set the priorities in the trace"
    elif not any(raised.share for raised in one.raising) and {found.kernel for found in one.inversions} == {COPY}:
        how = "overlap-run raises only streams that launch kernels, too"
    else:
        how = f"overlap-run does it by default ({share} of the computation)"
    return f"{streams}: {how}"


def _is_worth(one: ProcessResult) -> bool:
    return one.saves_us > NEXT_TO_NOTHING * one.span_us


def _is_busy(one: ProcessResult) -> bool:
    """Whether the work of the streams in front bounds the estimate."""
    return one.busy_us > 0 and one.span_us - one.busy_us <= one.saves_us + 0.001


def _saves(one: ProcessResult) -> str:
    if not _is_worth(one):
        why = "nothing waits for it that long"
        if _is_busy(one):
            why = "the kernels in front need that time"
        elif one.saves_us + one.still_us > NEXT_TO_NOTHING * one.span_us:
            why = "raised, it still waits until blocks in front end"
        return f"next to nothing ({_number(one.saves_us)} of {_of(one)}): {why}"
    share = _percent(one.saves_us / one.span_us)
    error = f"errors of 0.2.0: median {MEDIAN} points, worst {LARGEST}"
    return f"about {_number(one.saves_us)} of {_of(one)} ({share}), an estimate ({error})"


def _code(answer: TraceAnswer) -> Sequence[str]:
    """Return the lines that an author would write."""
    one = answer.worst
    if answer.trace.trace.python:
        code: tuple[str, ...] = _TORCH, _TORCH_NCCL if one.communication_us else _TORCH_WORK
        lower = "front = torch.cuda.Stream(priority=0)  #"
    else:
        code = _HIP if _is_amd(answer) else _CUDA
        lower = code[1].replace("&stream", "&front").replace("greatest", "least") + "  //"
    # The stream in front may have the greatest priority itself, or a greater one than PyTorch's -1.
    front = dict.fromkeys(stream for found in one.inversions for stream in found.behind_streams if stream != LEGACY)
    return (*code, f"{lower} for {_streams(front)}, in front") if one.has_priorities and front else code


def _is_amd(answer: TraceAnswer) -> bool:
    return any(gpu.name.startswith("AMD ") for gpu in answer.trace.trace.gpus.values())


def _otherwise(answer: TraceAnswer) -> Iterator[Part]:
    """Yield why nothing is to be raised, and what else is to be gained."""
    one = answer.worst
    if (not one.told or _is_doubtful(answer)) and not answer.simulated:
        yield _line("record", _RECORD)
    for major in one.major[:1]:
        yield _line("large", f"stream {major.stream} waits {milliseconds(major.waited_us)}, but {_large(major)}")
    if one.communication_us:
        yield _line("hidden", _hidden(answer))


def _large(major: Share) -> str:
    return f"has {_percent(major.share)} of the computation: raising it may cost time"


def _hidden(answer: TraceAnswer) -> str:
    one = answer.worst
    return (
        f"{_number(one.hidden_us)} of {milliseconds(one.communication_us)} of communication runs beside computation; "
        f"{_number(one.communication_us - one.hidden_us)} of {_of(one)} is exposed{_simulated(answer)}"
    )


def _simulated(answer: TraceAnswer) -> str:
    return " (simulated)" if answer.simulated else ""


# ---- the rest ----


def whole(answer: TraceAnswer) -> Iterator[Part]:
    """Yield the answer and everything else that the traces say."""
    one = answer.worst
    inverted = one.waited_us > NEXT_TO_NOTHING * one.span_us
    hidden = [_line("hidden", _hidden(answer))] if inverted and one.communication_us else []
    return apart(screen(answer), hidden, _inversions(one), map(Prose, sentences(answer)), _ranks(answer), _table(one))


def sentences(answer: TraceAnswer) -> Iterator[str]:
    """Yield what else is to be known."""
    one, step = answer.worst, "a step" if answer.worst.steps else "in all"
    if one.steps:
        yield f"Times are means of {plural(one.count, 'step')}, by the ranges {one.steps}."
    elif one.setup_us:
        yield f"The first {milliseconds(one.setup_us)} are left out as set-up: next to no kernel ran."
    for major in one.major:
        yield f"Work on stream {major.stream} waited, too ({milliseconds(major.waited_us)} {step}). It {_large(major)}."
    for time, what in (
        (one.one_wave_us, "behind kernels whose blocks are all resident at once: no priority shortens that"),
        (one.raised_us, "although it has the greater priority already"),
        (one.unclaimed_us, "behind other streams, and nothing is known to have waited for it"),
    ):
        if time > NEXT_TO_NOTHING * one.span_us:
            yield f"For {milliseconds(time)} {step}, work waited {what}."
    if one.still_us > NEXT_TO_NOTHING * one.span_us:
        yield f"Raised, work would still wait {milliseconds(one.still_us)} {step}, until blocks in front of it end."
    if one.idle_us > _IDLE * one.span_us:
        share = _percent(one.idle_us / one.span_us)
        yield (
            f"For {milliseconds(one.idle_us)} {step} ({share}), the GPU had nothing to do: the host launched too late, "
            "perhaps only under the profiler. Without it, other work may wait, and for longer."
        )
    if _is_busy(one):
        yield f"The kernels in front need {milliseconds(one.busy_us)} {step}, which raising cannot save."
    yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in answer.untold)
    yield from answer.notes


def _inversions(one: ProcessResult) -> Iterator[Part]:
    rows = [
        (
            kernel_name(found.kernel),
            f"{found.count:.1f}",
            f"{'at least ' if found.at_least else ''}{milliseconds(found.waited_us)}",
            _listed(found.streams),
            _listed(found.waiters),
            f"{kernel_name(found.behind)} on {_listed(found.behind_streams)}",
        )
        for found in one.inversions
    ]
    shown, more = cut(rows, _ROWS)
    if shown:
        yield Table(("kernel", "count", "waits", "on", "waited for by", "behind"), shown, (0, 3, 4, 5), above=True)
    if more:
        yield Prose(f"... and {more:,} more (--json lists all)")


def _ranks(answer: TraceAnswer) -> Iterator[Part]:
    rows = [
        (
            Path(one.path).name,
            "-" if one.rank is None else one.rank,
            milliseconds(one.span_us),
            milliseconds(one.waited_us) if one.told else "not known",
            milliseconds(one.saves_us),
        )
        for one in answer.processes
    ]
    if len(rows) > 1:
        yield Table(("trace", "rank", "step", "waits", "estimate"), rows)


def _table(one: ProcessResult) -> Iterator[Part]:
    """Yield what kernels take: the numbers that `overlap policy room` asks for."""
    whole = sum(kernel.us for kernel in one.kernels) or 1.0
    rows = [
        (
            kernel_name(kernel.kernel),
            f"{kernel.launches:,}",
            _percent(kernel.us / whole),
            *("?" if number is None else f"{number:,}" for number in (kernel.threads, kernel.registers)),
            "?" if kernel.shared_memory is None else f"{kernel.shared_memory:,}",
        )
        for kernel in one.kernels
    ]
    shown, more = cut(rows, _ROWS)
    yield Table(("kernel", "count", "time", "threads", "registers", "shared"), shown, (0,), above=True)
    if more:
        yield Prose(f"... and {more:,} more (--json lists all)")


def as_json(answer: TraceAnswer) -> dict[str, object]:
    """Return everything, as --json prints it."""
    return {
        "source": answer.source,
        "gpus": list(dict.fromkeys(gpu.name for one in answer.found for gpu in one.trace.gpus.values())),
        "simulated": answer.simulated,
        "worst": answer.processes.index(answer.worst),
        "processes": [_process_json(process) for process in answer.processes],
        "estimate": {"programs": PROGRAMS, "median_points": MEDIAN, "largest_points": LARGEST},
        "untold": answer.untold,
        "notes": list(answer.notes),
    }


def _process_json(process: ProcessResult) -> dict[str, object]:
    found = {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(process).items()}
    del found["picture"], found["pictured"]
    return found


# ---- words ----


def kernel_name(name: str, longest: int = 200) -> str:
    """Return the name of a kernel, or of copies, for people."""
    shown = name if name == COPY else readable(name)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def _streams(names: Sequence[str] | dict[str, None]) -> str:
    return f"{'stream' if len(names) == 1 else 'streams'} {_listed(list(names))}"


def _listed(words: Sequence[str]) -> str:
    """Return three of them, and how many more there are."""
    shown, more = cut(words, 3)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.1f} %"


def _number(microseconds: float) -> str:
    return f"{microseconds / 1000:,.3f}"


def _of(one: ProcessResult) -> str:
    return f"{milliseconds(one.span_us)} {'a step' if one.steps else 'in all'}"


def milliseconds(microseconds: float) -> str:
    """Return a time with its unit."""
    return f"{microseconds / 1000:,.3f} ms"
