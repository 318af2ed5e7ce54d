"""The rows of tools.bench.suites: measured once, committed, and a few of them measured again by every check, so that
the file cannot grow old unseen.
"""

from __future__ import annotations

import csv
import datetime
import io
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.bench.suites.programs import PROGRAMS
from tools.bench.suites.rows import GPUS, LIMIT_PERCENT, Row, measured
from tools.docs.table import Table, Value, percent

DATA = Path("tools/bench/results/suite.csv")
HEADS = ("gpu", "policy", "program", "change", "first", "priority")
ANEW = ".venv/bin/python -m tools.docs.write --measure, then --write"
# A few seconds: a program of each mechanism of the results, on a GPU of each kind.
AGAIN = ("no-communication/gemm", "one-long-kernel/gemm", "overlapped-already/wide", "data-parallel/wide")
AGAIN_ON = ("a40", "h100")


def read(root: Path) -> list[Row]:
    body = (root / DATA).read_text(encoding="utf-8").partition("\n")[2]
    _, *rows = csv.reader(io.StringIO(body))
    return [Row(*row[:3], *map(float, row[3:])) for row in rows]  # type: ignore[arg-type]


def _kept(row: Row) -> tuple[str | float, ...]:
    return tuple(getattr(row, name) for name in HEADS)


def measure(root: Path) -> int:
    """All rows into the file. A minute."""
    rows = [_kept(row) for row in measured(GPUS, PROGRAMS)]
    git = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    head = f"# simulated; tools.docs.write --measure; date={today} commit={commit}\n"
    (root / DATA).write_text(head + Table(HEADS, rows).csv(), encoding="utf-8")
    return 0


def rotten(root: Path) -> Iterator[str]:
    """What is wrong with the file: rows that a run of today has differently."""
    known = {(row.gpu, row.policy, row.program): _kept(row) for row in read(root)}
    for row in measured(AGAIN_ON, [program for program in PROGRAMS if program.name in AGAIN]):
        old = known.get((row.gpu, row.policy, row.program))
        if old != _kept(row):
            yield f"{DATA}: {row.policy} on {row.gpu}, {row.program}: {old} there, {_kept(row)} today: {ANEW}"
            return


def policies(root: Path) -> Table:
    """Best, median and worst of all programs."""
    found = read(root)
    made: list[list[Value]] = []
    for gpu in dict.fromkeys(row.gpu for row in found):
        own = [row for row in found if row.gpu == gpu]
        default = [row for row in own if row.default]
        losing = sum(row.change > LIMIT_PERCENT for row in default)
        paper = [row for row in own if row.policy == f"{gpu}-paper"]
        made.append([gpu, _spread(default), f"{losing} of {len(default)}", _spread(paper)])
    head = "simulated GPU: best, median, worst, %"
    return Table((head, "default", f"lose over {LIMIT_PERCENT:g} %", "published"), made)


def _spread(found: Sequence[Row]) -> str | None:
    changes = sorted(row.change for row in found)
    if not changes:
        return None
    return ", ".join(percent(value) for value in (changes[0], statistics.median(changes), changes[-1]))
