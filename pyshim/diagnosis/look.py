"""Read all traces that are named, and put together what they say: ranks, verdicts, the process to look at."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyshim import _native
from pyshim.diagnosis.exposed import CollectiveRun, by_name
from pyshim.diagnosis.find import find
from pyshim.diagnosis.parts import cut
from pyshim.diagnosis.related import recordings, run_of, without_copies
from pyshim.diagnosis.result import ProcessResult, TraceResult
from pyshim.diagnosis.verdict import Late, Verdict, is_worth, verdicts
from pyshim.errors import USAGE, OverlapError
from pyshim.profiles import is_trace
from pyshim.profiles.folder import files
from pyshim.start.folder import is_report, search_of

if TYPE_CHECKING:
    from pyshim.diagnosis.ranks import Member, Ranks

_RECORD = (
    "torch.profiler records a trace with activities=[ProfilerActivity.CUDA, ...], nsys with --trace=cuda; "
    "overlap explain demo-stencil looks at one that ships"
)
SHIPPED = ("demo-stencil",)  # recorded on two H200
_LIKENESS = 0.8  # of a missing file's name, from 0 to 1
_REASONS = 3  # that are said
_TRACES = (".json", ".gz", ".sqlite", ".nsys-rep", ".pb")


class TraceAnswer(NamedTuple):
    """What all traces say together."""

    source: str
    found: Sequence[TraceResult]
    processes: Sequence[ProcessResult]  # those of all traces
    worst: ProcessResult  # the one to look at: most to gain, else most exposed
    verdicts: Sequence[Verdict]  # about that one; the first leads
    ranks: Ranks | None  # if collectives are found in several processes, or on several GPUs
    notes: Sequence[str]
    peers: int  # how many processes are ranks of the run of that one, itself included

    @property
    def trace(self) -> TraceResult:
        """The one with the worst process."""
        return next(one for one in self.found if one.trace.path == self.worst.path)

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
        return names(self.processes)[self.processes.index(self.worst)] if len(self.processes) > 1 else ""


def names(processes: Sequence[ProcessResult]) -> list[str]:
    """Return how each process is called: by its rank, or its file."""
    ranks = [one.rank for one in processes]
    paths = [one.path for one in processes]
    folder = os.path.commonpath([os.path.dirname(path) for path in paths]) if len({*paths}) > 1 else ""
    found = []
    for one in processes:
        is_rank = one.rank is not None and ranks.count(one.rank) == 1
        name = f"rank {one.rank}" if is_rank else os.path.relpath(one.path, folder) if folder else Path(one.path).name
        found.append(f"{name}, process {one.process}" if paths.count(one.path) > 1 and not is_rank else name)
    return found


def member_name(member: Member, processes: Sequence[ProcessResult]) -> str:
    """Return how a GPU of a process is called among the ranks: 3, or GPU 1."""
    number, device = member
    one = processes[number]
    name = names(processes)[number].removeprefix("rank ")
    if len(one.devices) == 1:
        return name
    return f"GPU {device}" if len(processes) == 1 else f"{name}, GPU {device}"


def rank_name(name: str) -> str:
    """Return the name of a member with its noun."""
    return f"rank {name}" if name.isdigit() else name


def look(paths: Sequence[str], steps: str | None = None) -> TraceAnswer:
    """Read traces, or folders of the ranks' traces, each once. steps: to look at alone. Raises OverlapError."""
    found: list[TraceResult] = []
    notes: list[str] = []
    hints: list[str] = []  # of what is passed over
    for path in paths:
        found += _read(path, steps, notes, hints)
    processes = without_copies([process for one in found for process in one.processes], notes)
    source = paths[0] if len(paths) == 1 else f"{len(paths)} traces"
    if not processes:
        sentence = f"{source}: no kernel of a GPU in it" if found else f"{source} holds no trace"
        reports = [path for path in paths if is_report(path)]
        if reports:
            sentence = f"{reports[0]} is a report of overlap-run, and holds no trace"
            raise OverlapError(sentence, f"overlap report {shlex.quote(reports[0])}", USAGE)
        searches = [folder for folder in map(search_of, paths) if folder]
        if searches:
            sentence = f"{searches[0]} is a search of overlap tune, and holds no trace"
            raise OverlapError(sentence, f"its answer: overlap tune --resume {shlex.quote(searches[0])}", USAGE)
        raise _none(sentence, found, notes, hints)
    traces = {one.trace.path: one.trace for one in found}
    why: list[str] = []
    numbers = recordings(processes, traces, why)
    ranks, processes = _compared(processes, numbers)
    # Where a file is torn, what its last work was waited for is not in it.
    torn = {one.trace.path for one in found if one.trace.torn}
    known = [one for one in processes if not one.unread] or processes
    worst = max([one for one in known if one.path not in torn] or known, key=_to_gain)
    found = [replace(one, processes=tuple(p for p in processes if p.path == one.trace.path)) for one in found]
    late = None
    if ranks and ranks.late():
        late = Late(ranks, tuple(member_name(row.member, processes) for row in ranks.late()))
    at = processes.index(worst)
    peers = run_of(processes, traces, at, ranks.groups if ranks else (), numbers, why)
    if why:
        shown, more = cut(why, _REASONS)
        reasons = f"{', '.join(shown)}{f' and {more} more' if more else ''}"
        about = f"this is about {names(processes)[at]}, and not all of the traces are of ranks of its run"
        notes.append(f"{about}: {reasons}; --full has a row for each")
    notes = list(dict.fromkeys(notes))
    return TraceAnswer(source, found, processes, worst, verdicts(worst, late), ranks, notes, len(peers))


