"""What every GPU in a trace did, step by step; the trace itself is forgotten."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyshim.errors import OverlapError
from pyshim.traces.columns import Columns, Kind, Ran, Shape
from pyshim.traces.opened import open_trace
from pyshim.traces.overlap import Times, measure
from pyshim.traces.record import Span, Trace, TracedLaunch
from pyshim.traces.steps import Finder, Steps, of_process

_NO_KERNELS = "there are no kernels on a GPU in"


@dataclass(frozen=True)
class Measured:
    """One GPU of one process. steps: None where the trace has none: then the whole is one."""

    gpu: str
    steps: Steps | None
    times: tuple[Times, ...]  # of each step


@dataclass(frozen=True)
class Side:
    """What the files of one run have.

    ranks: by rank where all files say theirs, else by the order of their names; then by process and GPU inside the
    file. A rank that left several files has the steps of all."""

    kinds: tuple[str, ...]
    ranks: dict[tuple[int, int, int], list[Measured]]
    warnings: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        return "simulated" in self.kinds


def read_side(path: str) -> Side:
    """Read a trace, or a folder of the ranks' traces. Raises OverlapError where nothing ran on a GPU in any of them."""
    traces: list[tuple[Trace, dict[tuple[int, int], Measured]]] = []
    warnings: list[str] = []
    for file in _files(path):
        try:
            trace = open_trace(file)
            found = _measure(trace)
        except OverlapError as error:
            if file == path:
                raise
            if _looks_like_a_trace(file):
                warnings.append(f"{error.sentence}: it was passed over")
            continue
        warnings += trace.warnings
        if found:
            traces.append((trace, found))
        elif _looks_like_a_trace(file):
            warnings.append(f"{_NO_KERNELS} {file}")
    if not traces:
        hint = "recorded with activities=[CPU]? torch.profiler needs ProfilerActivity.CUDA for them, nsys --trace=cuda"
        raise OverlapError(f"{_NO_KERNELS} {path}", hint)
    by_rank = all(trace.rank is not None for trace, _ in traces)
    ranks: defaultdict[tuple[int, int, int], list[Measured]] = defaultdict(list)
    for index, (trace, found) in enumerate(traces):
        for place, measured in found.items():
            ranks[(trace.rank if by_rank and trace.rank is not None else index, *place)].append(measured)
    kinds = tuple(sorted({trace.kind for trace, _ in traces}))
    return Side(kinds, dict(sorted(ranks.items())), tuple(warnings))


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    files = [str(file) for file in Path(path).iterdir() if file.is_file() and not file.name.startswith(".")]
    return sorted(
        files,
        key=lambda name: [(len(part), part) if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)],
    )


def _looks_like_a_trace(file: str) -> bool:
    return file.endswith((".json", ".gz", ".sqlite", ".nsys-rep"))


def _measure(trace: Trace) -> dict[tuple[int, int], Measured]:
    """By process (which of those in the file) and device."""
    gpus: dict[tuple[int | None, int], Columns] = {}
    finders: defaultdict[int | None, Finder] = defaultdict(Finder)
    shapes: dict[tuple[str, bool, int | None], Shape] = {}
    copies = Shape("", Kind.MEMORY, None)
    for record in trace.records():
        if isinstance(record, Span):
            finders[record.process].add(record)
            continue
        place = record.process, record.device
        columns = gpus.get(place)
        if columns is None:
            columns = gpus[place] = Columns()
        shape = copies
        if isinstance(record, TracedLaunch):
            key = record.kernel, record.communication, record.blocks
            shape = shapes.setdefault(key, Shape(record.kernel, Kind(record.communication), record.blocks))
        columns.add(shape, record.stream, record.start_us, record.end_us)
    gpus = {
        place: columns
        for place, columns in gpus.items()
        if any(shape.kind is not Kind.MEMORY for shape in columns.shapes)
    }
    processes = sorted({process for process, _ in gpus}, key=lambda process: process or 0)
    found: dict[tuple[int, int], Measured] = {}
    for (process, device), columns in sorted(gpus.items(), key=lambda item: (item[0][0] or 0, item[0][1])):
        steps = _inside(of_process(trace, finders, process), columns)
        bounds = steps.whole if steps else columns.span()
        times = tuple(measure(columns, bounds))
        found[processes.index(process), device] = Measured(trace.gpus.get(device, ""), steps, times)
    return found


def _inside(steps: Steps | None, columns: Columns) -> Steps | None:
    """Return the steps if something ran in them; of steps in the host's time, something must have run in every one."""
    if steps and not steps.on_gpu:
        steps = _busy(steps, columns)
    first, last = columns.span()
    return steps if steps and steps.bounds[0] < last and first < steps.bounds[-1] else None


def _busy(steps: Steps, columns: Columns) -> Steps | None:
    """Drop the steps at both ends in which nothing ran: they were before or after what the trace has of the GPU.

    None if a step between others is empty: then the steps are not the GPU's."""
    busy = sorted({step for ran in columns.in_order() for step in _touched(steps.bounds, ran)})
    if not busy or busy[-1] - busy[0] >= len(busy):
        return None
    return Steps(steps.source, False, steps.bounds[busy[0] : busy[-1] + 2])


def _touched(bounds: Sequence[float], ran: Ran) -> range:
    """Return the steps in which the work ran."""
    first, last = bisect_right(bounds, ran.start_us) - 1, bisect_left(bounds, ran.end_us)
    return range(max(0, first), min(last, len(bounds) - 1))
