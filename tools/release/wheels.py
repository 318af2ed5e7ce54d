"""`make wheels`: the source archive and one wheel per processor, the same bytes wherever they are made.

    python -m tools.release.wheels [--output DIR] [--machine M] [--check] [--test] [--dirty]

Both are made from an unpacked source archive, so anybody who has that archive can make them again. --check makes
everything once more under other circumstances and compares; --test installs the wheel of this processor on every
Python from 3.9 to 3.13 that it finds, and tries it. Exits 1 where a gate (gates.py), a comparison or a trial says no.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Callable

from tools.release import gates, installed
from tools.release.gates import shim_build

ROOT = Path(__file__).resolve().parents[2]

MACHINES = ("x86_64", "aarch64")
# What would change a build that is for everybody. Times are hatchling's own fixed one.
DROPPED = ("CC", "CFLAGS", "SOURCE_DATE_EPOCH", "PYTHONPATH")
# How --check differs: another folder, home, mask, zone, language, order of hashes, one core, and a compiler that has
# kept nothing from before.
OTHERWISE = {"TZ": "Pacific/Chatham", "LC_ALL": "C", "LANG": "C", "PYTHONHASHSEED": "7", "TERM": "dumb"}


class Failed(Exception):
    """One sentence: why there is no release."""


def committed(root: Path) -> None:
    """A release is made of what is committed; in an unpacked source archive there is nothing to ask."""
    if not (root / ".git").exists():
        return
    changed = git(root, "status", "--porcelain").splitlines()
    if changed:
        raise Failed(f"{len(changed)} files are not as committed: commit them, or add --dirty")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def taken(root: Path, folder: Path) -> Path:
    """Copy what git does not ignore: hatchling reads .gitignore only, and would release what a user's list ignores."""
    if not (root / ".git").exists():
        return root
    for name in git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0"):
        if name and (root / name).is_file():  # not if it was deleted
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    return folder


def hatchling(folder: Path, target: str, output: Path, environment: Mapping[str, str]) -> Path:
    """One build of that folder's sources; the file that it has made."""
    output.mkdir(parents=True, exist_ok=True)
    before = set(output.iterdir())
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(output)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    made = set(output.iterdir()) - before
    if done.returncode or len(made) != 1:
        raise Failed(f"{target}: {(done.stderr or done.stdout).strip()}")
    return made.pop()


def surroundings(machine: str = "", more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a build sees of this machine. The rest of the environment may differ, and makes no difference."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED and name[:8] != "OVERLAP_"}
    release = {"OVERLAP_BUILD": "release", **({"OVERLAP_MACHINE": machine} if machine else {})}
    return {**kept, **(more or {}), **release}


def make(machines: tuple[str, ...], output: Path, folder: Path, more: Mapping[str, str]) -> list[Path]:
    """Source archive and wheels. folder: where the archive is unpacked."""
    with tempfile.TemporaryDirectory() as copied:
        archive = hatchling(taken(ROOT, Path(copied)), "sdist", output, surroundings(more=more))
    with tarfile.open(archive) as file:
        file.extraction_filter = getattr(tarfile, "data_filter", None)  # older Pythons have none
        file.extractall(folder)
    (sources,) = folder.iterdir()
    return [archive, *(hatchling(sources, "wheel", output, surroundings(machine, more)) for machine in machines)]


def first(machines: tuple[str, ...], output: Path) -> list[Path]:
    """Into a folder beside the output first: what was there stays until everything is made."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="overlap-wheels-") as folder:
        made = make(machines, Path(folder, "made"), Path(folder, "sources"), {})
        return [shim_build.copy(file, output / file.name) for file in made]


def again(machines: tuple[str, ...]) -> dict[str, str]:
    """Digest by name, of a second build under other circumstances."""
    mask = os.umask(0o077)
    cores = os.sched_getaffinity(0)
    try:
        with tempfile.TemporaryDirectory(prefix="another place, ") as name:
            folder = Path(name).resolve()
            (folder / "home").mkdir()
            os.sched_setaffinity(0, {min(cores)})
            more = {**OTHERWISE, "HOME": str(folder / "home"), "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig")}
            return {file.name: digest(file) for file in make(machines, folder / "out", folder / "in", more)}
    finally:
        os.umask(mask)
        os.sched_setaffinity(0, cores)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def say(line: str) -> None:
    print(f"wheels: {line}", file=sys.stderr, flush=True)


def gated(made: list[Path]) -> Iterator[str]:
    for path in made:
        say(f"{digest(path)}  {path.name}  {path.stat().st_size} bytes")
        if path.suffix != ".whl":
            continue
        said, wrong = gates.audited(path)
        say(f"auditwheel: {said}")
        yield from (f"{path.name}: {line}" for line in [*gates.check(path), *wrong])


def compared(made: list[Path], machines: tuple[str, ...]) -> Iterator[str]:
    say("the same again: another folder, home, mask, zone and language, one core, an empty cache")
    second = again(machines)
    for path in made:
        say(f"{second.get(path.name, 'not made')}  {path.name}  again")
        if second.get(path.name) != digest(path):
            yield f"{path.name}: other bytes the second time"


def tried(made: list[Path], _: tuple[str, ...]) -> Iterator[str]:
    here = [path for path in made if f"_{shim_build.machine()}.whl" in path.name]
    if not here:
        yield f"no wheel for this processor ({shim_build.machine()}) to try"
    for path in here:
        yield from installed.check(path, say)


def main() -> int:
    parser = argparse.ArgumentParser(description="make the source archive and the wheels of a release, and check them")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="DIR", help="default: dist")
    parser.add_argument("--machine", choices=MACHINES, help="one of them (default: both)")
    parser.add_argument("--check", action="store_true", help="make everything twice, and compare the bytes")
    parser.add_argument("--test", action="store_true", help="install and try on every Python found, 3.9 to 3.13")
    parser.add_argument("--dirty", action="store_true", help="of the files as they are, committed or not")
    options = parser.parse_args()
    machines = (options.machine,) if options.machine else MACHINES
    asked: list[tuple[bool, Callable[..., Iterator[str]]]] = [(options.check, compared), (options.test, tried)]
    try:
        if not options.dirty:
            committed(ROOT)
        made = first(machines, options.output.resolve())
        found = list(gated(made))
        for wanted, step in asked:
            found += step(made, machines) if wanted else []
    except (Failed, OSError) as error:
        say(str(error))
        return 1
    for line in found:
        say(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
