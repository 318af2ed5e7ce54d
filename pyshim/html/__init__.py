"""Reports as pages for a browser: from the data of `--json` to one file, with nothing in it that asks a network.

report(data), compare(data, pictures) and compare_reports(data) return the page as text.
"""

from __future__ import annotations

from pyshim.html.paces import compare_reports
from pyshim.html.report import report
from pyshim.html.traces import compare

__all__ = ["compare", "compare_reports", "report"]
