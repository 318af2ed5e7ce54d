"""The report for people: rows of tables."""

from __future__ import annotations

import shlex
import time
from collections import Counter

from pyshim import _native
from pyshim.launch.folder import Run
from pyshim.report.collect import Collected
from pyshim.report.summary import policy_of, totals
from pyshim.stats.page import Page, names

Rows = list[list[str]]


def headline(run: Run) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    command = shlex.join(run.command) if run.command else "environment only"
    simulated = f" on a simulated GPU ({run.simulate})" if run.simulate else ""
    return f"run {run.id}, {began}{simulated}: {command}"


def variables(run: Run) -> str:
    """What its policies set, or the empty string."""
    values = ", ".join(f"{name}={value}" for name, value in run.environment.items())
    return f"run {run.id} set for the program: {values}" if values else ""


def devices(collected: Collected) -> list[str]:
    """One line per kind of GPU and policy."""
    counts = Counter((device.name, device.policy) for page in collected.pages for device in page.devices)
    return [
        f"{name}: {'policy ' + policy if policy else 'no policy, only counted'}, opened {count} x"
        for (name, policy), count in sorted(counts.items(), key=str)
    ]


def processes(collected: Collected) -> Rows:
    rows = [_row(page, collected) for page in collected.pages]
    if len(rows) > 1:
        total = totals(collected.pages)
        counts = [f"{total[name]:,}" for name in ("launches", "shaped", "communication", "raised", "refused")]
        rows.append([f"all {len(rows)}", "", "", "", *counts])
    return rows


def _row(page: Page, collected: Collected) -> list[str]:
    return [
        f"{page.host}:{page.pid}",
        "-" if page.rank is None else str(page.rank),
        page.program.rpartition("/")[2] + (" (forked)" if page.forked else ""),
        policy_of(page, collected) or "-",
        *(f"{count:,}" for count in (page.launches, page.shaped, page.communication, page.raised, page.refused)),
    ]


def reasons(collected: Collected) -> Rows:
    total = totals(collected.pages)
    library = _native.library()
    sentences = {
        name: _native.text(library.overlap_reason_sentence(index))
        for index, name in enumerate(names(library.overlap_reason_name))
    }
    counted = sorted(total["reasons"].items(), key=lambda item: (-item[1], item[0]))
    return [
        [f"{count:,}", f"{100 * count / total['launches']:.1f} %", name, sentences.get(name, "")]
        for name, count in counted
    ]


def ways(collected: Collected) -> Rows:
    total = totals(collected.pages)
    rows = [[f"{count:,}", name] for name, count in total["entry_points"].items() if count]
    more = {"graph_launches": "launches of whole graphs", "streams_raised": "streams raised when they were created"}
    return rows + [[f"{total[name]:,}", words] for name, words in more.items() if total[name]]
