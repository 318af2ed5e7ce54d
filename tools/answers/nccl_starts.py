"""How soon NCCL's own kernel starts behind a long one, by setting: nccl-start.json."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from answers import facts
from answers.markdown import paragraph, table

FILE = "nccl-start"
BARE = "bare"
# The grid before it has this much left; with less than half of it to wait, communication got in before the tail.
LEFT_US = 3000
CASES = {
    "graph, alone": "alone",
    "graph, behind 1 block of all": "behind 1 block of all",
    "graph, behind 2 blocks": "2 blocks",
    "graph, behind 4 blocks": "4 blocks",
    "graph, behind 8 blocks": "8 blocks",
    "launched, behind 8 blocks": "8 blocks, launched",
}


def waits(root: Path) -> dict[str, dict[str, float]]:
    """By arm and case the median, in us, of the samples of the last commit in the file that measured the arm."""
    by: dict[str, dict[str, dict[str, float]]] = {}
    for sample in facts.rows(root, FILE):
        if "samples_us" not in sample:
            continue
        cases = sample["samples_us"] if "case" not in sample else {sample["case"]: sample["samples_us"]}
        of_commit = by.setdefault(_arm(sample), {}).setdefault(sample.get("commit", ""), {})
        of_commit.update({case: statistics.median(samples) for case, samples in cases.items()})
    return {arm: list(commits.values())[-1] for arm, commits in by.items()}


def _arm(sample: dict[str, Any]) -> str:
    settings = " ".join(f"{name}={value}" for name, value in sorted(sample["settings"].items()))
    arm = facts.arm(sample)
    return f"{arm} (`{settings}`)" if settings else arm


def summary(root: Path) -> tuple[str, str] | None:
    found = waits(root)
    case = "graph, behind 8 blocks"
    behind = {arm: cases[case] for arm, cases in found.items() if case in cases}
    if BARE not in behind:
        return None
    raised = {arm: wait for arm, wait in behind.items() if wait < LEFT_US / 2}
    if not raised:
        return "at the end of the grid, in every setting", f"bare {behind[BARE]:,.0f} us behind eight blocks"
    best = min(raised, key=lambda arm: raised[arm])
    slowest = max(raised, key=lambda arm: raised[arm])
    words = "at once where it is raised; as it is, with the grid's end" if BARE not in raised else "at once"
    numbers = (
        f"as a graph behind eight blocks a multiprocessor with {LEFT_US / 1000:g} ms left: bare {behind[BARE]:,.0f} "
        f"us; raised {raised[best]:.0f} ({best}) to {raised[slowest]:.0f} us ({slowest})"
    )
    return words, numbers


def parts(root: Path) -> Iterator[str]:
    found = waits(root)
    if not found:
        return
    yield "## Start of a kernel of NCCL, by setting"
    yield paragraph(
        f"us from an event before NCCL's SendRecv (2 MiB to itself) to one behind it, medians; behind a kernel of the "
        f"least priority with about {LEFT_US / 1000:g} ms left, of so many blocks a multiprocessor. As a replayed "
        "graph the host's own time is not in it, in the last column it is. `nccl_start.py`; of each arm the last "
        "commit that measured it."
    )
    rows = [(arm, *(f"{cases[case]:,.0f}" if case in cases else "–" for case in CASES)) for arm, cases in found.items()]
    yield table(("arm", *CASES.values()), rows)
