"""Reports as pages for a browser: from the data of `--json` to one file, with nothing in it that asks a network.

report(data) and compare(data, pictures) return the page as text.
"""

from __future__ import annotations

from pyshim.html.compare import compare
from pyshim.html.report import report

__all__ = ["compare", "report"]
