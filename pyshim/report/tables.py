"""The report for people: rows of tables; of many processes a few rows, by kind, and those far from their kind."""

from __future__ import annotations

import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import quantiles

from pyshim.counts import counted
from pyshim.pages.judged import observes
from pyshim.pages.page import Page, sentences
from pyshim.report.as_json import policy_of, totals
from pyshim.report.collect import Collected, Step, ranks, some
from pyshim.report.kernels import RAISED, Kernel, RuleUse, kernels
from pyshim.report.kernels import rules as rules_of
from pyshim.start.folder import Run

Rows = list[list[str]]
FEW = 16  # processes that have a row each
COUNTED = ("launches", "shaped", "communication", "raised", "would_be_raised", "refused")
SUMMED_HEADS = ("processes", "hosts", "program", "policy", "counted", "least", "median", "most", "all")
LEAST = 5  # processes of a kind, for one of them to be far from the others
_KINDS = 4
_FAR = 3.0  # Tukey's word for it: so many times the distance of the quartiles beyond them
_SHARE = 0.01  # of the median: less is never far
Kind = tuple[str, str]
_STEPS = 6
_REASONS = 10  # of many processes: their report is one screen
_KERNELS, _FEW_KERNELS = 12, 5
_RULES = 12
_WHO = ("process", "rank", "program", "policy")
_SHORT = {"communication": "comm", "would_be_raised": "would be raised"}  # heads of columns
KERNEL_HEADS = ("kernel", "launches", "shaped", "in window", "raised", "refused", "mostly")
_SHAPED, _CAPPED = "shaped", "capped_without_room"
_OTHERS = {
    "graph_launches": "launches of whole graphs, whose kernels are not seen one by one",
    "graphs_raised": "of these on a stream while it was raised",
    "graphs_would_be_raised": "of these on a stream that the default would raise",
    "streams_created_raised": "streams created with a higher priority than the program asks for",
}


def runs(collected: Collected) -> Iterator[str]:
    """Yield what was started, and the members of steps of several processes."""
    for run in collected.runs[:1]:
        yield _headline(run)
        if run.environment:
            yield f"set for the program: {', '.join(f'{name}={value}' for name, value in run.environment.items())}"
    every = collected.steps
    for step in every[:_STEPS]:
        if len(step.pages) > 1:
            yield _members(step)
    if len(every) > _STEPS:
        yield f"{len(every) - _STEPS:,} more steps are in this report: --json has all"


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


def devices(collected: Collected) -> list[str]:
    """Return one line per kind of GPU and policy."""
    counts = Counter(kind for page in collected.pages for kind in {(one.name, one.policy) for one in page.devices})
    return [
        f"{name}: {'policy ' + policy if policy else 'no policy, only counted'}, used by {count:,} "
        f"process{'es' * (count != 1)}"
        for (name, policy), count in sorted(counts.items(), key=str)
    ]


def columns(collected: Collected) -> list[str]:
    """Return the counters that have a column: `would_be_raised` only where a process observes."""
    observing = any(map(observes, collected.pages))
    return [name for name in COUNTED if observing or name != "would_be_raised"]


def heads(collected: Collected) -> list[str]:
    return [*_WHO, *(_SHORT.get(name, name) for name in columns(collected))]


def processes(collected: Collected) -> Rows:
    rows = [row(page, collected) for page in collected.pages]
    if len(rows) > 1:
        total = totals(collected.pages)
        counts = [f"{total[name]:,}" for name in columns(collected)]
        rows.append([f"all {len(rows)}", "", "", "", *counts])
    return rows


def row(page: Page, collected: Collected) -> list[str]:
    return [
        f"{page.host}:{page.pid}",
        "-" if page.rank is None else str(page.rank),
        program(page),
        policy_of(page, collected) or "-",
        *(f"{getattr(page, name):,}" for name in columns(collected)),
    ]


def reasons(collected: Collected) -> Rows:
    """Return a row for each reason; of many processes only the most common."""
    total = totals(collected.pages)
    if not total["launches"]:
        return []
    every = reasons_of(total["reasons"])
    shown = every if len(collected.pages) <= FEW else every[:_REASONS]
    rows = [[f"{count:,}", f"{100 * count / total['launches']:.1f} %", name, said] for name, count, said in shown]
    rest = sum(count for _, count, _ in every[len(shown) :])
    more = [f"{rest:,}", f"{100 * rest / total['launches']:.1f} %", f"{len(every) - len(shown)} more", ""]
    return rows + ([more] if rest else [])


def on_raised(collected: Collected) -> str:
    """Return how the launches on raised streams are counted by reason, where not all of them count as raised."""
    total = totals(collected.pages)
    as_raised = total["reasons"].get(RAISED, 0)
    others = total["raised"] - as_raised
    if others <= 0:
        return ""
    as_what = "communication" if others <= total["communication"] else "communication or other reasons"
    told = f"{counted(total['raised'], 'launch')} {'was' if total['raised'] == 1 else 'were'}"
    return (
        f"{told} on raised streams: {as_raised:,} count{'s' * (as_raised == 1)} as raised, here and by kernel, and "
        f"{others:,} as {as_what}"
    )


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
    most = _KERNELS if len(collected.pages) <= FEW else _FEW_KERNELS
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


# Many processes


def program(page: Page) -> str:
    return page.program.rpartition("/")[2] + (" (forked)" if page.forked else "")


def kinds(collected: Collected) -> dict[Kind, list[Page]]:
    """Group by program and policy, the most frequent first."""
    found: dict[Kind, list[Page]] = defaultdict(list)
    for page in collected.pages:
        found[program(page), policy_of(page, collected) or "-"].append(page)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def summed(collected: Collected) -> list[list[str]]:
    """Return the rows; apart from launches, counts that are 0 everywhere are left out."""
    every = kinds(collected)
    result = [row for kind, pages in list(every.items())[:_KINDS] for row in _rows(kind, pages)]
    rest = [page for pages in list(every.values())[_KINDS:] for page in pages]
    return result + (_rows((f"{len(every) - _KINDS} more", ""), rest)[:1] if rest else [])


def _rows(kind: Kind, pages: Sequence[Page]) -> list[list[str]]:
    result = []
    who = [f"{len(pages):,}", f"{len({page.host for page in pages}):,}", *kind]
    for name in COUNTED:
        values = sorted(getattr(page, name) for page in pages)
        if values[-1] or name == "launches":
            numbers = values[0], values[len(values) // 2], values[-1], sum(values)
            result.append([*who, name.replace("_", " "), *(f"{number:,}" for number in numbers)])
            who = [""] * len(who)
    return result


def far(collected: Collected) -> list[Page]:
    """Return the processes that counted far more or less than others of their kind, the farthest first."""
    found: list[tuple[float, Page]] = []
    for pages in kinds(collected).values():
        if len(pages) < LEAST:
            continue
        fences = {name: fence([getattr(page, name) for page in pages]) for name in COUNTED}
        for page in pages:
            distance = max(beyond(getattr(page, name), *fences[name]) for name in COUNTED)
            if distance > 0:
                found.append((distance, page))
    return [page for _, page in sorted(found, key=lambda item: (-item[0], item[1].host, item[1].pid))]


def fence(values: list[int]) -> tuple[float, float, float]:
    """Return what is far below, what is far above, and the median."""
    first, median, third = quantiles(values, n=4, method="inclusive")
    width = max(_FAR * (third - first), _SHARE * median)
    return first - width, third + width, median


def beyond(value: int, below: float, above: float, median: float) -> float:
    return max(below - value, value - above) / max(median, 1)
