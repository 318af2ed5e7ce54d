"""Tests of the tests: bugs planted one at a time, each of which some test must notice. Exits 1 if one survives.

    python -m tools.mutants [NAME ...] [--jobs N] [--list] [--no-baseline]

Every mutant is made in a temporary copy of the tree: text replaced, library built, the tests named beside it run with
the interpreter that runs this. First the same tests must pass unchanged. `stale`: the text to replace is not there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import clusters, common, core, cuda, hip, process

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("shim", "pyshim", "policies", "tools", "tests", "pyproject.toml")
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".hypothesis", "*.o", ".built")
BAD = ("survived", "stale", "tests fail without it")
TIMEOUT = 240


@dataclass(frozen=True)
class Mutant:
    name: str
    changes: tuple[tuple[str, str, str], ...]  # file, old text, new text
    tests: tuple[str, ...]  # arguments of pytest


@dataclass
class Outcome:
    mutant: Mutant
    what: str  # caught, does not build, survived, stale
    seconds: float
    detail: str = ""


def mutants() -> list[Mutant]:
    """Return the rows of all tables; rows of one name are one bug, in several places."""
    found: dict[str, Mutant] = {}
    for table in (core, cuda, hip, common, process, clusters):
        for file, rows in table.ROWS.items():
            for name, old, new, *tests in rows:
                before = found.get(name, Mutant(name, (), ()))
                changes = (*before.changes, (file, old, new))
                found[name] = Mutant(name, changes, tuple(dict.fromkeys((*before.tests, *tests))))
    return list(found.values())


def copy_tree(folder: Path) -> Path:
    tree = folder / "tree"
    tree.mkdir()
    for name in KEPT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=LEFT_OUT)
        else:
            shutil.copy(source, tree / name)
    return tree


def build(tree: Path, only: str = "shim") -> str:
    """The compiler's complaint, or nothing."""
    done = subprocess.run(
        [sys.executable, "shim/build.py", "--only", only, "--cflags=-w"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


def test(tree: Path, selection: Sequence[str]) -> tuple[int, str]:
    """pytest's status, and the line that says most."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *selection]
    environment = {
        **os.environ,
        "OVERLAP_MUTANT": "1",
        "PYTHONPATH": str(tree),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return 1, "it hangs"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (lines or done.stdout.strip().splitlines() or [done.stderr[-200:]])[0 if lines else -1]


def plant(tree: Path, mutant: Mutant) -> bool:
    for name, old, new in mutant.changes:
        path = tree / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(old) < 1:
            return False
        path.write_text(text.replace(old, new), encoding="utf-8")
    return True


def try_one(mutant: Mutant) -> Outcome:
    start = time.monotonic()

    def outcome(what: str, detail: str = "") -> Outcome:
        return Outcome(mutant, what, time.monotonic() - start, detail)

    with tempfile.TemporaryDirectory(prefix="overlap-mutant-") as scratch:
        tree = copy_tree(Path(scratch))
        if not plant(tree, mutant):
            return outcome("stale", "the text to replace is not there")
        complaint = build(tree)
        if complaint:
            return outcome("does not build", complaint.strip().splitlines()[0])
        status, line = test(tree, mutant.tests)
        # 5: no test was selected, which is as bad as none that fails
        return outcome("survived" if status in (0, 5) else "caught", line)


def baseline(mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    """The tests that fail before anything is planted: their mutants would only seem to be caught."""
    selections = {mutant.tests: mutant for mutant in mutants}
    with tempfile.TemporaryDirectory(prefix="overlap-mutant-") as scratch:
        tree = copy_tree(Path(scratch))
        for only in ("shim", "simgpu"):
            complaint = build(tree, only)
            if complaint:
                raise SystemExit(f"mutants: the tree does not build: {complaint}")
        with ThreadPoolExecutor(jobs) as pool:
            found = pool.map(lambda selection: test(tree, selection), selections)
            return [
                Outcome(mutant, "tests fail without it", 0, f"{' '.join(selection)}: {line}")
                for (selection, mutant), (status, line) in zip(selections.items(), found)
                if status
            ]


def main() -> int:
    parser = argparse.ArgumentParser(description="bugs planted one at a time, each of which some test must notice")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests unchanged first")
    options = parser.parse_args()
    every = mutants()
    if options.list:
        for mutant in every:
            print(f"{mutant.name:32} {mutant.changes[0][0]:34} {' '.join(mutant.tests)}")
        return 0
    unknown = set(options.names) - {mutant.name for mutant in every}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    wanted = [mutant for mutant in every if not options.names or mutant.name in options.names]
    outcomes = [] if options.no_baseline else baseline(wanted, options.jobs)
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in itertools.chain(list(outcomes), pool.map(try_one, wanted)):
            outcomes = outcomes if done in outcomes else [*outcomes, done]
            print(f"{done.mutant.name:32} {done.what:15} {done.seconds:5.1f} s  {done.detail[:110]}", flush=True)
    bad = [done for done in outcomes if done.what in BAD]
    print(f"mutants: {len(wanted)} planted, {len(bad)} not caught", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
