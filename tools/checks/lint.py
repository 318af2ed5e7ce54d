"""`make lint`: every check of the sources, side by side; all of them run, and any finding is a failure.

python -m tools.checks.lint [gcc|clang|clang-tidy|layers|ruff|import-linter|mypy|clang-format ...]
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-c")
# The library is asked more than the rest: it runs in programs of others. Which checks: .clang-tidy.
TIDIED = Path("shim")
# Where headers of ours are looked for, besides the folder of the file itself.
INCLUDES = ("-Ishim", "-Ishim/core", "-Itools/simgpu")
FOLDERS = ("shim", "tools", "tests")
# Generated, and not made for reading.
GENERATED = ("*.def", "*_api.h", "*_generated.*")
# What a file includes that is not ours to bring: where it would be, and who has it.
FOREIGN = {
    "#include <slurm/": (Path("/usr/include/slurm/spank.h"), "Debian: libslurm-dev"),
    "#include <cupti.h>": (Path("/usr/include/cupti.h"), "CUDA's toolkit"),
    "#include <mpi.h>": (Path("/usr/include/mpi.h"), "an MPI; mpicc knows where else it is"),
}


def sources(*endings: str) -> list[Path]:
    found = (path for folder in FOLDERS for ending in endings for path in (ROOT / folder).rglob(f"*{ending}"))
    return sorted(path.relative_to(ROOT) for path in found if not any(path.match(glob) for glob in GENERATED))


def compiled() -> list[Path]:
    """All of C, but for what needs headers that are not here."""
    found = sources(".c")
    for line, (header, who) in FOREIGN.items():
        needing = [path for path in found if line in (ROOT / path).read_text(encoding="utf-8")]
        if needing and not header.exists():
            print(f"lint: no {header} ({who}): left out: {', '.join(map(str, needing))}", file=sys.stderr)
            found = [path for path in found if path not in needing]
    return found


def nvidia() -> list[str]:
    """Where cuda_occupancy.h is, which tests compare with."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("nvidia-cuda-runtime") or ():
            if file.name == "cuda_occupancy.h":
                return ["-idirafter", str(Path(str(file.locate())).parent)]
    return []


def gcc() -> list[str] | None:
    found = shutil.which("gcc")
    return [found] if found else None


def clang() -> list[str] | None:
    found = shutil.which("clang")
    if found:
        return [found]
    package = importlib.util.find_spec("ziglang")
    # What `python -m ziglang` starts: Python's own start would take as long as a file.
    return [str(Path(package.origin).with_name("zig")), "cc"] if package and package.origin else None


def commands(wanted: list[str], folder: Path) -> Iterator[tuple[str, list[str]]]:
    """folder: for objects, which nobody needs; zig's driver does not write them to /dev/null."""
    if "mypy" in wanted:  # what takes longest begins
        yield "mypy", [tool("mypy"), "--strict", "--no-error-summary", "pyshim", "tools"]
        yield "mypy tests", [tool("mypy"), "--no-error-summary", "--config-file", "tests/mypy.ini"]
    if "clang-format" in wanted:
        yield "clang-format", [tool("clang-format"), "--dry-run", "-Werror", *map(str, sources(".c", ".h"))]
    if "layers" in wanted:
        yield "layers", [sys.executable, "-m", "tools.checks.check_layers"]
    if "ruff" in wanted:
        yield "ruff", [tool("ruff"), "check", "--quiet", "."]
    if "import-linter" in wanted and not Path(tool("lint-imports")).exists():
        print("lint: import-linter: not found, left out (Python 3.11 and later: make setup)", file=sys.stderr)
    elif "import-linter" in wanted:
        yield "import-linter", [tool("lint-imports"), "--no-cache"]
    if "clang-tidy" in wanted and not Path(tool("clang-tidy")).exists():
        print("lint: clang-tidy: not found, left out (make setup)", file=sys.stderr)
    elif "clang-tidy" in wanted:
        for path in (path for path in sources(".c") if TIDIED in path.parents):
            flags = [flag for flag in FLAGS if not flag.startswith("-W")]
            yield f"clang-tidy {path}", [tool("clang-tidy"), "--quiet", str(path), "--", *flags, *INCLUDES]
    files = compiled() if {"gcc", "clang"} & set(wanted) else []
    for name, find in (("gcc", gcc), ("clang", clang)):
        compiler = find()
        if name in wanted and compiler is None:
            print(f"lint: {name}: not found, left out", file=sys.stderr)
        elif name in wanted and compiler:
            for number, path in enumerate(files):
                made = str(folder / f"{name}{number}.o")
                yield f"{name} {path}", [*compiler, *FLAGS, *INCLUDES, *nvidia(), str(path), "-o", made]


def tool(name: str) -> str:
    """Of the virtual environment that runs this."""
    return str(Path(sys.executable).parent / name)


def run(job: tuple[str, list[str]]) -> tuple[str, str]:
    done = subprocess.run(job[1], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return job[0], done.stdout if done.returncode else ""


def main() -> int:
    wanted = sys.argv[1:] or [
        "clang-tidy",
        "gcc",
        "clang",
        "layers",
        "clang-format",
        "ruff",
        "import-linter",
        "mypy",
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = list(commands(wanted, Path(folder)))
        for name, output in pool.map(run, jobs):
            if output:
                failed += 1
                print(f"lint: {name}:\n{output.rstrip()}", file=sys.stderr)
    print(f"lint: {len(jobs) - failed} of {len(jobs)} checks passed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
