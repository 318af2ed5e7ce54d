"""What was done with each kernel, and what each rule has done: out of the rows of the pages, summed over processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyshim.pages.page import Page, PageRule, Row

if TYPE_CHECKING:
    from pyshim.report.collect import Collected

SHAPED = frozenset({"shaped", "capped_without_room"})
# Nothing had to be changed for what the rule asks.
_HOLDS_ALREADY = frozenset({"room_already"})
COMMUNICATION, RAISED = "communication", "raised"  # nothing else is counted for these reasons
# Given before any rule is looked for, or because none was found.
_OF_NO_RULE = frozenset({COMMUNICATION, "no_rule", "observe_only", "unknown_footprint"})


class Footprint(NamedTuple):
    """What one block takes; shared memory in bytes, as the program asks for it."""

    threads: int
    registers: int
    static_shared_memory: int
    dynamic_shared_memory: int


class Counts(NamedTuple):
    launches: int
    shaped: int
    in_window: int | None  # None: no rule asked for windows
    raised: int  # launches of computation on a raised stream
    refused: int  # with our size, and launched again as asked; and all launches of that kernel since
    reasons: dict[str, int]  # the commonest first


@dataclass(frozen=True)
class Kernel:
    """Launches of a kernel with one footprint, from one library, under one rule, on one kind of GPU."""

    kernel: str  # as the driver gives it, the middle of a long name replaced by ~HASH~; "" where it is not known
    plain: str
    library: str
    launches: int
    shaped: int
    in_window: int | None
    raised: int
    refused: int
    reasons: dict[str, int]
    rule: PageRule | None
    footprint: Footprint
    launched_shared_memory: int  # the most dynamic bytes that a launch was given
    blocks: int  # of the grid, last seen
    resident_blocks: int  # on one multiprocessor as asked; 0: not known
    device_name: str

    @property
    def communication(self) -> bool:
        return COMMUNICATION in self.reasons


@dataclass(frozen=True)
class RuleUse:
    rule: PageRule
    launches: int
    shaped: int
    in_window: int | None
    refused: int
    kernels: int  # by name
    reasons: dict[str, int]
    unrecorded: dict[str, int]  # launches that it may have matched, by reason: no row tells their rule

    @property
    def matched(self) -> bool:
        return self.launches > 0

    @property
    def acted(self) -> bool:
        """It changed launches, or found some to be as it asks; `leave` has nothing else to do than to match."""
        return self.matched and (
            self.rule.shape == "leave" or self.shaped > 0 or not _HOLDS_ALREADY.isdisjoint(self.reasons)
        )

    @property
    def unsure(self) -> bool:
        """It was not seen to match, or not to act, and may have done so where rows tell no rule."""
        might = self.unrecorded if not self.matched else (SHAPED | _HOLDS_ALREADY).intersection(self.unrecorded)
        return not self.acted and bool(might)


Key = tuple[str, str, "PageRule | None", Footprint, str]


def keyed(page: Page) -> Iterator[tuple[Key, Row]]:
    """Yield the rows of a page, each with what tells kernels apart."""
    for row in page.rows:
        footprint = Footprint(row.threads, row.registers, row.static_shared_memory, row.dynamic_shared_memory)
        rule = None if row.rule is None else page.rules[row.rule]
        name = "" if row.device is None else page.devices[row.device].name
        yield (row.kernel, row.library, rule, footprint, name), row


def kernels(collected: Collected) -> list[Kernel]:
    """Return the kernels of all processes, the most launches first."""
    groups: dict[Key, list[Row]] = {}
    for page in collected.pages:
        for key, row in keyed(page):
            groups.setdefault(key, []).append(row)
    made = [_kernel(key, rows) for key, rows in groups.items()]
    return sorted(made, key=lambda kernel: (-kernel.launches, kernel.kernel, kernel.library, kernel.footprint))


def _kernel(key: Key, rows: list[Row]) -> Kernel:
    name, library, rule, footprint, device = key
    counted = count(rows)
    return Kernel(
        name,
        rows[0].plain,
        library,
        *counted,
        rule=rule,
        footprint=footprint,
        launched_shared_memory=max(row.launched_shared_memory for row in rows),
        blocks=rows[-1].blocks,
        resident_blocks=max(row.resident_blocks for row in rows),
        device_name=device,
    )


def count(rows: Iterable[Row]) -> Counts:
    rows = list(rows)
    reasons: Counter[str] = Counter()
    for row in rows:
        reasons[row.reason] += row.launches
    windowed = [row for row in rows if row.inside is not None]
    return Counts(
        launches=sum(row.launches for row in rows),
        shaped=sum(reasons[reason] for reason in SHAPED),
        in_window=sum(row.launches for row in windowed if row.inside) if windowed else None,
        raised=reasons[RAISED],
        refused=reasons["refused"],
        reasons={reason: launches for reason, launches in reasons.most_common() if launches},
    )


def rules(collected: Collected) -> list[RuleUse]:
    """Return every rule of the policies that these processes' devices ran under, in the files' order; no guards."""
    groups: dict[PageRule, list[Row]] = {rule: [] for page in collected.pages for rule in page.rules}
    open_: dict[PageRule, list[Row]] = {rule: [] for rule in groups}
    for page in collected.pages:
        unrecorded = [row for row in page.rows if not row.recorded]
        for rule in page.rules if unrecorded else ():
            open_[rule] += (row for row in unrecorded if _may_be(rule, row))
        for row in page.rows:
            if row.rule is not None:
                groups[page.rules[row.rule]].append(row)
    return [_use(rule, rows, open_[rule]) for rule, rows in groups.items() if not rule.guard]


def _may_be(rule: PageRule, row: Row) -> bool:
    """Whether it may be the rule of a row that tells none."""
    if row.reason in _OF_NO_RULE or (row.inside is not None and rule.when != "overlapping"):
        return False
    return (row.reason == "rule_leave") == (rule.shape == "leave")


def _use(rule: PageRule, rows: list[Row], unrecorded: list[Row]) -> RuleUse:
    launches, shaped, in_window, _, refused, reasons = count(rows)
    names = len({row.kernel for row in rows} - {""})
    return RuleUse(rule, launches, shaped, in_window, refused, names, reasons, count(unrecorded).reasons)
