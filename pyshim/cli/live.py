"""`overlap report --follow`: the report of a run that goes on, drawn again and again; a line each time where nobody
looks at a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pyshim.errors import OverlapError

if TYPE_CHECKING:
    from pyshim.report.collect import Collected

INTERVAL = 2.0  # seconds
LEAST, MOST = 0.1, 3600.0
Show = Callable[["Collected"], None]


def follow(directories: Sequence[str], interval: float, show: Show) -> Collected:
    """Until all processes have ended, or Ctrl-C. show: says the whole report. Returns what was there last; raises
    OverlapError where there was not even a folder."""
    from pyshim.cli import ui

    course = _Course(directories)
    try:
        if ui.redraws():
            with ui.redrawn() as draw:
                while not course.is_over:
                    draw(lambda: _frame(course, show))
                    time.sleep(interval)
                    course.look()
        else:
            while not course.is_over:
                ui.say(course.line())
                time.sleep(interval)
                course.look()
            ui.say(course.line())
    except KeyboardInterrupt:
        course.look()
    return course.last()


def _frame(course: _Course, show: Show) -> None:
    from pyshim.cli import ui

    ui.show(ui.paint(course.line(), "bold"))
    if course.now and course.now.pages:
        show(course.now)


class _Course:
    """What a run has come to, look after look."""

    def __init__(self, directories: Sequence[str]) -> None:
        self.directories = directories
        self.now: Collected | None = None
        self.missing = ""  # why there is nothing to see yet
        self.rate: float | None = None  # launches a second since the look before
        self.seen = 0.0  # the clock at the last look
        self.said: list[str] = []  # findings of earlier lines
        self.looks_over = 0  # looks in a row at which every process had ended
        self.look()

    @property
    def is_over(self) -> bool:
        """Twice: between one program of a script and the next there is a moment without any process."""
        return self.looks_over > 1

    def look(self) -> None:
        from pyshim.report.collect import collect

        before = _launches(self.now)
        try:
            self.now, self.missing = collect(*self.directories), ""
        except OverlapError as error:
            self.missing = error.sentence  # where it has gone since, what was seen stands
        seen = time.monotonic()
        if before is not None:
            self.rate = max(0.0, ((_launches(self.now) or 0) - before) / max(seen - self.seen, 1e-9))
        self.seen = seen
        self.looks_over = self.looks_over + 1 if self.now and self.now.pages and _all_ended(self.now) else 0

    def last(self) -> Collected:
        if self.now is None:
            raise OverlapError(self.missing)
        return self.now

    def line(self) -> str:
        """The hour, how much there is, how fast it grows, and what is new to warn of."""
        from pyshim.report.findings import findings
        from pyshim.report.summary import totals

        hour = time.strftime("%H:%M:%S")
        if self.now is None or not self.now.pages:
            return f"{hour} waiting for the first process that uses a GPU" + f"; {self.missing}" * bool(self.missing)
        pages, total = self.now.pages, totals(self.now.pages)
        ended = sum(page.ended for page in pages)
        words = [
            f"{len(pages):,} {'process' if len(pages) == 1 else 'processes'}" + f" ({ended:,} ended)" * bool(ended),
            f"{total['launches']:,} launches" + ("" if self.rate is None else f", {self.rate:,.0f}/s"),
            *(f"{name} {total[name]:,}" for name in ("shaped", "raised", "refused")),
        ]
        found = findings(self.now)
        new = [sentence for sentence in found if sentence not in self.said]
        self.said = found
        if found:
            words.append(f"{len(found):,} {'warning' if len(found) == 1 else 'warnings'}")
        return f"{hour} {', '.join(words)}" + (f": {new[-1]}" if new else "")


def _launches(collected: Collected | None) -> int | None:
    return sum(page.launches for page in collected.pages) if collected and collected.pages else None


def _all_ended(collected: Collected) -> bool:
    from pyshim.report.waiting import is_over, living

    everybody = cache(living)
    over = {(page.host, page.pid) for page in collected.pages if is_over(page, everybody)}
    # A forked child ends by _exit as a rule and does not say so: elsewhere, whose parent has ended is over, too.
    return all(
        (page.host, page.pid) in over or (page.forked and (page.host, page.parent) in over) for page in collected.pages
    )
