"""`overlap report FOLDER --jobs`: the programs of a cluster that would gain, as a table, JSON, CSV or metrics."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Any

from pyshim.errors import FINDINGS, OverlapError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyshim.report.jobs import Jobs, Program

_HEADS = (
    "user",
    "program",
    "runs",
    "ranks",
    "GPUs",
    "GPU hours",
    "launches",
    "streams",
    "of launches",
    "outcome",
    "last run",
)
_SHOWN = 30  # rows on a screen
_LABELS = 100  # programs in a file of metrics; the others are one
VERSION = 1  # of the object: what is there keeps its name and its meaning, and more may come


def run(directories: Sequence[str], as_json: bool, csv: bool, prometheus: str | None) -> int:
    from pyshim.cli import ui
    from pyshim.report.jobs import jobs

    with ui.progress(f"reading the runs in {', '.join(directories)}"):
        found = jobs(*directories)
    if prometheus is not None:
        _write(prometheus, found)
    if as_json:
        import json

        ui.answer(json.dumps(_json(found), indent=2))
    elif csv:
        ui.answer(_csv(found))
    else:
        _show(found, directories)
    for sentence in _skipped(found):
        ui.tell(f"warning: {sentence}")
    return 0 if found.pages else FINDINGS


def _skipped(found: Jobs) -> Iterator[str]:
    """Yield what did not count, why, and where: a line for each reason."""
    for reason, count in sorted(found.skipped.items()):
        what, _, why = reason.partition(": ")
        first = f"{'the first: ' if count > 1 else ''}{printable(found.skipped.first[reason])}"
        yield f"{_some(count, what)} skipped{f': {why}' if why else ''} ({first})"


def _some(count: int, what: str) -> str:
    """Return "1 folder" or "2 folders". what: of several, such as "folders too deep"."""
    return f"{count:,} {what if count > 1 else what.replace('pages', 'page').replace('folders', 'folder')}"


def _no_page(found: Jobs, directories: Sequence[str]) -> Iterator[str]:
    """Yield what to say where no page can be read: that depends on what was skipped."""
    named = ", ".join(directories)
    if found.denied:
        yield f"done: nothing: no page in {named} can be read: {_denied(found)}"
        yield "gain: not known"
        yield f"next: {_as_another(directories)}"
        return
    yield f"done: nothing: no page in {named} can be read"
    yield "gain: not known"
    if any("another version" in reason for reason in found.skipped):
        yield "next: read them with the overlap-run that wrote them: the warnings name the layout of each"
    elif any(reason.startswith("pages") for reason in found.skipped):
        yield "next: copy the pages again: the warnings say what is the matter with them, and name one for each reason"
    else:
        yield "next: let jobs write pages there, by a TaskProlog with OVERLAP_REPORT (docs/how-to/who-gains.md)"


def _denied(found: Jobs) -> str:
    from pyshim.report.jobs import user_name

    closed = " and ".join(_some(count, what) for what, count in found.denied.items())
    return f"{closed} closed to {user_name(os.geteuid())}"


def _as_another(directories: Sequence[str]) -> str:
    command = shlex.join(["overlap", "report", *directories, "--jobs"])
    if os.geteuid() == 0:
        return f"where root may read them, on the file server or as their owner: {command}"
    return f"as root, or another user who may read them: {command}"


def _show(found: Jobs, directories: Sequence[str]) -> None:
    from pyshim.cli import ui

    for line in _sentences(found, directories):
        ui.sentence(line)
    if found.programs:
        ui.show()
        ui.table(_HEADS, [_row(program) for program in found.programs[:_SHOWN]], left=(0, 1, 9))
    if len(found.programs) > _SHOWN:
        ui.show(f"{len(found.programs) - _SHOWN:,} more: --json and --csv have all")


def _sentences(found: Jobs, directories: Sequence[str]) -> Iterator[str]:
    """Yield what there is, who would gain, and what to do next."""
    from pyshim.report.jobs import WOULD, hours

    if not found.pages:
        yield from _no_page(found, directories)
        return
    all_hours = hours(sum(program.seconds for program in found.programs))
    gaining = [program for program in found.programs if program.gains]
    yield (
        f"done: read {_count(found.runs, 'run')} of {_count(len(found.programs), 'program')} by "
        f"{_count(found.users, 'user')}: {all_hours:,.1f} GPU hours"
        + (f"; not read: {_denied(found)}" if found.denied else "")
    )
    if not gaining:
        yield "gain: none from the default: it raises no stream of any of these programs; the table says why"
        if found.denied:
            yield f"next: the rest, {_as_another(directories)}"
        else:
            yield "next: nothing for these programs; overlap explain TRACE shows what one of them waits for"
        return
    took = hours(sum(program.seconds_raised for program in gaining))
    part = f" ({took / all_hours:.0%})".replace("%", " %") if all_hours else ""
    would = "would raise" if any(program.verdict == WOULD for program in gaining) else "raises"
    yield (
        f"gain: not measured; the default {would} streams in {_count(len(gaining), 'program')}, whose runs took "
        f"{took:,.1f} GPU hours{part}"
    )
    if found.denied:
        yield f"next: the rest, {_as_another(directories)}"
        return
    first = gaining[0]
    launcher = "LAUNCHER " if first.ranks > 1 else ""
    yield (
        f"next: overlap tune -- {launcher}{first.program}, by {first.user}, measures the first of them: "
        f"{hours(first.seconds_raised):,.1f} GPU hours"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _row(program: Program) -> list[str]:
    from pyshim.report.jobs import hours

    return [
        program.user,
        program.program,
        f"{program.runs:,}",
        f"{program.ranks:,}",
        f"{program.gpus:,}",
        f"{hours(program.seconds):,.1f}",
        f"{program.launches:,}",
        f"{program.streams_raised:,} of {program.streams:,}",
        f"{100 * program.share:.0f} %",
        program.verdict if program.gains else f"not raised: {program.verdict}",
        _day(program.last),
    ]


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _fields(program: Program) -> dict[str, Any]:
    from pyshim.report.jobs import hours

    return {
        "user": program.user,
        "program": program.program,
        "verdict": program.verdict,
        "runs": program.runs,
        "ranks": program.ranks,
        "gpus": program.gpus,
        "gpu_hours": round(hours(program.seconds), 3),
        "gpu_hours_raised": round(hours(program.seconds_raised), 3),
        "launches": program.launches,
        "launches_raised": program.launches_raised,
        "streams": program.streams,
        "streams_raised": program.streams_raised,
        "last": round(program.last, 3),
    }


def _json(found: Jobs) -> dict[str, Any]:
    return {
        "version": VERSION,
        "runs": found.runs,
        "processes": found.pages,
        "programs": [{**_fields(program), "verdicts": dict(program.verdicts)} for program in found.programs],
        "skipped": dict(found.skipped),
    }


def _csv(found: Jobs) -> str:
    import csv
    from io import StringIO

    from pyshim.report.jobs import Program as Empty

    text = StringIO()
    heads = list(_fields(Empty("", "", verdicts=_none())))
    writer = csv.DictWriter(text, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_fields, found.programs))
    return text.getvalue().rstrip("\n")


def _none() -> Any:
    from collections import Counter

    return Counter({"": 1})


# Prometheus: a file for the textfile collector of the node exporter


def _write(path: str, found: Jobs) -> None:
    """Write the metrics, whole or not at all. Raises OverlapError."""
    from pyshim.pages.untrusted import write_whole

    try:
        write_whole(path, "\n".join(_metrics(found)).encode() + b"\n", 0o644)
    except OSError as error:
        raise OverlapError(
            f"{path} cannot be written: {error.strerror}", "name a file in a folder that exists"
        ) from error


def _metrics(found: Jobs) -> Iterator[str]:
    """Yield the lines. Labels are the program's file name and the verdict: no user, and no command line."""
    from pyshim.report.jobs import OTHER, hours

    sums: dict[tuple[str, str], list[float]] = {}
    known: set[str] = set()
    for program in found.programs:
        name = program.program.partition(" ")[0]
        if name not in known and len(known) >= _LABELS:
            name = OTHER
        known.add(name)
        row = sums.setdefault((name, program.verdict), [0.0] * 4)
        for index, value in enumerate(
            (hours(program.seconds), program.runs, program.launches, program.launches_raised)
        ):
            row[index] += value
    what = (
        ("gpu_hours", "GPU hours of the runs in the folder"),
        ("runs", "runs in the folder"),
        ("launches", "kernel launches"),
        ("launches_raised", "kernel launches on streams that were raised, or that the default would raise"),
    )
    for index, (name, help_text) in enumerate(what):
        yield f"# HELP overlap_run_{name} {help_text}, by program and verdict."
        yield f"# TYPE overlap_run_{name} gauge"
        for (program_name, verdict), row in sums.items():
            labels = f'program="{_label(program_name)}",verdict="{_label(verdict)}"'
            yield f"overlap_run_{name}{{{labels}}} {row[index]:.10g}"
    yield "# HELP overlap_run_skipped Files and folders that could not be read as pages."
    yield "# TYPE overlap_run_skipped gauge"
    yield f"overlap_run_skipped {sum(found.skipped.values())}"


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
