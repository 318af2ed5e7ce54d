"""What does `overlap tune` keep for training steps, in how many minutes, and is it right?

    python -m tools.gpu.tuned --out FILE [--limit 460] [--programs fsdp ddp tensor] [--ranks 2] [--processes 5]
    NCCL_P2P_DISABLE=1 python -m tools.gpu.tuned --out FILE        # GPUs without peer access
    python -m tools.gpu.tuned --table FILE...                      # CSV

Each program (whole/steps.py) is searched first; then bare, what was kept, and the --values are measured apart from the
search: --processes of each in turns, the median of each process. --no-search leaves the search out.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tools.gpu import machine, product
from tools.gpu.files import write

METRIC = r"([0-9.]+) ms a step"
PROGRAMS = ("fsdp", "ddp", "tensor")
SHARE = 0.6  # of the time of a program, for its search
HEADS = (
    "peer_access",
    "program",
    "what",
    "arm",
    "runs",
    "value",
    "change_percent",
    "low",
    "high",
    "verdict",
    "seconds",
)
PLACE = ("ranks", "gpu", "driver", "torch", "nccl", "commit", "date")


def steps(program: str, ranks: int) -> list[str]:
    return [sys.executable, "-m", "tools.gpu.whole.steps", program, "--ranks", str(ranks)]


def search(program: str, options: argparse.Namespace, environment: dict[str, str], limit: float) -> dict[str, Any]:
    """Return the answer of `overlap tune`, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "pyshim", "tune", "--json", "--metric", METRIC, "--limit", f"{limit:.0f}s"]
        words += ["--output", f"{folder}/tune", *(word for name in options.sets for word in ("--set", name))]
        begun = time.monotonic()
        done = subprocess.run(
            [*words, "--", *steps(program, options.ranks)], env=environment, capture_output=True, text=True, check=False
        )
        seconds = round(time.monotonic() - begun, 1)
        outputs = (
            {path.name: path.read_text()[-2000:] for path in Path(folder).glob("tune/*.txt")} if done.returncode else {}
        )
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else None
    return {"program": program, "seconds": seconds, "answer": answer, "said": done.stderr[-4000:], "outputs": outputs}


def apart(
    program: str, arms: Sequence[str], options: argparse.Namespace, environment: dict[str, str], until: float
) -> dict[str, Any]:
    """Return milliseconds a step of each process of each arm, in turns. arms: variables; empty for bare."""
    found: dict[str, list[float]] = {arm: [] for arm in arms}
    begun = time.monotonic()
    one = 0.0
    for turn in range(options.processes):
        for arm in arms if turn % 2 == 0 else reversed(arms):
            if time.monotonic() + one > until:
                break
            variables = dict(word.split("=", 1) for word in arm.split() if "=" in word)
            before = ["overlap-run", "--quiet", "--policy", "default", "--"] if "default" in arm.split() else []
            start = time.monotonic()
            done = subprocess.run(
                [*before, *steps(program, options.ranks)],
                env={**environment, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
            one = max(one, time.monotonic() - start)
            numbers = [float(match) for match in re.findall(METRIC, done.stdout)]
            if numbers and not done.returncode:
                found[arm].append(statistics.median(numbers))
            else:
                print(f"{program} {arm or 'bare'}: {done.stderr[-2000:]}", file=sys.stderr)
    seconds = round(time.monotonic() - begun, 1)
    return {"program": program, "seconds": seconds, "ms": {arm or "bare": took for arm, took in found.items()}}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    begun = time.monotonic()
    until = begun + options.limit
    made: dict[str, Any] = {"version": 1, "set": "tuned", "machine": machine.describe(), "searches": [], "apart": []}
    made |= {"peer_access": os.environ.get("NCCL_P2P_DISABLE") != "1", "ranks": options.ranks}
    with tempfile.TemporaryDirectory() as folder:
        environment = product.environment(Path(folder))
        path = [str(product.ROOT), environment.get("PYTHONPATH")]
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, path)), "OVERLAP_PROGRESS": "off"}
        for number, program in enumerate(options.programs):
            part = (until - time.monotonic()) / (len(options.programs) - number)
            end = time.monotonic() + part
            arms = ["", *options.values]
            if not options.no_search:
                found = search(program, options, environment, options.seconds or SHARE * part)
                made["searches"].append(found)
                kept = (found["answer"] or {}).get("kept")
                arms += [kept] if kept and kept not in arms else []
                answer = (found["answer"] or {}).get("answer", found["said"])
                print(f"[{time.monotonic() - begun:.0f} s] {program}: {answer}", flush=True)
                write(options.out, made)
            if options.processes:
                made["apart"].append(apart(program, arms, options, environment, end))
                print(f"[{time.monotonic() - begun:.0f} s] {made['apart'][-1]}", flush=True)
                write(options.out, made)
    made["seconds"] = round(time.monotonic() - begun)
    write(options.out, made)
    return made


def rows(made: dict[str, Any]) -> Iterable[tuple[Any, ...]]:
    peer = "yes" if made["peer_access"] else "no"
    for found in made["searches"]:
        for arm in (found["answer"] or {"arms": []})["arms"]:
            change = [arm[key] for key in ("change_percent", "low_percent", "high_percent")]
            shown = ["" if figure is None else f"{figure:.1f}" for figure in change]
            value = "" if arm["value"] is None else f"{arm['value']:.2f}"
            said = (peer, found["program"], "search", arm["name"], arm["runs"], value)
            yield (*said, *shown, arm["verdict"], found["seconds"])
    for found in made["apart"]:
        bare = statistics.median(found["ms"]["bare"]) if found["ms"]["bare"] else None
        for arm, took in found["ms"].items():
            if took and bare:
                middle, low, high = (
                    100 * (figure / bare - 1) for figure in (statistics.median(took), min(took), max(took))
                )
                shown = [f"{figure:.1f}" for figure in (middle, low, high)]
                said = (peer, found["program"], "apart", arm, len(took), f"{statistics.median(took):.2f}")
                yield (*said, *shown, "", found["seconds"])


def place(made: dict[str, Any]) -> tuple[Any, ...]:
    """On what it was measured, in the order of PLACE."""
    found = made["machine"]
    gpu = found["gpus"][0]["name"] if found["gpus"] else ""
    torch = (found["torch"] or "").partition("+")[0]
    return (made.get("ranks", 2), gpu, found["driver"], torch, found["nccl"], found["commit"], found["begun"][:10])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--limit", type=float, default=460, help="seconds, all in all")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--seconds", type=float, help="of each search (default: most of its part of --limit)")
    parser.add_argument("--sets", nargs="*", default=["nccl"], help="none: those that `overlap tune` chooses")
    parser.add_argument(
        "--values", nargs="*", default=["NCCL_MIN_CTAS=16"], help="arms that are measured apart, beside bare"
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--processes", type=int, default=5, help="of each arm, apart from the search; 0: none")
    parser.add_argument("--no-search", action="store_true")
    options = parser.parse_args(arguments)
    if options.table:
        table = csv.writer(sys.stdout, lineterminator="\n")
        table.writerow((*HEADS, *PLACE))
        for path in options.table:
            found = json.loads(path.read_text(encoding="utf-8"))
            table.writerows((*row, *place(found)) for row in rows(found))
        return 0
    if options.out is None:
        parser.error("--out FILE")
    made = measure(options)
    broken = [found["program"] for found in made["searches"] if not (found["answer"] or {}).get("answer")]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
