"""`overlap report --follow`: the report of a running job, redrawn on a terminal; elsewhere one line at a time."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from pyshim.errors import OverlapError

if TYPE_CHECKING:
    from pyshim.report.collect import Collected

INTERVAL = 2.0  # seconds
LEAST, MOST = 0.1, 3600.0
Show = Callable[["Collected"], None]
Look = Callable[[], "Collected"]
# What grows from look to look; not the numbers in names, as of a rule (h100:14) or a process (node1:7).
_COUNT = re.compile(r"(?<![\w:.-])\d[\d,.]*(?!\w)")


def follow(look: Look, interval: float, show: Show) -> Collected:
    """Show the report until all processes have ended, or Ctrl-C, and return what was read last.

    look: reads the folder. show: prints a report, the most important lines first, because a low screen cuts it. Raises
    OverlapError if there was no folder."""
    from pyshim.cli import ui

    course = _Course(look)
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

    def __init__(self, look: Look) -> None:
        self.collect = look
        self.now: Collected | None = None
        self.missing = ""  # why there is nothing to see yet
        self.rate: float | None = None  # launches a second since the look before
        self.seen = 0.0  # the clock at the last look
        self.said: set[str] = set()  # findings of earlier lines, without their counts
        self.looks_over = 0  # looks in a row at which every process had ended
        self.look()

    @property
    def is_over(self) -> bool:
        """Twice: between one program of a script and the next there is a moment without any process."""
        return self.looks_over > 1

    def look(self) -> None:
        before = _launches(self.now)
        try:
            self.now, self.missing = self.collect(), ""
        except OverlapError as error:
            self.missing = error.sentence  # where it has gone since, what was seen stands
        seen = time.monotonic()
        if before is not None:
            self.rate = max(0.0, ((_launches(self.now) or 0) - before) / max(seen - self.seen, 1e-9))
        self.seen = seen
        self.looks_over = self.looks_over + 1 if self.now and _all_ended(self.now) else 0

    def last(self) -> Collected:
        if self.now is None:
            raise OverlapError(self.missing)
        return self.now

    def line(self) -> str:
        """Return the hour, the counters, the launches per second, and the first warning that is new."""
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
        if found:
            words.append(f"{len(found):,} {'warning' if len(found) == 1 else 'warnings'}")
        # One in a line: the next line has the next one.
        new = next((sentence for sentence in found if _COUNT.sub("", sentence) not in self.said), None)
        if new:
            self.said.add(_COUNT.sub("", new))
        return f"{hour} {', '.join(words)}" + (f": {new}" if new else "")


def _launches(collected: Collected | None) -> int | None:
    return sum(page.launches for page in collected.pages) if collected and collected.pages else None


def _all_ended(collected: Collected) -> bool:
    from pyshim.report.waiting import is_over, living

    if not collected.pages:
        return _came_to_nothing(collected)
    everybody = cache(living)
    over = {(page.host, page.pid) for page in collected.pages if is_over(page, everybody)}
    # A forked child ends by _exit as a rule and does not say so: elsewhere, whose parent has ended is over, too.
    return all(
        (page.host, page.pid) in over or (page.forked and (page.host, page.parent) in over) for page in collected.pages
    )


def _came_to_nothing(collected: Collected) -> bool:
    """Return whether runs without a page have no process left that may still open a GPU.

    Known only to the user who started them, on the host where they were started."""
    from pyshim.report.waiting import carried_on

    try:
        ours = all(os.stat(directory).st_uid == os.geteuid() for directory in collected.directories)
    except OSError:  # the folder has gone
        ours = False
    here = all(run.host == os.uname().nodename for run in collected.runs)
    return bool(collected.runs) and ours and here and carried_on({run.id for run in collected.runs}) == set()
