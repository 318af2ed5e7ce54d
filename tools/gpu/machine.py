"""On what was it measured? The head of every file of results.

    python -m tools.gpu.machine        # prints it

Versions are those that a program started here would get. What cannot be told is null.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GPU_FIELDS = ("name", "driver_version", "vbios_version")
TORCH = "import torch, json; print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.nccl.version()]))"


def describe() -> dict[str, Any]:
    """{begun (ISO 8601, UTC), commit, gpus ([{name, driver, vbios}]), driver, nvcc, torch, cuda (of torch), nccl}"""
    gpus = [
        line.split(", ") for line in said("nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader")
    ]
    nvcc = re.search(r"release ([\d.]+)", "\n".join(said("nvcc", "--version")))
    torch, cuda, nccl = json.loads("".join(said(sys.executable, "-c", TORCH)[-1:]) or "[null, null, null]")
    return {
        "begun": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "gpus": [dict(zip(("name", "driver", "vbios"), gpu)) for gpu in gpus],
        "driver": gpus[0][1] if gpus else None,
        "nvcc": nvcc[1] if nvcc else None,
        "torch": torch,
        "cuda": cuda,
        "nccl": ".".join(map(str, nccl)) if nccl else None,
    }


def commit() -> str | None:
    """OVERLAP_COMMIT says it for a copy without its history."""
    if "OVERLAP_COMMIT" in os.environ:
        return os.environ["OVERLAP_COMMIT"]
    found = said("git", "-C", str(HERE), "describe", "--always", "--dirty")
    return found[0] if found else None


def said(*command: str) -> list[str]:
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


if __name__ == "__main__":
    print(json.dumps(describe(), indent=1))
