"""Lines that programs of this folder print, as a file of results: what differs only in its repetition is one row.

    python -m tools.gpu.pack WHAT COMMAND [LINES ...] > results/NAME.json

What a line says before `repetition` names its row. What comes after it is kept as a list, one element for each
repetition (null: the line did not say), or once where all are the same; counts ({value: count}) are added up. Other
lines are kept as they are. A line of an arm alone ({"arm": ..., "process": ...}) is said of all lines after it. The
head is that of machine.py, or the first line if that is one.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools.gpu import machine

Row = dict[str, Any]
REPETITION, REPETITIONS = "repetition", "repetitions"
OF_ARMS = {"arm", "process", "round"}
HEAD, DESCRIPTION = "begun", "multiprocessors"  # of machine.py; of the first line of a program


def pack(lines: Iterable[Row]) -> list[Row]:
    packed: dict[str, list[Row]] = {}
    arm: Row = {}
    for line in lines:
        if line.keys() <= OF_ARMS:
            arm = line
        elif HEAD not in line and DESCRIPTION not in line:
            whole = {**arm, **line}
            keys = list(whole)
            name = {key: whole[key] for key in keys[: keys.index(REPETITION)]} if REPETITION in whole else whole
            packed.setdefault(json.dumps(name), []).append({key: whole[key] for key in keys if key not in name})
    return [_row(json.loads(name), measured) for name, measured in packed.items()]


def _row(name: Row, measured: list[Row]) -> Row:
    if not measured[0]:
        return name
    keys = dict.fromkeys(key for one in measured for key in one if key != REPETITION)
    return {**name, REPETITIONS: len(measured), **{key: _together([one.get(key) for one in measured]) for key in keys}}


def _together(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return sum((Counter(value) for value in values), Counter())
    return values[0] if all(value == values[0] for value in values) else values


def unpack(rows: Iterable[Row]) -> Iterator[Row]:
    """Return the lines again; counts stay added up."""
    for row in rows:
        keys = list(row)
        at = keys.index(REPETITIONS) if REPETITIONS in row else len(keys)
        for repetition in range(row.get(REPETITIONS, 1)):
            line = {key: row[key] for key in keys[:at]}
            for key in keys[at + 1 :]:
                line[key] = row[key][repetition] if isinstance(row[key], list) else row[key]
            yield line


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    texts = [Path(name).read_text(encoding="utf-8") for name in sys.argv[3:]] or [sys.stdin.read()]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    head = lines[0] if lines and HEAD in lines[0] else machine.describe()
    parts = {**head, "what": sys.argv[1], "command": sys.argv[2]}
    print(json.dumps(parts, indent=1, ensure_ascii=False)[:-2] + ',\n "samples": [')
    rows = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in pack(lines))
    print("  " + ",\n  ".join(rows) + "\n ]\n}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