def _none(sentence: str, found: Sequence[TraceResult], notes: Sequence[str], hints: Sequence[str]) -> OverlapError:
    """Return the error where nothing is left to look at: why, and what to do about it."""
    shown, more = cut(list(dict.fromkeys(notes)), _REASONS)
    own = sentence.partition(": ")[0]
    shown = [said.removeprefix(f"{own}: ") for said in shown]
    why = "; ".join([*shown, *([f"and {more:,} more"] if more else [])])
    traces = [one.trace for one in found]
    hint = "; ".join(list(dict.fromkeys(hints))[:_REASONS]) or _RECORD
    if any(trace.left_out for trace in traces):
        hint = "record the trace again, or copy it again if a copy was changed"
    missing = [said for trace in traces for said in trace.missing if said in notes][:_REASONS]
    if missing:  # these say how to record it
        return OverlapError(sentence, "; ".join(missing), USAGE)
    return OverlapError(f"{sentence}: {why}" if why else sentence, hint, USAGE)


def _to_gain(one: ProcessResult) -> tuple[float, ...]:
    span = one.span_us or 1.0
    gain = (one.saves_us / span, one.waited_us / span) if is_worth(one) else (0.0, 0.0)
    return (*gain, one.shares.exposed_us / span, one.shares.idle_us / span)


def _compared(processes: Sequence[ProcessResult], numbers: Sequence[int]) -> tuple[Ranks | None, list[ProcessResult]]:
    """Compare all GPUs by their collectives, and say of each process what the others tell about its own.

    numbers: of the recording of each; those of other numbers are not compared."""
    members: dict[Member, list[CollectiveRun]] = {}
    for number, one in enumerate(processes):
        for run in one.collectives:
            members.setdefault((number, run.device), []).append(run)
    if len(members) < 2:
        return None, list(processes)
    from pyshim.diagnosis.ranks import compare

    ranks = compare(members, numbers)
    if ranks is None:
        return None, list(processes)
    times = ranks.transfer_us
    return ranks, [
        replace(one, kinds=by_name(((run, times.get(id(run))) for run in one.collectives), one.count, len(one.devices)))
        for one in processes
    ]


# ---- files ----


def _read(path: str, steps: str | None, notes: list[str], hints: list[str]) -> Iterator[TraceResult]:
    """Yield what a file says, or those of a folder and its subfolders; note what is passed over, and its hint."""
    if os.path.isdir(path):
        passed_over: list[OverlapError] = []
        for file in files(path, passed_over):
            yield from _of_folder(file, steps, notes, passed_over)
        notes += (f"{error.sentence}: it was passed over" for error in passed_over)
        hints += (error.hint for error in passed_over if error.hint)
        return
    shipped = _native.DEMO / f"{path}.json.gz"
    is_shipped = path in SHIPPED and not os.path.exists(path) and shipped.exists()
    try:
        one = find(str(shipped) if is_shipped else path, steps=steps)
    except OverlapError as error:
        error.status = USAGE
        if not error.hint and not os.path.lexists(path):
            error.hint = _nearby(path) or _RECORD
        raise
    _note(one, notes)
    yield one


def _nearby(path: str) -> str:
    """Return a hint that names a trace whose name is close to that of a file that is missing, or nothing."""
    from pyshim.policy.finding import closest  # which an answer does not need
    from pyshim.start.driver import names as listed

    if os.path.lexists(path.rstrip("/")):
        return f"a file has no / at its end: overlap explain {shlex.quote(path.rstrip('/'))}"
    around, name = os.path.split(path.rstrip("/"))
    traces = [one for one in listed(around or os.curdir) if one.endswith(_TRACES)]
    close = closest(name, [*traces, *(SHIPPED if not around else ())], _LIKENESS)
    return f"did you mean {os.path.join(around, close)}?" if close else ""


def _of_folder(
    file: str, steps: str | None, notes: list[str], passed_over: list[OverlapError]
) -> Iterator[TraceResult]:
    try:
        one = find(file, steps=steps)
    except OverlapError as error:
        if file.endswith(_TRACES):
            passed_over.append(error)
        return
    if not one.processes:
        if not is_trace(file):  # other JSON, such as tune.jsonl or the report of a run
            return
        notes.append(f"{file}: no kernel of a GPU in it")
    _note(one, notes)
    yield one


def _note(one: TraceResult, notes: list[str]) -> None:
    notes += one.trace.warnings
    if one.trace.kind == "simulated" and len(one.processes) > 1:
        added = "SIMGPU_TRACE adds to a file that is there; this is about one of them"
        notes.append(f"{one.trace.path} holds {len(one.processes)} processes: {added}")
