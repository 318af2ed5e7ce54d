"""The overlap suite with stand-ins: every arm of every cell on one GPU, real or simulated, as one JSON file.

    standins.py run --out FILE [--rounds N] [--limit SECONDS] [--only WORD,...] [--simulate h200[:RULE]]
    standins.py check               # each kernel once: is its result that of a plain loop?
    standins.py changes FILE [REAL] # of every arm against `plain`, per cent, medians of paired ratios; with REAL: how
                                    # far those of simulated primary cells are from its own
    standins.py costs RESULTS.json  # costs for the simulated GPU, derived from a real run, on stdout

README.md beside this says what is measured and how. Exit status: 0 done; 1 something failed, or a result is wrong (the
file has what was measured before); 2 the options are wrong, or there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.gpu import machine
from tools.gpu.overlap import changes, costs
from tools.gpu.overlap.arms import known
from tools.gpu.overlap.cells import BARE, COPY, KINDS, Cell, cells
from tools.gpu.overlap.measure import CURVES, Suite
from tools.gpu.overlap.servers import Failed, Servers

HERE = Path(__file__).resolve().parent

RULES = ("hold", "drain", "backfill")
PARTS = ("primary", "secondary", "curves", "alone", "collectives", "quantisation")
COSTS = HERE / "costs.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="measure")
    run.add_argument("--out", type=Path, required=True)
    run.add_argument("--rounds", type=int, help="of the primary cells; a third for others (default: 30, simulated 2)")
    run.add_argument("--warm", type=int, help="unmeasured samples of each arm before a cell (default: 5, simulated 2)")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--limit", type=float, default=300, help="seconds after which nothing further is begun")
    run.add_argument(
        "--only", default="", help=f"kinds, arms, parts ({', '.join(PARTS)}) and ratios; several with commas"
    )
    run.add_argument("--simulate", metavar="GPU[:RULE]", help="h200: all three rules; or h200:hold and so on")
    verbs.add_parser("check", help="compare results")
    show = verbs.add_parser("changes", help="of every arm against plain")
    show.add_argument("results", type=Path)
    show.add_argument("real", type=Path, nargs="?")
    derive = verbs.add_parser("costs", help="costs for the simulated GPU")
    derive.add_argument("results", type=Path)
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="standins-") as folder:
            if options.verb == "run":
                return _run(options, Path(folder))
            if options.verb == "check":
                return _check(Path(folder))
            if options.verb == "changes":
                return changes.write(options.results, options.real)
            return costs.write(options.results, Path(folder))
    except Failed as error:
        print(f"standins: error: {error}", file=sys.stderr)
        if error.help:
            print(f"standins: help: {error.help}", file=sys.stderr)
        return error.status


def _run(options: argparse.Namespace, folder: Path) -> int:
    only = _only(options.only)
    simulated = _simulated(options.simulate)
    if not options.out.parent.is_dir():
        raise Failed(f"--out {options.out}: there is no folder {options.out.parent}", None, 2)
    rounds = options.rounds if options.rounds is not None else (2 if simulated else 30)
    if rounds < 1:
        raise Failed("--rounds is a number from 1", None, 2)
    warm = options.warm if options.warm is not None else (2 if simulated else 5)
    result: dict[str, Any] = {
        "version": 1,
        "set": "overlap-simulated" if simulated else "overlap-standins",
        "machine": {**machine.describe(), **({"simulated": True} if simulated else {})},
        "settings": {"rounds": rounds, "warm": warm, "seed": options.seed, "only": options.only},
        "kernels": {},
        "runs": [],
    }
    begun = time.monotonic()
    for rule in simulated or (None,):
        servers = Servers(folder, rule and f"h200:{rule}", costs.Costs(COSTS).text if rule else None)
        limit = options.limit - (time.monotonic() - begun)
        suite = Suite(servers, rounds, warm, options.seed, limit)
        made: dict[str, Any] = {"rule": rule, "cells": [], "curves": []}
        result["runs"].append(made)
        try:
            _measure(suite, made, result["kernels"], only, lambda: _keep(options.out, result))
        finally:
            servers.end()
        _keep(options.out, result)
        print(f"standins: {rule or 'real GPU'}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return 0


def _measure(
    suite: Suite, made: dict[str, Any], kernels: dict[str, Any], only: dict[str, list[str]], keep: Callable[[], None]
) -> None:
    kinds = [kind for kind in KINDS if not only["kinds"] or kind in only["kinds"]]
    kernels.update(suite.describe(kinds))

    def wanted(part: str) -> bool:
        return (not only["parts"] or part in only["parts"]) and not suite.late(part)

    def measure(some: Sequence[Cell]) -> None:
        for cell in some:
            if cell.computation not in kinds or (only["ratios"] and f"{cell.ratio:g}" not in only["ratios"]):
                continue
            if suite.late(cell.name):
                return
            made["cells"].append(suite.cell(cell, only["arms"]))
            keep()

    if wanted("primary"):
        measure([cell for cell in cells() if cell.primary])
    if wanted("alone"):
        made["alone"] = {kind: suite.alone(kind) for kind in kinds}
    if wanted("curves"):
        made["curves"] = [suite.curve(kind) for kind in CURVES if kind in kinds]
    if suite.executed and wanted("collectives"):
        made["collectives"] = suite.collectives(kinds[0])
    if suite.executed and "persistent" in kinds and wanted("quantisation"):
        made["quantisation"] = suite.quantisation(False) + suite.quantisation(True)
    keep()
    if wanted("secondary"):
        measure([cell for cell in cells() if not cell.primary and (suite.executed or cell.offset is None)])


def _keep(file: Path, result: dict[str, Any]) -> None:
    file.write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")


def _only(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"kinds": [], "arms": [], "parts": [], "ratios": []}
    ratios = {f"{cell.ratio:g}" for cell in cells()}
    for word in filter(None, text.split(",")):
        for group, member in (("kinds", word in KINDS), ("parts", word in PARTS), ("ratios", word in ratios)):
            if member:
                found[group].append(word)
                break
        else:
            if not known(word):
                raise Failed(f"--only: nothing is called {word!r}", f"{', '.join((*KINDS, *PARTS))}, or an arm", 2)
            found["arms"].append(word)
    return found


def _simulated(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    gpu, _, rule = text.partition(":")
    if gpu != "h200" or (rule and rule not in RULES):
        raise Failed(
            f"--simulate {text}: only h200 has kernels here", f"h200, or h200: and one of {', '.join(RULES)}", 2
        )
    return (rule,) if rule else RULES


def _check(folder: Path) -> int:
    servers = Servers(folder, None)
    wrong = 0
    try:
        for kernel in (*KINDS, COPY):
            answer = servers.at(BARE, kernel, {}).ask(f"check {kernel}")
            print(json.dumps({"kernel": kernel, **answer}))
            wrong += answer["wrong"]
    finally:
        servers.end()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
