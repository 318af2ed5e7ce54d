"""docs/data/hazards.csv: what can happen to the processes of a job, and the result of the tests that make it happen.

    python -m tools.verify.hazards --measure    # run every test of a hazard (minutes), keep results, write the table
    python -m tools.verify.hazards --from FILE  # the same, from tests that ran: .venv/bin/pytest --junitxml=FILE
    python -m tools.verify.hazards --write      # write the table from the kept results
    python -m tools.verify.hazards --check      # exit with 1, and a line for each hazard or table that is out of date

A hazard is a mark on the test that shows it:
    @pytest.mark.hazard(GROUP, "what would happen to a user", source="https://who reported it")
Where a test runs in several environments, its argument `environment` names them; else it ran on the machine itself.
The kept results are hazards.json beside this file. Needs the built library (make setup).
"""

from __future__ import annotations

import argparse
import ast
import csv
import datetime
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tools" / "verify" / "hazards.json"
TABLE = ROOT / "docs" / "data" / "hazards.csv"
HERE = "here"

# What each covers: docs/explanation/limits.md.
GROUPS = ("peers", "loader", "libc", "preloads", "processes", "resources", "files", "input")
OUTCOMES = ("passed", "failed", "skipped")
HEADS = ("group", "what", "source", "environment", *OUTCOMES, "why_skipped", "tests")


class Hazard(NamedTuple):
    group: str
    what: str
    source: str


class Result(NamedTuple):
    environment: str
    outcome: str  # passed, failed, skipped
    why: str


def declared() -> dict[Hazard, set[str]]:
    """Return every hazard that a test is marked with, and the files of those tests. Raises SystemExit on a mark that
    the table cannot hold."""
    found: dict[Hazard, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id: statement.value
            for statement in module.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(module):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.hazard"):
                continue
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            try:
                group, what = (ast.literal_eval(argument) for argument in node.args)
                values = {word.arg: constants.get(ast.unparse(word.value), word.value) for word in node.keywords}
                source = ast.literal_eval(values["source"]) if "source" in values else ""
            except ValueError:
                raise SystemExit(f"hazards: {place}: the words of a hazard are two strings, and source=") from None
            if group not in GROUPS:
                raise SystemExit(f"hazards: {place}: {group!r} is none of {', '.join(GROUPS)}")
            found.setdefault(Hazard(group, what, source), set()).add(str(path.relative_to(ROOT)))
    return found


def run() -> list[tree.Element]:
    """Run the tests of hazards; return their JUnit test cases."""
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "hazard", "--numprocesses", "auto", "--dist", "loadfile"]
        done = subprocess.run([*command, "--no-loadscope-reorder", f"--junitxml={kept}"], cwd=ROOT, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"hazards: pytest ended with {done.returncode}")
        return list(tree.parse(kept).iter("testcase"))


def kept_of(cases: list[tree.Element]) -> dict[str, Any]:
    rows: dict[Hazard, dict[Result, int]] = {}
    numbers: dict[str, str] = {}
    for case in cases:
        found = [(entry.get("name", ""), entry.get("value", "")) for entry in case.iter("property")]
        environment = next((value for name, value in found if name == "environment" and value), HERE)
        outcome, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome = "skipped" if child.tag == "skipped" else "failed"
                why = (child.get("message") or "").removeprefix("Skipped: ").splitlines()[0]
        for name, value in found:
            if name == "hazard":
                group, what, source = json.loads(value)
                results = rows.setdefault(Hazard(group, what, source or ""), {})
                key = Result(environment, outcome, why)
                results[key] = results.get(key, 0) + 1
            elif name != "environment":
                numbers[name] = value
    return {
        "machine": {
            "date": datetime.date.today().isoformat(),
            "commit": subprocess.run(
                ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
            ).stdout.strip(),
            "kernel": platform.release().split("-")[0],
            "libc": " ".join(platform.libc_ver()),
            "machine": platform.machine(),
            "root": os.geteuid() == 0,
        },
        "numbers": dict(sorted(numbers.items())),
        "hazards": [
            {
                **hazard._asdict(),
                "results": [{**result._asdict(), "tests": count} for result, count in sorted(results.items())],
            }
            for hazard, results in sorted(rows.items(), key=lambda row: order(row[0]))
        ],
    }


def order(hazard: Hazard) -> tuple[int, str]:
    return GROUPS.index(hazard.group), hazard.what


def rows(kept: dict[str, Any], files: dict[Hazard, set[str]]) -> Iterator[tuple[Any, ...]]:
    """One for each hazard that a test is marked with, and environment: its counts of tests by outcome."""
    for row in kept["hazards"]:
        hazard = Hazard(row["group"], row["what"], row["source"])
        if hazard not in files:
            continue
        for environment in dict.fromkeys(result["environment"] for result in row["results"]):
            own = [result for result in row["results"] if result["environment"] == environment]
            counts = (sum(one["tests"] for one in own if one["outcome"] == outcome) for outcome in OUTCOMES)
            why = "; ".join(one["why"] for one in own if one["outcome"] == "skipped")
            yield (*hazard, environment, *counts, why, " ".join(sorted(files[hazard])))


def table(kept: dict[str, Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADS)
    writer.writerows(rows(kept, declared()))
    return out.getvalue()


def findings() -> Iterator[str]:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    known = {Hazard(row["group"], row["what"], row["source"]) for row in kept["hazards"]}
    now = declared()
    for hazard in sorted(set(now) - known, key=order):
        yield f"{sorted(now[hazard])[0]}: {hazard.what!r} was never measured: tools/verify/hazards.py --measure"
    for hazard in sorted(known - set(now), key=order):
        yield f"tools/verify/hazards.json: no test shows {hazard.what!r} any more: tools/verify/hazards.py --measure"
    if TABLE.read_text(encoding="utf-8") != table(kept):
        yield "docs/data/hazards.csv: differs from tools/verify/hazards.json: tools/verify/hazards.py --write"


def main() -> int:
    parser = argparse.ArgumentParser(description="docs/data/hazards.csv, from the marks on tests and their results")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--measure", action="store_true", help="run the tests of hazards, keep the results, write the table"
    )
    what.add_argument("--from", dest="ran", metavar="FILE", help="the same, from tests that ran: JUnit's XML")
    what.add_argument("--write", action="store_true", help="write the table")
    what.add_argument("--check", action="store_true", help="report what is out of date")
    options = parser.parse_args()
    if options.check:
        found = list(findings())
        for line in found:
            print(f"hazards: {line}", file=sys.stderr)
        return 1 if found else 0
    if options.measure or options.ran:
        cases = list(tree.parse(options.ran).iter("testcase")) if options.ran else run()
        KEPT.write_text(json.dumps(kept_of(cases), indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(table(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
