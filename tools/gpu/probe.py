"""`overlap probe` on a real GPU: is it right, how long does it take, and what does it say beside other processes?

    python -m tools.gpu.probe [RUNS [RESULT.json]]      # `overlap` on PATH; default: 10 runs, to stdout

Each run is a command of its own, timed by the host's clock; what it keeps is thrown away. Beside it, by turns: nothing;
one process, then two, that launch grids without a break (time slices). The times of one more run of each are kept
whole, as pyshim/probe/measure.py takes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.gpu import machine

PROBE = Path(__file__).resolve().parents[2] / "pyshim" / "probe"
RUNS = 10
LIBRARY = "libcuda.so.1"
START = 2.0  # seconds until processes beside it are at work


def busy() -> None:
    """Grids of a quarter of the probe's, one after another, until stdin ends."""
    from pyshim.probe import measure

    cuda = measure.Driver(LIBRARY)
    cuda("cuInit", 0)
    gpu = measure.Gpu(cuda, 0, (PROBE / "kernels.ptx").read_bytes())
    gpu.prepare()
    os.set_blocking(0, False)
    given = open(0, "rb", buffering=0)  # noqa: SIM115  (stdin, unbuffered)
    while given.read(1) is None:
        for _ in range(8):
            gpu.launch("low", gpu.streams[0], 150_000, gpu.grid // 4, gpu.part)
        gpu.wait()


def probed(cache: str) -> dict[str, Any]:
    begun = time.monotonic()
    done = subprocess.run(
        ["overlap", "probe", "--json"],
        env={**os.environ, "XDG_CACHE_HOME": cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the same in words
        text=True,
        timeout=120,
    )
    answer = json.loads(done.stdout)
    answer.pop("kept")
    return {"wall_seconds": round(time.monotonic() - begun, 3), "status": done.returncode, **answer}


def measured() -> Any:
    command = [sys.executable, "-I", "-S", str(PROBE / "measure.py"), LIBRARY, "0", "10", "1"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120).stdout)


def beside(processes: int, runs: int) -> dict[str, Any]:
    others = [
        subprocess.Popen([sys.executable, "-m", "tools.gpu.probe", "--busy"], stdin=subprocess.PIPE)
        for _ in range(processes)
    ]
    try:
        time.sleep(START if others else 0)
        with tempfile.TemporaryDirectory() as cache:
            answers = [probed(cache) for _ in range(runs)]
        return {"beside": processes, "answers": answers, "times": measured()}
    finally:
        for other in others:
            other.communicate()  # the end of its input


def written(found: dict[str, Any]) -> str:
    """As JSON, an answer and a trial on a line each; times in microseconds, to the nanosecond."""
    places = [(run, key) for run in found["runs"] for key in ("answers", "times")]
    lines = {f"@{index}@": run.pop(key) for index, (run, key) in enumerate(places)}
    for mark, (run, key) in zip(lines, places):
        run[key] = mark
    text = json.dumps(found, indent=1) + "\n"
    for mark, value in lines.items():
        rows = value if isinstance(value, list) else value.pop("trials")
        body = "[\n" + ",\n".join(f"    {json.dumps(rounded(row))}" for row in rows) + "\n   ]"
        if isinstance(value, dict):
            body = f'{json.dumps(rounded(value))[:-1]}, "trials": {body}}}'
        text = text.replace(f'"{mark}"', body)
    return text


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    return {key: rounded(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def main() -> None:
    if sys.argv[1:] == ["--busy"]:
        busy()
        return
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    found = {"version": 1, "set": "probe", "machine": machine.describe(), "settings": {"runs": runs}}
    found["runs"] = [beside(processes, runs) for processes in (0, 1, 2)]
    text = written(found)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
