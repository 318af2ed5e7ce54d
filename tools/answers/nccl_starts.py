"""How soon NCCL's own kernel starts behind a long one, by setting: nccl-start.json, nccl-start-matrix.json."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from answers import facts
from answers.markdown import paragraph, table

# By file what was measured, and the cases that are shown.
BEHIND = {
    "graph, alone": "alone",
    "graph, behind 1 block of all": "1 block of all",
    "graph, behind 4 blocks": "4 blocks",
    "graph, behind 8 blocks": "8 blocks",
}
PRODUCTS = {f"graph, behind {name}": name for name in ("cuBLAS, bf16", "cuBLAS, fp32", "Triton, bf16")}
FILES = {
    "nccl-start-matrix": (
        "Settings in turns, each a process of its own (`nccl_start_matrix.py`)",
        {
            **BEHIND,
            **PRODUCTS,
        },
    ),
    "nccl-start": (
        "Behind the library; of each arm the process in which it was soonest alone (`nccl_start.py`)",
        {**BEHIND, "launched, behind 8 blocks": "8 blocks, launched"},
    ),
}
AS_IT_IS = ("bare", "as it is")
# The grid of eight blocks has this much left; with less than half of it to wait, communication got in before the tail.
LEFT_US, CASE, ALONE = 3000, "graph, behind 8 blocks", "graph, alone"


def waits(root: Path, file: str) -> dict[str, dict[str, float]]:
    """By arm and case the median, in us; of an arm that several commits measured, where it was soonest alone."""
    by: dict[str, dict[str, dict[str, float]]] = {}
    for sample in facts.rows(root, file):
        if "samples_us" in sample:
            several = sample["samples_us"] if "case" not in sample else {sample["case"]: sample["samples_us"]}
            of_commit = by.setdefault(_arm(sample), {}).setdefault(sample.get("commit", ""), {})
            of_commit.update({case: statistics.median(samples) for case, samples in several.items()})
    return {arm: min(commits.values(), key=lambda cases: cases.get(ALONE, 0)) for arm, commits in by.items()}


def _arm(sample: dict[str, Any]) -> str:
    variables = sample.get("environment", sample.get("settings", {}))
    settings = " ".join(f"{name}={value}" for name, value in sorted(variables.items()))
    name = sample.get("setting") or facts.arm(sample)
    return f"{name} (`{settings}`)" if settings else str(name)


def summary(file: str) -> Callable[[Path], tuple[str, str] | None]:
    """Of one of FILES."""

    def answer(root: Path) -> tuple[str, str] | None:
        behind = {arm: cases[CASE] for arm, cases in waits(root, file).items() if CASE in cases}
        bare = next((behind.pop(arm) for arm in AS_IT_IS if arm in behind), None)
        raised = {arm: wait for arm, wait in behind.items() if wait < LEFT_US / 2}
        if bare is None or not raised:
            return None
        best, slowest = (find(raised, key=lambda arm: raised[arm]) for find in (min, max))
        words = f"behind a grid of many waves {'at once where it is raised' if bare >= LEFT_US / 2 else 'at once'}"
        numbers = (
            f"as a graph behind eight blocks a multiprocessor with {LEFT_US / 1000:g} ms left: as it is {bare:,.0f} "
            f"us; {len(raised)} of {len(behind)} settings start before the tail: {raised[best]:.0f} ({best}) to "
            f"{raised[slowest]:.0f} us ({slowest})"
        )
        said, counted = _products(waits(root, file), list(raised))
        return "; ".join((words, *said)), "; ".join((numbers, *counted))

    return answer


def _products(found: dict[str, dict[str, float]], raised: list[str]) -> tuple[list[str], list[str]]:
    """The same behind products of libraries, in words and in numbers; sooner is: after less than half."""
    said, counted = [], []
    for case, name in PRODUCTS.items():
        waited = {arm: cases[case] for arm, cases in found.items() if case in cases}
        bare = next((waited.pop(arm) for arm in AS_IT_IS if arm in waited), None)
        own = [waited[arm] for arm in raised if arm in waited]
        if bare is None or not own:
            continue
        sooner = [wait for wait in waited.values() if wait < bare / 2]
        said.append(f"behind {name} {f'after {min(sooner):,.0f} us at best' if sooner else '**nothing helps**'}")
        counted.append(
            f"behind {name}: as it is {bare:,.0f} us, where it is raised {min(own):,.0f} to {max(own):,.0f}, in "
            f"{len(sooner)} of {len(waited)} settings in less than half"
        )
    return said or ["products of a library: not measured here"], counted


def parts(root: Path) -> Iterator[str]:
    found = {file: waits(root, file) for file in FILES}
    if not any(found.values()):
        return
    yield "## Start of a kernel of NCCL, by setting"
    yield paragraph(
        "us from an event before NCCL's SendRecv (2 MiB to itself) to one behind it, medians; behind a kernel of the "
        f"least priority with about {LEFT_US / 1000:g} ms left, of so many blocks a multiprocessor, or behind products "
        "of a library. As a replayed graph, so that the host's own time is not in it, unless it says `launched`."
    )
    for file, arms in found.items():
        if arms:
            what, cases = FILES[file]
            yield f"{what}:"
            rows = [(arm, *(f"{by[case]:,.0f}" if case in by else "–" for case in cases)) for arm, by in arms.items()]
            yield table(("setting", *cases.values()), rows)
