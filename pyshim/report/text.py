"""The report for people: rows of tables."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping

from pyshim.launch.folder import Run
from pyshim.report import many
from pyshim.report.collect import Collected
from pyshim.report.kernels import Kernel, RuleUse, kernels
from pyshim.report.kernels import rules as rules_of
from pyshim.report.steps import Step
from pyshim.report.summary import policy_of, totals
from pyshim.report.who import ranks, some
from pyshim.stats.page import Page, sentences

Rows = list[list[str]]
_STEPS = 6
_REASONS = 10  # of many processes: their report is one screen
_KERNELS, _FEW_KERNELS = 12, 5
_RULES = 12
HEADS = ("process", "rank", "program", "policy", "launches", "shaped", "comm", "raised", "refused")
KERNEL_HEADS = ("kernel", "launches", "shaped", "in window", "raised", "refused", "mostly")
_SHAPED, _CAPPED = "shaped", "capped_without_room"
_OTHERS = {
    "graph_launches": "launches of whole graphs, whose kernels are not seen one by one",
    "streams_raised": "streams created with a higher priority than the program asks for",
}


def runs(collected: Collected) -> Iterator[str]:
    """Yield what was started, and the members of runs of several processes."""
    every = collected.steps
    for step in every[:_STEPS]:
        if step.runs:
            also = f" (and {len(step.runs) - 1:,} more of its ranks)" if len(step.runs) > 1 else ""
            yield _headline(step.runs[0]) + also
        if step.runs and _variables(step.runs[0]):
            yield _variables(step.runs[0])
        if len(step.pages) > 1:
            yield f"{step.title}: {_members(step)}"
    if len(every) > _STEPS:
        yield f"{len(every) - _STEPS:,} more runs are in this report: --json has all"


def _members(step: Step) -> str:
    hosts = sorted({page.host for page in step.pages})
    where = f"{len(hosts):,} hosts, {hosts[0]} to {hosts[-1]}" if len(hosts) > 4 else some(hosts)
    known = sorted(step.ranks)
    of = f"; {ranks(known)}" + (f" of {step.world:,}" if step.world else "") if known else ""
    return f"{len(step.pages):,} processes on {where}{of}"


def _headline(run: Run) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    command = shlex.join(run.command) if run.command else "environment only"
    simulated = f" on a simulated GPU ({run.simulate})" if run.simulate else ""
    return f"run {run.id}, {began}{simulated}: {command}"


def _variables(run: Run) -> str:
    """Return the variables that the policies set, or the empty string."""
    values = ", ".join(f"{name}={value}" for name, value in run.environment.items())
    return f"run {run.id} set for the program: {values}" if values else ""


def devices(collected: Collected) -> list[str]:
    """Return one line per kind of GPU and policy."""
    counts = Counter((device.name, device.policy) for page in collected.pages for device in page.devices)
    return [
        f"{name}: {'policy ' + policy if policy else 'no policy, only counted'}, used by {count:,} "
        f"process{'es' * (count != 1)}"
        for (name, policy), count in sorted(counts.items(), key=str)
    ]


def processes(collected: Collected) -> Rows:
    rows = [row(page, collected) for page in collected.pages]
    if len(rows) > 1:
        total = totals(collected.pages)
        counts = [f"{total[name]:,}" for name in many.COUNTED]
        rows.append([f"all {len(rows)}", "", "", "", *counts])
    return rows


def row(page: Page, collected: Collected) -> list[str]:
    return [
        f"{page.host}:{page.pid}",
        "-" if page.rank is None else str(page.rank),
        many.program(page),
        policy_of(page, collected) or "-",
        *(f"{getattr(page, name):,}" for name in many.COUNTED),
    ]


def reasons(collected: Collected) -> Rows:
    """Return a row for each reason; of many processes only the most common."""
    total = totals(collected.pages)
    if not total["launches"]:
        return []
    counted = reasons_of(total["reasons"])
    shown = counted if len(collected.pages) <= many.FEW else counted[:_REASONS]
    rows = [[f"{count:,}", f"{100 * count / total['launches']:.1f} %", name, said] for name, count, said in shown]
    rest = sum(count for _, count, _ in counted[len(shown) :])
    more = [f"{rest:,}", f"{100 * rest / total['launches']:.1f} %", f"{len(counted) - len(shown)} more", ""]
    return rows + ([more] if rest else [])


def reasons_of(counts: Mapping[str, int]) -> list[tuple[str, int, str]]:
    """Return name, launches and sentence, the commonest first.

    `shaped` is one of them, whether or not communication fits beside what was shaped: the sentence says how many of
    both there are."""
    merged = {name: (count, sentences().get(name, "")) for name, count in counts.items()}
    capped = merged.pop(_CAPPED, (0, ""))[0]
    if capped:
        made = counts.get(_SHAPED, 0)
        said = f"{sentences()[_SHAPED]}; communication does not fit beside {capped:,} of them ({_CAPPED})"
        merged[_SHAPED] = made + capped, said
    return sorted(((name, *what) for name, what in merged.items()), key=lambda item: (-item[1], item[0]))


def rules(collected: Collected) -> Rows:
    """Return a row for each rule of the policies: what it did."""
    used = rules_of(collected)
    rows = [
        [
            use.rule.place,
            use.rule.shape,
            f"{use.launches:,}",
            f"{use.shaped:,}",
            _asked(use.in_window),
            f"{use.refused:,}",
            _outcome(use),
        ]
        for use in used[:_RULES]
    ]
    return rows + ([[f"{len(used) - _RULES:,} more: --json", "", "", "", "", "", ""]] if len(used) > _RULES else [])


def _outcome(use: RuleUse) -> str:
    if use.unsure:
        return "not known"
    if not use.matched:
        return "never matched"
    return "acted" if use.acted else f"never acted: {next(iter(use.reasons))}"


_NAMELESS = "(not recorded)"  # or the driver does not tell its name


def by_kernel(collected: Collected) -> Rows:
    """Return a row for each kernel name; of many processes only a few."""
    merged: dict[str, list[Kernel]] = {}
    for kernel in kernels(collected):
        merged.setdefault(kernel.plain or kernel.kernel or _NAMELESS, []).append(kernel)
    ordered = sorted(merged.items(), key=lambda item: -sum(kernel.launches for kernel in item[1]))
    most = _KERNELS if len(collected.pages) <= many.FEW else _FEW_KERNELS
    rows = [_kernel_row(name, group) for name, group in ordered[:most]]
    rest = sum(kernel.launches for _, group in ordered[most:] for kernel in group)
    more = [f"{len(ordered) - most:,} more: --json", f"{rest:,}", *[""] * (len(KERNEL_HEADS) - 2)]
    return rows + ([more] if len(ordered) > most else [])


def _kernel_row(name: str, group: list[Kernel]) -> list[str]:
    reasons: Counter[str] = Counter()
    for kernel in group:
        reasons.update(kernel.reasons)
    windowed = [kernel.in_window for kernel in group if kernel.in_window is not None]
    return [
        name,
        f"{sum(kernel.launches for kernel in group):,}",
        f"{sum(kernel.shaped for kernel in group):,}",
        _asked(sum(windowed) if windowed else None),
        f"{sum(kernel.raised for kernel in group):,}",
        f"{sum(kernel.refused for kernel in group):,}",
        reasons.most_common(1)[0][0],
    ]


def _asked(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def others(collected: Collected) -> Rows:
    total = totals(collected.pages)
    return [[f"{total[name]:,}", words] for name, words in _OTHERS.items() if total[name]]
