"""The rows of tools/bench/suite: measured once, committed, and a few of them measured again by every check, so that the
file cannot grow old unseen.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from pyshim.enums import DISPATCH_RULES

RULES = ",".join(DISPATCH_RULES)
DATA = Path("tools/bench/results/suite.csv")
ANEW = ".venv/bin/python -m tools.answers --measure, then --write"
# A few seconds: a program of each mechanism of the results, on a GPU of each kind.
AGAIN = (
    *("--gpu", "a40,h100"),
    *("--program", "no-communication/gemm,one-long-kernel/gemm,overlapped-already/wide,data-parallel/wide"),
)


@dataclass(frozen=True)
class Row:
    """Per cent of virtual time against the program as written; negative is faster."""

    gpu: str
    rule: str
    policy: str
    program: str
    change: float  # steps 4 to 6
    first: float  # steps 1 to 3
    priority: float  # priority of communication alone, without the library
    shaped: float  # share of the launches

    @property
    def shape(self) -> str:
        """Of the program: several programs have one."""
        return self.program.partition("/")[0]


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
    for gpu, rule, policy, program, *numbers in list(csv.reader(io.StringIO(text)))[1:]:
        yield Row(gpu, rule, policy, program, *map(float, numbers))


def written(rows: Iterable[Row], date: str, commit: str) -> str:
    out = io.StringIO()
    print(f"# simulated; tools/bench/suite --rule {RULES} --json; date={date} commit={commit}", file=out)
    made = csv.writer(out, lineterminator="\n")
    made.writerow(field.name for field in fields(Row))
    made.writerows(map(astuple, rows))
    return out.getvalue()


def suite(root: Path, *arguments: str) -> list[Row]:
    """Of a run of the suite, under all rules."""
    command = [sys.executable, str(root / "tools/bench/suite"), "--rule", RULES, "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.rstrip())
    return [_row(row) for row in json.loads(done.stdout)]


def _row(row: dict[str, Any]) -> Row:
    return Row(
        *(row[name] for name in ("gpu", "rule", "policy", "program")),
        *(row[name] for name in ("change_percent", "first_change_percent", "priority_change_percent", "shaped_share")),
    )


def measure(root: Path) -> int:
    """All rows into the file. Minutes."""
    found = suite(root)
    git = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    (root / DATA).write_text(written(found, today, commit), encoding="utf-8")
    return 0


def rotten(root: Path) -> Iterator[str]:
    """What is wrong with the file: rows that a run of today has differently."""
    known = {(row.gpu, row.rule, row.policy, row.program): row for row in read(root).rows}
    again = suite(root, *AGAIN)
    for row in again:
        old = known.get((row.gpu, row.rule, row.policy, row.program))
        if old != row:
            yield f"{DATA}: {row.policy} on {row.gpu}, {row.rule}, {row.program}: {old} there, {row} today: {ANEW}"
            return
