"""The rows of tools.bench.suites: measured once, committed, and a few of them measured again by every check, so that
the file cannot grow old unseen.
"""

from __future__ import annotations

import csv
import datetime
import io
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Data:
    date: str
    commit: str
    rows: tuple[Row, ...]


def read(root: Path) -> Data:
    head, _, body = (root / DATA).read_text(encoding="utf-8").partition("\n")
    words = dict(word.split("=", 1) for word in head.split() if "=" in word)
    return Data(words["date"], words["commit"], tuple(_rows(body)))


def _rows(text: str) -> Iterator[Row]:
    for gpu, policy, program, *numbers in list(csv.reader(io.StringIO(text)))[1:]:
        change, first, priority = map(float, numbers)
        yield Row(gpu, policy, program, change, first, priority)


def written(rows: Iterable[Row], date: str, commit: str) -> str:
    out = io.StringIO()
    print(f"# simulated; tools.docs.write --measure; date={date} commit={commit}", file=out)
    made = csv.writer(out, lineterminator="\n")
    made.writerow(HEADS)
    made.writerows(_kept(row) for row in rows)
    return out.getvalue()


def _kept(row: Row) -> tuple[str | float, ...]:
    return tuple(getattr(row, name) for name in HEADS)


def measure(root: Path) -> int:
    """All rows into the file. A minute."""
    found = measured(GPUS, PROGRAMS)
    git = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    (root / DATA).write_text(written(found, today, commit), encoding="utf-8")
    return 0


def rotten(root: Path) -> Iterator[str]:
    """What is wrong with the file: rows that a run of today has differently."""
    known = {(row.gpu, row.policy, row.program): _kept(row) for row in read(root).rows}
    for row in measured(AGAIN_ON, [program for program in PROGRAMS if program.name in AGAIN]):
        old = known.get((row.gpu, row.policy, row.program))
        if old != _kept(row):
            yield f"{DATA}: {row.policy} on {row.gpu}, {row.program}: {old} there, {_kept(row)} today: {ANEW}"
            return


def policies(root: Path) -> Table:
    """Best, median and worst of all programs."""
    found = read(root).rows
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
