"""The half of the overlap suite with real libraries and real NCCL: facts in one file, samples paired by index.

    python -m tools.gpu.overlap.libraries --out FILE [--gpus 1|2] [--rounds N] [--limit SECONDS] [--only WORDS ...]

One GPU: NCCL's own SendRecv from a rank to itself. Two: its all-reduce. An arm that needs something set before a
process starts has processes of its own (library_plan.py); all are started at once, wait, and take turns in blocks of
random order. In a block each arm is measured once, so sample i of one arm pairs with sample i of another. Sizes of
communication are chosen once, from its times alone and those of the computation. Before a cell's first block and after
its last, each arm's results are digested: "differences" counts arms whose bits are not those of `plain`.

WORDS: a kind, a pattern, `primary`, or several with commas that must all hold. Policies need overlap-run and overlap
in PATH; without them their arms are left out, and the file says so. Beside what every file of the suite has: policies
(what the library counted for each arm), host_ms, bytes, digests, left_out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.gpu.machine import describe
from tools.gpu.overlap import library_plan as plan
from tools.gpu.overlap.arms import blocks_of
from tools.gpu.overlap.computations import WHAT
from tools.gpu.overlap.turns import Ranks

HERE = Path(__file__).resolve().parent
WARM, SEED = 3, 1
GPU = "h200"  # what policies, sizes and numbers of blocks of this suite are for
TIMES = (
    "ms: from the moment both are ready until both have ended. computation_ms: from its first kernel's turn to the end "
    "of its last one. communication_ms: from when it was ready to its end, its waiting included. Sums of several."
)


class Suite:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder, self.begun = options, folder, time.monotonic()
        self.cells = plan.chosen(options.only)
        self.communication, self.leave = plan.COMMUNICATION[options.gpus]
        able = bool(shutil.which("overlap-run") and shutil.which("overlap"))
        self.left_out: list[str] = [] if able else ["policies: overlap-run or overlap is not in PATH"]
        self.processes = plan.processes(options.gpus, self.cells, able)
        self.run: dict[str, Any] = {"rule": None, "cells": [], "curves": [], "policies": {}, "processes": {}}
        self.result: dict[str, Any] = {
            "version": 1,
            "set": "overlap-libraries" if options.gpus == 1 else "overlap-two-gpus",
            "machine": describe(),
            "settings": {"rounds": options.rounds, "warm": WARM, "seed": SEED, "gpus": options.gpus, "times": TIMES},
            "kernels": {},
            "runs": [self.run],
            "left_out": self.left_out,
        }

    def say(self, *words: object) -> None:
        print(f"[{time.monotonic() - self.begun:.0f}s]", *words, file=sys.stderr, flush=True)

    def write(self) -> None:
        self.options.out.write_text(json.dumps(self.result) + "\n")

    def start(self) -> None:
        """All at once; what does not come up is left out."""
        self.ranks: dict[str, Ranks] = {}
        for number, process in enumerate(self.processes):
            command = [sys.executable, "-m", "tools.gpu.overlap.library_rank"]
            if process.policy:
                report = str(self.report_of(process))
                command = ["overlap-run", "--quiet", "--policy", process.policy, "--report", report, *command]
            port = 29600 + number
            self.ranks[process.name] = Ranks(process.name, command, process.environment, self.options.gpus, port)
        for name, ranks in self.ranks.items():
            self.run["processes"][name] = {"ready": ranks.answers(150)}
        self.say(f"{sum(not ranks.broken for ranks in self.ranks.values())} of {len(self.ranks)} processes are ready")

    def sizes(self, kind: str) -> dict[float, int]:
        """Bytes of one collective, by ratio."""
        main = self.ranks["main"]
        pattern = "step" if kind == "llama" else "one"
        found = main.ask({"do": "alone", "kind": kind, "pattern": pattern, "sizes": plan.TRIED}, 60)[0]
        if found is None:
            return {}
        ratios = {cell.ratio for cell in self.cells if cell.kind == kind}
        return {
            ratio: plan.size_for(ratio * found["computation_ms"], plan.TRIED, found["communication_ms"])
            for ratio in ratios
        }

    def measure(self, cell: plan.Cell, count: int) -> dict[str, Any]:
        takers = {
            process.name: process.ways(cell)
            for process in self.processes
            if process.ways(cell) and not self.ranks[process.name].broken
        }
        request = {"do": "prepare", "kind": cell.kind, "pattern": cell.pattern, "bytes": count, "leave": self.leave}
        for name, arms in takers.items():
            self.ranks[name].tell({**request, "ways": list(arms.values())})
        host = {name: self.ranks[name].answers(60) for name in takers}
        takers = {name: arms for name, arms in takers.items() if None not in host[name]}
        digests: dict[str, list[str]] = {}
        self.check(takers, digests)
        kept: dict[str, list[dict[str, float] | None]] = {arm: [] for arms in takers.values() for arm in arms}
        ways = {name: list(arms.values()) for name, arms in takers.items()}
        for block in plan.blocks(ways, self.options.rounds, f"{SEED} {cell}"):
            for name, order in block:
                answers = self.ranks[name].ask({"do": "samples", "ways": order})
                for arm, way in takers[name].items():
                    kept[arm].append(slowest([answer and answer[way] for answer in answers]))
        self.check(takers, digests)
        sampled = plan.columns(kept)
        gone = [*(name for name in host if name not in takers), *(arm for arm in kept if arm not in sampled)]
        self.left_out.extend(f"{cell.name(self.communication)}: {name}: not all samples" for name in gone)
        made: dict[str, Any] = {
            "cell": cell.name(self.communication),
            "computation": cell.kind,
            "communication": self.communication,
            "pattern": cell.pattern,
            "ratio": cell.ratio,
            "primary": cell.primary,
            "bytes": count,
            "host_ms": {name: host[name][0]["host_ms"] for name in takers},
            "arms": sampled,
            "digests": digests,
            "differences": plan.differences(digests),
        }
        for arm, kept_arm in made["arms"].items():
            if blocks_of(arm):
                kept_arm["blocks_per_sm"] = blocks_of(arm)
        return made

    def check(self, takers: dict[str, dict[str, str]], digests: dict[str, list[str]]) -> None:
        for name, arms in takers.items():
            answers = self.ranks[name].ask({"do": "check", "ways": list(arms.values())})
            if None not in answers:
                for arm, way in arms.items():
                    digests.setdefault(arm, []).append(" ".join(answer[way] for answer in answers))

    def measure_all(self) -> None:
        kind, sizes = "", {}
        for cell in self.cells:
            name = cell.name(self.communication)
            if time.monotonic() - self.begun > self.options.limit:
                self.left_out.append(f"{name}: no time")
                continue
            if cell.kind != kind:
                self.forget(cell)
                kind, sizes = cell.kind, self.sizes(cell.kind)
            if cell.ratio not in sizes:
                self.left_out.append(f"{name}: the bare process is gone")
                continue
            made = self.measure(cell, sizes[cell.ratio])
            self.run["cells"].append(made)
            self.write()
            shown = {arm: round(middle(them["ms"]), 3) for arm, them in made["arms"].items() if them.get("ms")}
            self.say(name, f"{made['bytes'] >> 20} MiB", shown, "differences:", made["differences"])

    def forget(self, following: plan.Cell) -> None:
        """Free the memory of the last kind, and end processes that no further cell needs: memory is short."""
        left = {cell.kind for cell in self.cells[self.cells.index(following) :]}
        for process in self.processes:
            ranks = self.ranks[process.name]
            if not left & set(process.kinds):
                self.end(process)
            ranks.tell({"do": "forget"})  # nothing, where it has ended
        for ranks in self.ranks.values():
            if not ranks.broken:
                ranks.answers(20)

    def kernels(self) -> None:
        """From a profile, which may stay in its process: so it comes last."""
        for kind in dict.fromkeys(cell.kind for cell in self.cells):
            for ranks in self.ranks.values():
                if ranks.name != "main":
                    continue
                for part, facts in (ranks.ask({"do": "kernels", "kind": kind})[0] or {}).items():
                    name, what = (kind, WHAT[kind]) if part == "computation" else (self.communication, "NCCL's own")
                    blocks = {"resident_blocks": resident_blocks(facts)}
                    self.result["kernels"][name] = {**facts, **blocks, "role": part, "what": what}

    def end(self, process: plan.Process) -> None:
        """Of one process; what the library counted in it is kept by its name."""
        ranks, kept = self.ranks[process.name], self.run["processes"][process.name]
        if "exit_codes" in kept:
            return
        problem = ranks.broken
        kept["exit_codes"] = ranks.end()
        ranks.broken = problem or "ended"
        if problem or any(kept["exit_codes"]):
            kept["errors"] = [[line.rstrip()[:300] for line in lines[-3:]] for lines in ranks.errors]
            self.left_out.append(f"{process.name}: {problem or 'exit status'} {kept['exit_codes']}")
        if process.policy:
            command = ["overlap", "report", str(self.report_of(process)), "--json"]
            said = subprocess.run(command, capture_output=True, text=True)
            try:
                self.run["policies"][process.name] = counted(json.loads(said.stdout))
            except (ValueError, KeyError):
                self.left_out.append(f"report of {process.name}: {said.stderr.strip()[-200:]}")

    def report_of(self, process: plan.Process) -> Path:
        return self.folder / f"report{self.processes.index(process)}"

    def end_all(self) -> None:
        for ranks in self.ranks.values():
            ranks.tell({"do": "forget"})
        for process in self.processes:
            self.end(process)
        self.write()


def resident_blocks(facts: dict[str, Any]) -> int | None:
    """Of such a kernel on a multiprocessor, by the product's arithmetic; None without it."""
    sizes = {"--threads": "threads", "--registers": "registers", "--dynamic-smem": "shared"}
    asked = [f"{option}={facts[name]}" for option, name in sizes.items() if facts.get(name) is not None]
    try:
        said = subprocess.run(["overlap", "explain", "--gpu", GPU, *asked, "--json"], capture_output=True, text=True)
        return int(json.loads(said.stdout)["native_blocks"])
    except (OSError, ValueError, KeyError):
        return None


def slowest(answers: list[Any]) -> dict[str, float] | None:
    """Of two ranks the one that took longer: the step is over when both are."""
    return None if None in answers else max(answers, key=lambda answer: float(answer["ms"]))


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def counted(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the library did: the totals of its report that are not 0."""
    return {key: value for key, value in report["totals"].items() if value}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpus", type=int, choices=sorted(plan.COMMUNICATION), default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limit", type=float, default=240, help="seconds after which no further cell is begun")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORDS")
    options = parser.parse_args()
    unknown = {word for words in options.only for word in words.split(",")} - plan.words_for_only()
    if unknown:
        parser.error(f"--only: {', '.join(sorted(unknown))}: not one of {', '.join(sorted(plan.words_for_only()))}")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if not plan.chosen(options.only):
        parser.error("--only: no cell is all of that")
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(options, Path(folder))
        suite.start()
        suite.measure_all()
        suite.kernels()
        suite.end_all()
    return 0 if suite.run["cells"] else 1


if __name__ == "__main__":
    sys.exit(main())
