"""Reports as pages for a browser: from the data of `--json` to one file, with nothing in it that asks a network.

report(data) and compare(data, timelines) return the page as text.
"""

from __future__ import annotations

from pyshim.html.report import report

__all__ = ["report"]
