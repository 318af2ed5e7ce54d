"""docs/hazards.md: what a preload library meets in the processes of a job, and what became of it here.

    python tools/hazards.py --measure    # runs every test of a hazard (minutes), keeps what came out, writes the page
    python tools/hazards.py --from FILE  # the same, of tests that were run: .venv/bin/pytest --junitxml=FILE
    python tools/hazards.py --write      # the page from what was kept
    python tools/hazards.py --check      # exit status 1 and a line for each hazard, or page, that is not of today

A hazard is a mark on the test that shows it:
    @pytest.mark.hazard(GROUP, "what would happen to a user", source="https://who reported it")
Where a test runs in several environments, its argument `environment` names them; else it ran on the machine itself.
What was kept is hazards.json beside this file. Needs the built library (make setup).
"""

from __future__ import annotations

import argparse
import ast
import datetime
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

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tools" / "hazards.json"
PAGE = ROOT / "docs" / "hazards.md"
HERE = "here"

GROUPS = {
    "peers": "What users of other interposers saw",
    "loader": "The dynamic loader",
    "libc": "Other C libraries and processors",
    "preloads": "Other preloaded libraries",
    "processes": "Processes, threads and signals",
    "resources": "What a process may not have",
    "files": "Files, folders and who owns them",
    "input": "Hostile input",
}

HEAD = """\
# Hazards

<!-- Made by `.venv/bin/python tools/hazards.py --write`; compared in CI. Do not edit. -->

A preloaded library enters every process of a job. Each row is something that can happen there, most of it seen by users
of other libraries (linked), and the tests that make it happen under ours: real processes on the simulated GPU, compared
with the same process without the library. Who could do what through us is [another page](threats.md).

**Anew**: `.venv/bin/python tools/hazards.py --measure`, as root on Debian. CI runs these tests, too, and compares the
rows with their marks.
"""


class Hazard(NamedTuple):
    group: str
    what: str
    source: str


class Result(NamedTuple):
    environment: str
    outcome: str  # passed, failed, skipped
    why: str


def declared() -> dict[Hazard, set[str]]:
    """Every hazard that a test is marked with, and the files of those tests. Raises SystemExit on a mark that the table
    cannot hold."""
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
    """The tests of hazards, as JUnit's format tells of them."""
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
    return list(GROUPS).index(hazard.group), hazard.what


def cell(results: list[dict[str, Any]]) -> str:
    """What came out in one environment: the worst of it."""
    counts = {outcome: sum(r["tests"] for r in results if r["outcome"] == outcome) for outcome in OUTCOMES}
    if counts["failed"]:
        return f"**fails** ({counts['failed']} of {sum(counts.values())})"
    if not counts["passed"]:
        return f"not run: {results[0]['why']}"
    return f"pass ({counts['passed']})" + (f", {counts['skipped']} not run" if counts["skipped"] else "")


OUTCOMES = ("passed", "failed", "skipped")


def group_table(rows: list[dict[str, Any]], files: dict[Hazard, set[str]]) -> Iterator[str]:
    yield "| what would happen | result (tests) | where |"
    yield "|---|---|---|"
    for row in rows:
        hazard = Hazard(row["group"], row["what"], row["source"])
        places: dict[str, list[dict[str, Any]]] = {}
        for result in row["results"]:
            places.setdefault(result["environment"], []).append(result)
        said = cell(places[HERE]) if HERE in places else ""
        elsewhere = [name for name in places if name != HERE]
        if elsewhere:
            said = "; ".join(filter(None, [said, f"[{len(elsewhere)} environments](#by-environment)"]))
        what = f"[{hazard.what}]({hazard.source})" if hazard.source else hazard.what
        tests = ", ".join(f"[{Path(file).stem.removeprefix('test_')}](../{file})" for file in sorted(files[hazard]))
        yield f"| {what.replace('|', chr(92) + '|')} | {said} | {tests} |"


def environments(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Hazards that were met in several environments."""
    several = [row for row in rows if any(result["environment"] != HERE for result in row["results"])]
    names = sorted({result["environment"] for row in several for result in row["results"]} - {HERE})
    if not several:
        return
    yield "## By environment\n"
    yield f"| what would happen | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    for row in several:
        cells = []
        for name in names:
            results = [result for result in row["results"] if result["environment"] == name]
            cells.append(cell(results) if results else "")
        yield f"| {row['what']} | {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
    yield ""


def page(kept: dict[str, Any]) -> str:
    machine, files = kept["machine"], declared()
    rows = [row for row in kept["hazards"] if Hazard(row["group"], row["what"], row["source"]) in files]
    counts = {
        outcome: sum(r["tests"] for row in rows for r in row["results"] if r["outcome"] == outcome)
        for outcome in OUTCOMES
    }
    lines = [HEAD]
    lines.append(
        f"**Last time**: {machine['date']}, {machine['libc']}, {machine['machine']}, Linux {machine['kernel']}"
        f"{', as root' if machine['root'] else ''}, commit {machine['commit']}: {len(rows)} hazards, "
        f"{counts['passed']:,} tests passed, {counts['failed']} failed, {counts['skipped']} were not run.\n"
    )
    for group, title in GROUPS.items():
        chosen = [row for row in rows if row["group"] == group]
        if chosen:
            lines += [f"## {title}\n", *group_table(chosen, files), ""]
    lines += environments(rows)
    if kept["numbers"]:
        lines += ["## Counted on the way\n"]
        lines += [f"- {name}: {value}" for name, value in kept["numbers"].items()]
        lines.append("")
    return "\n".join(lines)


def findings() -> Iterator[str]:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    known = {Hazard(row["group"], row["what"], row["source"]) for row in kept["hazards"]}
    now = declared()
    for hazard in sorted(set(now) - known, key=order):
        yield f"{sorted(now[hazard])[0]}: {hazard.what!r} was never measured: tools/hazards.py --measure"
    for hazard in sorted(known - set(now), key=order):
        yield f"tools/hazards.json: no test shows {hazard.what!r} any more: tools/hazards.py --measure"
    if PAGE.read_text(encoding="utf-8") != page(kept):
        yield "docs/hazards.md: not what the data say: tools/hazards.py --write"


def main() -> int:
    parser = argparse.ArgumentParser(description="docs/hazards.md, from the marks on tests and what came out of them")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--measure", action="store_true", help="run the tests of hazards, keep what came out, write the page"
    )
    what.add_argument("--from", dest="ran", metavar="FILE", help="the same, of tests that were run: JUnit's XML")
    what.add_argument("--write", action="store_true", help="write the page")
    what.add_argument("--check", action="store_true", help="say what is not of today")
    options = parser.parse_args()
    if options.check:
        found = list(findings())
        for line in found:
            print(f"hazards: {line}", file=sys.stderr)
        return 1 if found else 0
    if options.measure or options.ran:
        cases = list(tree.parse(options.ran).iter("testcase")) if options.ran else run()
        KEPT.write_text(json.dumps(kept_of(cases), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
