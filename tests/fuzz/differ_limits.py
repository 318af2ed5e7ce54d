"""Documented limits (docs/explanation/limits.md) by which runs with and without the library may differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.fuzz import differ_rows

UNCHANGED = ("off", "observe")  # policies that change nothing
RAISED = -5  # what communication is raised to
CRITICAL = ("auto",)  # policies that raise streams that somebody waits for, to one of these
LEVELS = (RAISED, RAISED + 1)
HIP_LEVELS = (-1,)  # a HIP stream is created with its priority, at a site whose earlier streams were waited for

# Documented limits (docs/explanation/limits.md): the calls whose out-values may differ, and how, by name of the limit.
NODE_SIZE, NODE_PRIORITY = "a node shows the size that it is launched with", "a raised node shows its priority"
EARLY = "a graph made before any stream had a priority runs without that of its stream"
COPIED = "an update by, or of, a copy of a graph with raised communication is taken"


def limit_of(policy: str, without: str, within: str) -> str | None:
    """Name the documented limit by which these two lines of a record differ."""
    a, b = without.split(), within.split()
    if policy in UNCHANGED or a[:4] != b[:4] or len(a) != len(b):
        return None
    name = differ_rows.base(a[2])
    if name.endswith("GraphKernelNodeGetParams") and a[:-1] == b[:-1] and int(a[-1]) < int(b[-1]):
        return NODE_SIZE
    if name == "cuGraphKernelNodeGetAttribute":
        shown = [int.from_bytes(bytes.fromhex(line[-1])[:4], "little", signed=True) for line in (a, b)]
        return NODE_PRIORITY if shown[1] == RAISED < shown[0] or (policy in CRITICAL and shown[1] in LEVELS) else None
    return None


def succeeded(record: bytes, names: str) -> bool:
    return re.search(rf"^\d+ \d+ (?:{names}) 0\b".encode(), record, re.M) is not None


@dataclass(frozen=True)
class Call:
    """A line of a record with arguments: those that were given, and the handles that were answered."""

    number: int
    name: str
    given: Mapping[str, str]
    result: str
    made: Sequence[str]


def calls_of(record: bytes) -> list[Call]:
    calls = []
    for line in record.decode().splitlines():
        words = line.split()
        given = dict(word.split("=", 1) for word in words[3:] if re.match(r"\w+=", word))
        rest = [word for word in words[3:] if re.fullmatch(r"#-?\d+|\d+", word)]
        results = [i for i, word in enumerate(rest) if word.isdigit()]
        at = results[0] if results else len(rest)
        calls.append(Call(int(words[0]), words[2], given, "".join(rest[at : at + 1]), rest[at + 1 :]))
    return calls


def prioritises(call: Call) -> bool:
    """Whether a call that succeeded gives a stream another priority than 0."""
    if call.name.startswith("cuStreamSetAttribute") and call.given["attribute"] != "8":
        return False
    given = call.given.get("priority", call.given.get("value", "0"))
    return call.name.startswith(("cuStream", "cuGreenCtxStreamCreate")) and given.startswith("-")


def early(calls: Sequence[Call]) -> bool:
    """Whether an executable graph is launched that was made before any stream had a priority, after one had."""
    made: set[str] = set()
    prioritised = False
    for call in calls:
        if call.result != "0":
            continue
        prioritised = prioritised or prioritises(call)
        if call.name.startswith("cuGraphInstantiate") and not prioritised:
            made.update(call.made[:1])
        elif call.name.startswith("cuGraphLaunch") and prioritised and call.given["graph"] in made:
            return True
    return False


def is_of_copies(calls: Sequence[Call], number: int) -> bool:
    """Whether the update is one by or of a graph that was copied, or holds a copy of another one."""
    copies, graphs = set[str](), dict[str, str]()
    for call in calls:
        if call.number == number:
            return bool({call.given["graph"], graphs.get(call.given["exec"], "")} & copies)
        if call.result != "0":
            continue
        if call.name == "cuGraphClone":
            copies.update(call.made[:1])
        elif "child" in call.given or call.given.get("type") == "4":
            copies.add(call.given.get("graph", ""))
        elif call.name.startswith("cuGraphInstantiate") and call.made:
            graphs[call.made[0]] = call.given["graph"]
    return False


def is_taken(policy: str, without: str, within: str) -> bool:
    """Whether this update of an executable graph fails without the library alone, because priorities differ."""
    a, b = without.split(), within.split()
    changed = policy not in UNCHANGED and a[2] == b[2] and differ_rows.base(a[2]).startswith("cuGraphExecUpdate")
    return changed and a[3] == "910" and a[-1] in ("8", "910") and b[3] == "0"
