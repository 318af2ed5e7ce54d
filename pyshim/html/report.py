"""The page of one report: from what `overlap report --json` prints, format version 1."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyshim.html import draw
from pyshim.html.cadence import cadence
from pyshim.html.kernels import kernels, rules
from pyshim.html.page import page
from pyshim.html.processes import processes
from pyshim.html.streams import streams
from pyshim.html.table import PICTURE, PROSE, Cell, Content, table
from pyshim.html.tree import Child, Element, element, isolated, prose
from pyshim.report.text import OTHER_ROUTES, ROUTES, reasons_of

Data = Mapping[str, Any]
_COUNTED = (
    ("launches", "launches"),
    ("shaped", "shaped"),
    ("communication", "of communication"),
    ("raised", "of these raised"),
    ("critical", "raised on critical streams"),
    ("refused", "refused by the driver"),
    ("graph_launches", "whole graphs"),
)
_KINDS = {
    "shaped": "shaped",
    "communication": "raised",
    "critical": "raised",
    "refused": "refused",
}
_RUNS, _NAMES = 8, 4  # are named each


def report(data: Data) -> str:
    """data: as `overlap report --json` has it. Raises nothing for what a process calls itself: all text is text."""
    title = _title(data)
    parts: list[Child] = [
        element("p", "overlap report", class_="over"),
        element("h1", title),
        _verdict(data),
        _said("Warnings", data["findings"], "warn"),
        _said("Notes", data["remarks"], ""),
        _facts(data),
        _numbers(data["totals"]),
        _reasons(data["totals"]),
        rules(data),
        kernels(data),
        processes(data["processes"]),
        streams(data["processes"]),
        cadence(data["processes"]),
        _routes(data["totals"]),
    ]
    return page(f"overlap report: {title}", *parts)


def _title(data: Data) -> str:
    commands = [run["command"] for run in data["runs"] if run["command"]]
    if commands:
        return shlex.join(commands[0])
    programs = Counter(process["program"].rpartition("/")[2] for process in data["processes"])
    return programs.most_common(1)[0][0] if programs else "no process"


def _verdict(data: Data) -> list[Child]:
    """What was done, what that gained or why nothing could be gained, and what to do next."""
    done, *rest = (f"{name}: {data['verdict'][name]}" for name in ("done", "gain", "next"))
    return [
        element("p", prose(done), class_="verdict " + ("warn" if data["findings"] else "good")),
        *(element("p", prose(sentence)) for sentence in rest),
    ]


def _facts(data: Data) -> Element:
    facts = [*_run_facts(data["runs"]), *_place_facts(data)]
    return element("dl", [[element("dt", name), element("dd", said)] for name, said in facts], class_="facts")


def _run_facts(runs: Sequence[Data]) -> Iterator[tuple[str, Child]]:
    for run in runs[:_RUNS]:
        began = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(run["started"]))
        command = shlex.join(run["command"]) if run["command"] else "environment only"
        simulated = element("span", f"simulated GPU: {run['simulate']}", class_="badge") if run["simulate"] else None
        yield f"run {run['id']}", [f"{began} ", simulated, " ", element("code", command) if len(runs) > 1 else None]
        if run["environment"]:
            values = " ".join(f"{name}={value}" for name, value in run["environment"].items())
            yield "it set", element("code", values)
    if len(runs) > _RUNS:
        yield "and", f"{len(runs) - _RUNS:,} more runs"


def _place_facts(data: Data) -> Iterator[tuple[str, Child]]:
    every = data["processes"]
    hosts = sorted({process["host"] for process in every})
    ranks = {process["rank"] for process in every if process["rank"] is not None}
    count = f"; {len(every):,} {'process' if len(every) == 1 else 'processes'}"
    known = "" if not ranks else ", one rank" if len(ranks) == 1 else f", {len(ranks):,} ranks"
    yield "where", [_names(hosts, "hosts"), count + known]
    opened = Counter((device["name"], device["policy"]) for process in every for device in process["devices"])
    for (name, policy), times in sorted(opened.items(), key=str):
        ruled: Child = ["policy ", isolated(policy)] if policy else "no policy: only counted"
        yield "GPU", [isolated(name), ", ", ruled, f", used by {times:,} process{'es' * (times != 1)}"]
    yield "library", _names(sorted({process["library"] for process in every}), "versions")


def _names(names: Sequence[str], what: str) -> Child:
    if len(names) > _NAMES:
        return [f"{len(names):,} {what}, ", isolated(names[0]), " to ", isolated(names[-1])]
    return [[", " if index else "", isolated(name)] for index, name in enumerate(names)]


def _numbers(totals: Data) -> Element:
    return element(
        "ul",
        [element("li", element("b", f"{totals[key]:,}"), element("span", words)) for key, words in _COUNTED],
        class_="numbers",
    )


def _said(title: str, sentences_: Sequence[str], kind: str) -> Child:
    if not sentences_:
        return None
    return [
        element("h2", title),
        element("ul", [element("li", prose(sentence)) for sentence in sentences_], class_=f"said {kind}".strip()),
    ]


def _reasons(totals: Data) -> Child:
    launches = totals["launches"]
    if not launches:
        return None
    counted = reasons_of(totals["reasons"])
    most = counted[0][1]
    rows = []
    for name, count, sentence in counted:
        share = _percent(count, launches)
        drawn = draw.bar([draw.Part(count, _kind(name), f"{name}: {count:,} launches")], most, f"{name}: {share}")
        rows.append((_explained(name, sentence), count, share, Cell(drawn, count)))
    heads = ("reason", "launches", "share", "of the commonest")
    return [
        element("h2", "Why: launches by reason"),
        table(heads, rows, {"reason": PROSE, "of the commonest": PICTURE}),
    ]


def _explained(name: str, sentence: str) -> Cell:
    return Cell([element("code", name), element("small", prose(sentence))], name)


def _kind(reason: str) -> str:
    """The colour of what was done under a reason."""
    return _KINDS.get(reason, "alone")


def _routes(totals: Data) -> Child:
    counted = [(name, count) for name, count in totals["entry_points"].items() if count]
    more = [(name, words) for name, words in OTHER_ROUTES.items() if totals[name]]
    if not counted and not more:
        return None
    most = max([count for _, count in counted], default=1)
    rows: list[Sequence[Content]] = []
    for name, count in counted:
        drawn = draw.bar([draw.Part(count, "shaped", f"{name}: {count:,}")], most, f"{name}: {count:,}")
        rows.append((element("span", ROUTES.get(name, name)), count, Cell(drawn, count)))
    rows += [(element("small", words), totals[name], "") for name, words in more]
    heads = ("reached through", "launches", "of the commonest")
    return [
        element("h2", "How launches reached the driver"),
        table(heads, rows, {"reached through": PROSE, "of the commonest": PICTURE}),
    ]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"
