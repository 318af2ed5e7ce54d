"""What `overlap report FOLDER --jobs` takes for a folder of many runs: seconds, also of a processor, and memory.

    python -m tools.bench.jobs [--runs 10000] [--ranks 8] [--folder DIR]

The pages are generated, as those of jobs under `observe`: 40 programs of 50 users, 30 kinds of launches, three streams.
What a real page allocates and never writes is a hole here; either is read as zeros. One run in a hundred also holds
what a hostile or broken one leaves: a cut page, garbage, a link, a pipe, a page of another version, a huge file.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyshim import _native

BUDGET = {"seconds": 60, "MB": 300}  # of 10,000 runs of 8 ranks
HOSTILE = 100  # one of so many runs
NOW = 1_795_910_400.0  # 2026-11-29, so that the table on a page stays the same
ROWS = 30  # kinds of launches of a process


def page(run: int, rank: int, ranks: int, start: float) -> list[tuple[int, bytes]]:
    """Return what is in a page of a process that has ended, by offsets."""
    ffi, library = _native.ffi, _native.library()
    made = ffi.new("struct overlap_page *")
    made.magic, made.version, made.size = library.OVERLAP_PAGE_MAGIC, library.OVERLAP_ABI_VERSION, ffi.sizeof(made[0])
    made.flags = library.OVERLAP_PAGE_OPENED_GPU | library.OVERLAP_PAGE_ENDED
    made.pid, made.rank, made.world, made.start = 1000 + rank, rank, ranks, int(start * 1e9)
    device = made.devices[0]
    device.state, device.observes, device.uuid = 2, 1, bytes([rank + 1] * 16)
    texts = {made.host: f"n{run % 97}", made.program: f"/opt/bin/app{run % 40}", made.library: "0.3.0"}
    for field, text in {**texts, device.name: "NVIDIA H100 80GB HBM3", device.policy: "observe"}.items():
        _put(field, text)
    for index, status in enumerate((1, 3, 6) if run % 2 else (5, 5, 6)):
        stream = made.streams[index]
        stream.state, stream.status, stream.share = 2, status, 300
    shard = made.shards[0]
    shard.owner = 1000 + rank
    for index in range(library.OVERLAP_REASONS, library.OVERLAP_REASONS + ROWS):
        made.rows[index].state, made.rows[index].key = 2, 7
        _put(made.rows[index].kernel, f"kernel{index}")
        shard.launches[index] = 50
    shard.counters[library.OVERLAP_COUNTER_RAISED] = 700 if run % 2 else 0
    data = bytes(ffi.buffer(made))
    spans = [
        (0, ffi.offsetof("struct overlap_page", "rules")),
        _span("rows", library.OVERLAP_REASONS + ROWS),
        _span("shards", 1),
    ]
    return [(start, data[start:end]) for start, end in spans]


def _span(array: str, count: int) -> tuple[int, int]:
    start = _native.ffi.offsetof("struct overlap_page", array)
    struct = {"rows": "struct overlap_row", "shards": "struct overlap_shard"}[array]
    return start, start + count * _native.ffi.sizeof(struct)


def _put(field: Any, text: str) -> None:
    _native.ffi.memmove(field, text.encode(), len(text))


def write(path: Path, parts: list[tuple[int, bytes]], size: int) -> None:
    with path.open("wb") as file:
        for offset, data in parts:
            file.seek(offset)
            file.write(data)
        file.truncate(size)


def generate(folder: Path, runs: int, ranks: int) -> None:
    """Write the runs of a month, the same each time."""
    chosen, now, size = random.Random(1), NOW, _native.ffi.sizeof("struct overlap_page")
    for run in range(runs):
        path = folder / f"user{run % 50}" / f"slurm-{run}.0"
        path.mkdir(parents=True)
        start = now - chosen.randrange(3600, 30 * 86400)
        for rank in range(ranks):
            name = path / f"n{run % 97}.{1000 + rank}.0.page"
            write(name, page(run, rank, ranks, start), size)
            os.utime(name, (now, start + chosen.randrange(60, 3000)))
            with suppress(PermissionError):
                os.chown(name, 2000 + run % 50, 2000)
        if run % HOSTILE == 0:
            hostile(path, size)


def hostile(path: Path, size: int) -> None:
    good = next(path.glob("*.page")).read_bytes()
    (path / "cut.1.0.page").write_bytes(good[:1000])
    (path / "garbage.1.0.page").write_bytes(os.urandom(1000))
    (path / "link.1.0.page").symlink_to("/etc/passwd")
    (path / "around").symlink_to(path)
    os.mkfifo(path / "pipe.1.0.page")
    write(path / "old.1.0.page", [(0, good[:4] + (1).to_bytes(4, "little") + good[8:1000])], size)
    write(path / "huge.1.0.page", [], 1 << 40)


def measure(folder: Path) -> tuple[float, float, float, str]:
    """Return seconds, those of a processor, MB, and what the command printed."""
    start = time.monotonic()
    command = [sys.executable, "-m", "pyshim", "report", str(folder), "--jobs"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, used = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description="time overlap report FOLDER --jobs on generated runs")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--folder", help="where the runs are written, and stay (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="overlap-jobs-") as scratch:
        folder = Path(options.folder or scratch)
        generate(folder, options.runs, options.ranks)
        seconds, processor, megabytes, printed = measure(folder)
        print(
            "\n".join(line for line in printed.splitlines() if line.startswith(("done:", "gain:", "overlap: warning")))
        )
        budget = f" (budget: {BUDGET['seconds']} s, {BUDGET['MB']} MB)"
        budget = budget if (options.runs, options.ranks) == (10_000, 8) else ""
        print(f"{options.runs:,} runs of {options.ranks} ranks:", end=" ")
        print(f"{seconds:.1f} s, {processor:.1f} s of a processor, {megabytes:.0f} MB{budget}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
