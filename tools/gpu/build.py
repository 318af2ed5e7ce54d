"""Builds programs of this folder, each by the line in the head of its own source."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
WRITTEN_FOR = "-arch=sm_90"  # in the heads
LINE = re.compile(r"\b(?:nvcc|cc) [^&|\n]*? -o (\S+)(?: -Xlinker \S+| -[IlL]\S+)*")
HEAD = 30  # lines
LINKED = "link"
WHERE = """import ctypes
ctypes.CDLL("libcuda.so.1")
print(next(line.split()[-1] for line in open("/proc/self/maps") if "/libcuda.so" in line))"""


class NotBuilt(Exception):
    """One sentence, and what the compiler said."""


@functools.cache
def lines() -> dict[str, tuple[Path, str]]:
    """Of each target, its source and the command."""
    found: dict[str, tuple[Path, str]] = {}
    for source in sorted((*HERE.rglob("*.cu"), *HERE.rglob("*.c"))):
        head = "\n".join(source.read_text(encoding="utf-8").splitlines()[:HEAD])
        for line in LINE.finditer(head):
            if f" {source.relative_to(HERE)} " in line[0]:
                found[line[1]] = source, line[0]
    return found


def command(target: str, architecture: str, output: Path) -> list[str]:
    _, line = lines()[target]
    compiler = shutil.which("nvcc")
    root = Path(compiler).resolve().parent.parent if compiler else Path("/usr/local/cuda")
    line = line.replace(WRITTEN_FOR, f"-arch={architecture}").replace("$CUDA", str(root))
    words = [str(output) if word == target else word for word in shlex.split(line)]
    return words + [f"-L{output.parent / LINKED}"] * ("-lcuda" in words)


def build(targets: Sequence[str], folder: Path, architecture: str) -> None:
    """All of them, side by side, into `folder`; what is there already of the same sources stays. Raises NotBuilt."""
    folder.mkdir(parents=True, exist_ok=True)
    if any("-lcuda" in lines()[target][1] for target in targets):
        _driver(folder / LINKED)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for problem in pool.map(lambda target: _one(target, folder, architecture), dict.fromkeys(targets)):
            if problem:
                raise NotBuilt(problem)


def _driver(folder: Path) -> None:
    """For -lcuda: a link to the driver's library, wherever the loader finds it; a toolkit's stub needs none."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", WHERE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode == 0 and done.stdout.strip():
        (folder / "libcuda.so").unlink(missing_ok=True)
        (folder / "libcuda.so").symlink_to(done.stdout.strip())


def _one(target: str, folder: Path, architecture: str) -> str | None:
    words = command(target, architecture, folder / target)
    made, hashed = folder / f"{target}.made", hashlib.sha256(lines()[target][1].encode() + architecture.encode())
    source = lines()[target][0]
    for read in dict.fromkeys((source, *sorted(HERE.glob("*.h")), *sorted(source.parent.glob("*.h")))):
        hashed.update(read.read_bytes())
    if made.exists() and (folder / target).exists() and made.read_text(encoding="utf-8") == hashed.hexdigest():
        return None
    try:
        done = subprocess.run(words, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{target} was not built: {error}"
    if done.returncode:
        return f"{target} was not built: {shlex.join(words)}\n{done.stdout[-2000:].rstrip()}"
    made.write_text(hashed.hexdigest(), encoding="utf-8")
    return None
