"""The simulated HIP runtimes of every version: the package has the newest only, the others are built here, once."""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path

from pyshim.start import plan
from tools.checks import shim_build

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = (5, 6, 7)
FOLDER = ROOT / ".tests" / "hip"


@cache
def runtime(version: int) -> Path:
    """Return the file. Another process of the tests may be building it: then it waits for that."""
    if version == VERSIONS[-1]:
        return Path(plan.SIMULATED_RUNTIME)
    build, artifact = shim_build.load(), f"hip{version}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{artifact}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path: Path = FOLDER / build.OLDER[artifact]
        parts = [ROOT / "shim/build.py", *(path for name in ("simgpu", "shim") for path in _headers(name))]
        sources = [*(ROOT / source for source in build.sources(artifact)), *parts]
        if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            build.build_one(artifact, FOLDER)
    return path


def _headers(part: str) -> list[Path]:
    folders = {"simgpu": (ROOT / "tools/simgpu",), "shim": (ROOT / "shim", ROOT / "shim/core")}[part]
    found = [path for folder in folders for suffix in ("h", "def") for path in folder.glob(f"*.{suffix}")]
    hip = ROOT / "tools/simgpu/hip"
    return [*found, *(path for suffix in ("h", "def", "py") for path in hip.glob(f"*.{suffix}"))]
