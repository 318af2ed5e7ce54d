"""The dependency law of C: who may include and call whom. Exits 1 and says every line that breaks it.

python -m tools.checks.check_layers [--no-symbols] [ROOT]

C       gpu -> core, sys    core -> the contract, text.h    sys -> the contract, text.h    preload -> all
        cuda, hip -> gpu too, which knows of them their tables (.def) only
        by include, and by symbol but for the vendors' table (JOINED): `nm` of every object, compiled for this alone
        no object of core, sys, gpu, cuda or hip needs itself by way of others of its folder, but the tables of thunks and
        the bodies that hand thunks out (TABLES)
        and core is pure: it includes nothing of libc that asks an operating system
"""

from __future__ import annotations

import argparse
import graphlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tools.checks import shim_build

JOINED = {"vendor_operations", "overlap_in_child"}  # that preload defines for those below
TABLES = {"shim/cuda/entry.c", "shim/hip/entry.c"}  # a thunk for each body; cuGetProcAddress and the like return thunks
CONTRACT = {"shim/abi.h", "shim/overlap_abi.h", "shim/text.h", "shim/version.h"}
PURE = {"limits.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>|(\w+))', re.M)


def may_include(folder: str) -> tuple[str, ...]:
    """Folders, besides its own and the contract, that the files of a folder may include from."""
    below = ("shim/core", "shim/sys", "shim/gpu")
    if folder == "shim/preload":
        return (*below, "shim/cuda", "shim/hip")
    return below if folder in ("shim/gpu", "shim/cuda", "shim/hip") else ()


def is_table(folder: str, target: str) -> bool:
    """Both vendors' entry points have numbers of one row."""
    return folder == "shim/gpu" and re.fullmatch(r"shim/(cuda|hip)/(driver|runtime)\.def", target) is not None


def resolve(root: Path, path: Path, name: str) -> str | None:
    """The included file, relative to the root: beside the file that includes it, or below shim/ (-Ishim)."""
    for base in (path.parent, root / "shim"):
        found = (base / name).resolve()
        if found.is_file():
            return found.relative_to(root).as_posix()
    return None


def includes(root: Path, path: Path) -> Iterator[str]:
    where = path.relative_to(root).as_posix()
    folder = where.rsplit("/", 1)[0]
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        at = f"{where}:{text.count(chr(10), 0, match.start() + 1) + 1}"
        own, system, macro = match.groups()
        if macro:
            yield f"{at}: an include that only the preprocessor understands"
        elif system and folder in ("shim", "shim/core") and system not in PURE:
            yield f"{at}: <{system}>: core is pure, and knows no operating system"
        elif own:
            target = resolve(root, path, own)
            if target is None:
                yield f"{at}: {own} is not there"
            elif (
                target not in CONTRACT
                and target.rsplit("/", 1)[0] not in (folder, *may_include(folder))
                and not is_table(folder, target)
            ):
                yield f"{at}: {folder} must not know {target}"


def in_c(root: Path) -> Iterator[str]:
    for path in sorted((root / "shim").rglob("*")):
        if path.suffix in (".c", ".h", ".S", ".def"):
            yield from includes(root, path)


class Symbols(NamedTuple):
    """The global names of an object."""

    defined: frozenset[str]
    wanted: frozenset[str]


def symbols(root: Path, files: Iterable[str]) -> dict[str, Symbols]:
    """Compile each file, without optimisation, so that no reference is lost, and read its names."""
    chosen = shim_build.load(root).compiler()
    flags = ("-std=c11", "-D_GNU_SOURCE", "-O0", "-fPIC", "-fvisibility=hidden", "-Ishim", "-w", "-c")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:

        def one(file: str) -> tuple[str, Symbols]:
            made = str(Path(scratch) / f"{file.replace('/', '-')}.o")
            subprocess.run([*chosen, *flags, file, "-o", made], cwd=root, check=True)
            told = subprocess.run(["nm", "-g", made], capture_output=True, text=True, check=True).stdout
            names = [line.split()[-2:] for line in told.splitlines() if line]
            wanted = frozenset(name for kind, name in names if kind in "Uvw")
            return file, Symbols(frozenset(name for _, name in names) - wanted, wanted)

        return dict(pool.map(one, files))


def by_symbol(objects: Mapping[str, Symbols]) -> Iterator[str]:
    home = {name: file for file, its in objects.items() for name in its.defined}
    needs: dict[str, dict[str, str]] = {file: {} for file in objects}  # the other object, and one name of it
    for file, its in objects.items():
        folder = file.rsplit("/", 1)[0]
        for name in sorted(its.wanted & home.keys()):
            other = home[name]
            needs[file][other] = name
            if name not in JOINED and other.rsplit("/", 1)[0] not in (folder, *may_include(folder)):
                yield f"{file}: {folder} must not need {name} of {other}"
    for layer in ("shim/core/", "shim/sys/", "shim/gpu/", "shim/cuda/", "shim/hip/"):
        mine = [file for file in objects if file.startswith(layer) and file not in TABLES]
        inside = {file: [other for other in needs[file] if other in mine] for file in mine}
        try:
            graphlib.TopologicalSorter(inside).prepare()
        except graphlib.CycleError as error:
            way = error.args[1][::-1]  # as it comes, each is needed by the one behind it
            steps = [f"{file} needs {needs[file][other]} of {other}" for file, other in zip(way, way[1:])]
            yield f"{way[0]}: a cycle: {', '.join(steps)}"


def linked(root: Path) -> list[str]:
    """What becomes the preloaded library."""
    found = [path for path in (root / "shim").rglob("*") if path.suffix in (".c", ".S")]
    return sorted(path.relative_to(root).as_posix() for path in found)


def main() -> int:
    parser = argparse.ArgumentParser(description="check who includes and calls whom")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2], metavar="ROOT")
    parser.add_argument("--no-symbols", action="store_true", help="read the sources only; compile nothing")
    options = parser.parse_args()
    root = options.root.resolve()
    found = list(in_c(root))
    if not options.no_symbols:
        found += by_symbol(symbols(root, linked(root)))
    for line in found:
        print(f"check_layers: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
