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
from pyshim.html.streams import raised_by_stream, streams
from pyshim.html.table import PICTURE, PROSE, Cell, Content, table
from pyshim.html.tree import Child, Element, element, isolated, prose
from pyshim.stats.page import sentences

Data = Mapping[str, Any]
_COUNTED = (
    ("launches", "launches"),
    ("shaped", "shaped"),
    ("communication", "of communication"),
    ("raised", "of these raised"),
    ("critical", "raised with their stream"),
    ("refused", "refused by the driver"),
    ("graph_launches", "whole graphs"),
)
_WAYS = {
    "symbol": "a driver function by its name",
    "dlsym": "a driver function, looked up with dlsym",
    "proc_address": "a driver function, looked up with cuGetProcAddress or hipGetProcAddress",
    "runtime": "the runtime library",
    "graph_node": "a node of a graph",
    "dispatch_table": "HIP's own table of functions",
}
_OTHER = {
    "graph_launches": "launches of whole graphs",
    "streams_raised": "streams created with a higher priority than the program asks for",
    "streams_reduced": "streams created without the compute units that are kept for communication",
}
_KINDS = {
    "shaped": "shaped",
    "capped_without_room": "shaped",
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
        _facts(data),
        _numbers(data["totals"]),
        _said("Warnings", data["findings"], "warn"),
        _said("Notes", data["remarks"], ""),
        _reasons(data["totals"]),
        rules(data),
        kernels(data),
        processes(data["processes"]),
        streams(data["processes"]),
        cadence(data["processes"]),
        _ways(data["totals"]),
    ]
    return page(f"overlap report: {title}", *parts)


def _title(data: Data) -> str:
    commands = [run["command"] for run in data["runs"] if run["command"]]
    if commands:
        return shlex.join(commands[0])
    programs = Counter(process["program"].rpartition("/")[2] for process in data["processes"])
    return programs.most_common(1)[0][0] if programs else "no process"


def verdict(data: Data) -> str:
    """What was done, and how much there is to warn of."""
    count = len(data["findings"])
    warnings = "Nothing to warn of." if not count else "One warning." if count == 1 else f"{count:,} warnings."
    return f"{_done(data['totals'], data['processes'])}. {warnings}"


def _done(totals: Data, every: Sequence[Data]) -> str:
    count = len(every)
    launches, shaped, communication = (totals[name] for name in ("launches", "shaped", "communication"))
    who = f"{count:,} processes" if count != 1 else "one process"
    if not launches:
        return f"No launch was seen in {who}"
    if shaped:
        said = f"{shaped:,} of {launches:,} launches in {who} were shaped ({_percent(shaped, launches)})"
    else:
        said = f"None of {launches:,} launches in {who} was shaped, {_mostly(totals['reasons'])}"
    raised = f"{totals['raised']:,} of {communication:,} communication launches were raised"
    return f"{said}; {raised if communication else 'no communication was seen'}{raised_by_stream(totals, every)}"


def _mostly(reasons: Mapping[str, int]) -> str:
    others = {name: count for name, count in reasons.items() if name not in ("communication", "critical")}
    why = max(others, key=lambda name: others[name], default="communication")
    return f"{'most often ' if len(reasons) > 1 else ''}because: {sentences().get(why, why)}"


def _verdict(data: Data) -> Element:
    return element("p", prose(verdict(data)), class_="verdict " + ("warn" if data["findings"] else "good"))


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
        yield "GPU", [isolated(name), ", ", ruled, f", opened {times:,} x"]
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
    known = sentences()
    counted = sorted(totals["reasons"].items(), key=lambda item: (-item[1], item[0]))
    most = counted[0][1]
    rows = []
    for name, count in counted:
        share = _percent(count, launches)
        drawn = draw.bar([draw.Part(count, _kind(name), f"{name}: {count:,} launches")], most, f"{name}: {share}")
        rows.append((_explained(name, known.get(name, "")), count, share, Cell(drawn, count)))
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


def _ways(totals: Data) -> Child:
    counted = [(name, count) for name, count in totals["entry_points"].items() if count]
    more = [(name, words) for name, words in _OTHER.items() if totals[name]]
    if not counted and not more:
        return None
    most = max([count for _, count in counted], default=1)
    rows: list[Sequence[Content]] = []
    for name, count in counted:
        drawn = draw.bar([draw.Part(count, "shaped", f"{name}: {count:,}")], most, f"{name}: {count:,}")
        rows.append((_explained(name, _WAYS.get(name, "")), count, Cell(drawn, count)))
    rows += [(element("small", words), totals[name], "") for name, words in more]
    heads = ("way", "launches", "of the commonest")
    return [
        element("h2", "How launches came in"),
        table(heads, rows, {"way": PROSE, "of the commonest": PICTURE}),
    ]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"
