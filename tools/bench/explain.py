"""How long `overlap explain --stdin --json` takes for many random requests: the command as a process of its own.

python -m tools.bench.explain [--requests N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time

REQUESTS = 100_000
BUDGET = 5.0  # seconds, for so many
GPUS = ("a40", "l40s", "a100", "h100", "h200", "b200", "mi250x", "mi300x")


def request(source: random.Random) -> dict[str, object]:
    """Return a random request: a kernel beside NCCL or RCCL or something smaller, some with more than the defaults."""
    gpu = source.choice(GPUS)
    nccl = (source.choice((160, 288, 544, 640)), 96, source.choice((6176, 7104, 20832, 21568, 36800)), 82240)
    communication = (256, source.choice((280, 316, 356)), 19808, 0) if gpu.startswith("mi") else nccl
    if source.random() < 0.4:
        communication = (32 * source.randint(1, 20), source.randint(16, 128), source.randint(0, 30_000), 0)
    threads = 32 * source.randint(1, 32) if source.random() < 0.9 else source.randint(1, 2000)
    asked: dict[str, object] = {
        "gpu": gpu,
        "threads": threads,
        "registers": source.randint(8, min(256, 70_000 // threads)),  # nearly all can be launched
        "static_smem": source.choice((0, 0, 1024, 16384, source.randint(0, 48000))),
        "dynamic_smem": source.choice((0, 16384, 49152, source.randint(0, 160_000))),
    }
    names = ("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem")
    asked.update(zip(names, communication))
    if source.random() < 0.3:
        asked["shape"] = source.choice(("quick_entry", "blocks_per_sm=1", "blocks_per_sm=50%", "leave"))
    if source.random() < 0.1:
        asked["blocks"] = source.randint(1, 100_000)
    return asked


def lines(count: int, seed: int = 1) -> str:
    source = random.Random(seed)
    return "".join(json.dumps(request(source)) + "\n" for _ in range(count))


def seconds(text: str) -> float:
    """Return the seconds of one process, its start included."""
    command = [sys.executable, "-m", "pyshim", "explain", "--stdin", "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    taken = time.perf_counter() - start
    if done.stdout.count("\n") != text.count("\n"):
        raise SystemExit(f"explain: {text.count(chr(10))} requests, {done.stdout.count(chr(10))} answers")
    return taken


def measured(rounds: int, count: int = REQUESTS) -> list[dict[str, object]]:
    text = lines(count)
    taken = statistics.median(seconds(text) for _ in range(rounds))
    return [{"what": f"overlap explain --stdin, {count:,} requests", "seconds": round(taken, 2), "budget": BUDGET}]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="print the requests instead")
    options = parser.parse_args()
    if options.write:
        print(lines(options.requests), end="")
    else:
        print(measured(options.rounds, options.requests)[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
