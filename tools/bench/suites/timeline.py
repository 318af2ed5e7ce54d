"""What the simulated GPU did in a run, as a trace that chrome://tracing and Perfetto open."""

from __future__ import annotations

import json
from pathlib import Path

RAW = ".timeline"


def convert(folder: Path) -> int:
    """Every file of the simulated GPU in it becomes a trace. Returns how many there are."""
    files = sorted(folder.glob(f"*{RAW}"))
    for path in files:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        trace = {"displayTimeUnit": "ms", "otherData": {"simulated": True}, "traceEvents": events(rows)}
        path.with_suffix(".json").write_text(json.dumps(trace), encoding="utf-8")
        path.unlink()
    return len(files)


def events(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """A line for each stream; times are virtual microseconds."""
    streams = {stream: number for number, stream in enumerate(dict.fromkeys(str(row["stream"]) for row in rows), 1)}
    carrying = {str(row["stream"]) for row in rows if row["communication"]}
    computing = {str(row["stream"]) for row in rows if not row["communication"]}
    found: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "simulated GPU"}},
    ]
    for stream, number in streams.items():
        both = stream in carrying and stream in computing
        name = "computation and communication" if both else "communication" if stream in carrying else "computation"
        found.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": name}})
    for row in rows:
        start, end = float(str(row["start_us"])), float(str(row["end_us"]))
        more = {
            key: row[key] for key in ("blocks", "threads", "dynamic_shared", "priority", "resident_peak", "queued_us")
        }
        found.append(
            {
                "name": row["kernel"],
                "cat": "communication" if row["communication"] else "computation",
                "ph": "X",
                "ts": start,
                "dur": end - start,
                "pid": 1,
                "tid": streams[str(row["stream"])],
                "args": more,
            }
        )
    return found
