"""The tables of docs/results.md and the files of docs/data, compared with their data or made anew.

    .venv/bin/python -m tools.answers --check [NAME ...]    # exit status 1 and a line for each table that differs
    .venv/bin/python -m tools.answers --write [NAME ...]
    .venv/bin/python -m tools.answers --measure             # simulates the suite again: one to two minutes on two cores

NAME: a table between markers in docs/results.md, or a computed file of docs/data without `.csv`. Needs the built
library and simulated GPU (make setup). --check of `simulated` also runs a few rows of the suite again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyshim.errors import OverlapError
from tools.answers import gpu, programs, rows, sensitivity, simulated, sizes
from tools.answers.table import put

ROOT = Path(__file__).resolve().parents[2]

PAGE = Path("docs/results.md")
DATA = Path("docs/data")
SIMULATED = "simulated"
SMALL = {
    "foreign": programs.foreign,
    "whole": programs.whole,
    "whole-one": programs.whole_one,
    "shaping": programs.shaping,
    "costs": gpu.launch_costs,
    "checks": gpu.checks,
    SIMULATED: simulated.policies,
}
LONG = {
    "sizes": sizes.matrix,
    "sizes-by-kernel": sizes.every_size,
    "sizes-amd": sizes.amd,
    "sizes-limits": sizes.limits,
    "sensitivity": sensitivity.table,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="answers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    for option in ("--check", "--write", "--measure"):
        what.add_argument(option, action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - {*SMALL, *LONG}):
        parser.error(f"no table is called {unknown[0]}; tables: {', '.join((*SMALL, *LONG))}")
    try:
        if options.measure:
            return rows.measure(ROOT)
        return _tables(options.names or [*SMALL, *LONG], options.write)
    except OverlapError as error:
        print(f"answers: {error}{f': {error.hint}' if error.hint else ''}", file=sys.stderr)
        return error.status


def _tables(names: list[str], write: bool) -> int:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    differing = 0
    for name in names:
        path = PAGE if name in SMALL else DATA / f"{name}.csv"
        text = put(page, name, SMALL[name](ROOT)) if name in SMALL else LONG[name](ROOT).csv()
        target = ROOT / path
        before = target.read_text(encoding="utf-8") if target.exists() else None
        if before != text and write:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        elif before != text:
            differing += 1
            again = f".venv/bin/python -m tools.answers --write {name}"
            print(f"{path}: {name} differs from its data: {again}", file=sys.stderr)
        page = text if name in SMALL and write else page
    if SIMULATED in names and not write:
        for line in rows.rotten(ROOT):
            differing += 1
            print(line, file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
