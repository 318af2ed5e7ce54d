"""What the library did in one arm, from the statistics page that the program left in its report folder."""

from __future__ import annotations

from pathlib import Path

from pyshim.errors import OverlapError
from pyshim.stats.file import Unreadable, me
from pyshim.stats.page import Page, read_page


def read_counters(report: Path) -> Page:
    """Return the page of the one process that ran. Raises OverlapError where it left none."""
    pages = sorted(report.glob("*.page"))
    try:
        if len(pages) == 1:
            return read_page(str(pages[0]), me())
        problem = "the library did not load into the demo program"
    except Unreadable as error:
        problem = f"the page of the demo program cannot be read: {error}"
    raise OverlapError(problem, "overlap-run --strict --policy observe PROGRAM says what is in the way")
