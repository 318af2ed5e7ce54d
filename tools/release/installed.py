"""A wheel, installed as a user would and tried: on every Python from 3.9 to 3.13 that this machine has.

    python -m tools.release.installed WHEEL [--python PYTHON ...]

For each Python twice, each in a virtual environment of its own: with the newest dependencies, and with the oldest that
METADATA allows (or, where those have no binary for that Python, the next that have). There is no compiler on PATH, and
what is installed is made read-only before anything runs. Every Python must give the same answers.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any, Callable, NamedTuple

MINORS = (9, 10, 11, 12, 13)
# After the lowest version that METADATA names, by its spelling: the first that has binaries for newer Pythons.
NEXT = {
    "cffi": ("1.15.1", "1.16.0", "1.17.0"),
    "pyyaml": ("6.0.1", "6.0.2"),
    "psutil": ("5.9.3", "5.9.8"),
    "rich": (),
}
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
# Where others keep Pythons: pyenv, a system, the images that manylinux wheels are made in.
PLACES = ("{pyenv}/versions/3.{minor}.*/bin/python3.{minor}", "/usr/local/bin/python3.{minor}",
          "/usr/bin/python3.{minor}", "/opt/python/cp3{minor}-cp3{minor}/bin/python")  # fmt: skip
# Opens every object file that is not a program, each with all of its symbols bound at once.
OPEN = """
import ctypes, os, pathlib, pyshim
from pyshim.start.environment import shipped
for path in sorted(pathlib.Path(pyshim.__file__).parent.joinpath("_lib").rglob("*.so*")):
    if path.read_bytes()[4] == 2: ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_LOCAL); print(path.name)
assert shipped("h100-paper", {}), "shipped.json is not of this wheel"
"""

Say = Callable[[str], None]


class Trial(NamedTuple):
    """A command, what is read in its answer, and whether that is right. The answers of all Pythons are compared."""

    command: Sequence[str]
    read: Callable[[str], Any] = str
    right: Callable[[Any], bool] = bool
    status: tuple[int, ...] = (0,)


class Wrong(Exception):
    """One sentence: what did not work."""


def counted(text: str) -> dict[str, int]:
    totals = json.loads(text)["totals"]
    return {name: totals[name] for name in ("launches", "shaped", "communication")}


def trials(programs: Path, library: Path, policies: Sequence[str]) -> Iterator[Trial]:
    """What a user does first; the report is that of the run before it."""
    overlap, run, python = (str(programs / name) for name in ("overlap", "overlap-run", "python"))
    demo = (str(library / "demo/demo-stencil"),)
    room = ("--gpu", "h100", "--kernel", "128:224", "--json")
    yield Trial((overlap, "--help"), lambda text: len(text) > 200)
    yield Trial((run, "--help"), lambda text: len(text) > 200)
    yield Trial((python, "-c", OPEN), str.split, lambda names: "liboverlap.so" in names and "libcuda.so.1" in names)
    yield Trial((overlap, "policy", "check", *policies), str.splitlines)
    yield Trial((run, "--simulate", "h100", "--policy", "h100-paper", "--report", "out", *demo), lambda text: True)
    yield Trial((overlap, "report", "out", "--json"), counted, lambda counts: all(counts.values()))
    yield Trial((overlap, "demo", "--json"), json.loads, lambda said: said["default_ms"] < said["bare_ms"])
    yield Trial((overlap, "policy", "room", *room), json.loads, lambda said: said["kernel"]["resident"] == 2)
    # Of this machine, which may have faults of its own: that there is an answer.
    yield Trial((overlap, "doctor", "--json"), lambda text: sorted(json.loads(text)), status=(0, 1))
    yield Trial((python, *PIP, "check"), lambda text: True)


def pythons() -> dict[str, str]:
    """By version, a Python that can make virtual environments; empty where none was found."""
    found = {}
    pyenv = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    for minor in MINORS:
        names = [name for place in PLACES for name in sorted(glob.glob(place.format(pyenv=pyenv, minor=minor)))]
        on_path = shutil.which(f"python3.{minor}")
        ready = (name for name in [*names, *([on_path] if on_path else [])] if usable(name, minor))
        found[f"3.{minor}"] = next(ready, "")
    return found


def usable(python: str, minor: int) -> bool:
    """A shim of pyenv may stand for no Python; Debian's may lack what makes virtual environments."""
    code = f"import sys, venv, ensurepip, ssl; sys.exit(sys.version_info[1] != {minor})"
    return not subprocess.run([python, "-c", code], capture_output=True, check=False).returncode


def bounds(wheel: Path) -> dict[str, str]:
    """The lowest version of each dependency, from METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
    rows = (row for row in metadata.get_all("Requires-Dist", []) if ";" not in row)
    return dict(re.fullmatch(r"([\w.-]+)\s*>=\s*([\w.]+)", row).groups() for row in rows)  # type: ignore[union-attr,misc]


def call(
    command: Sequence[str], folder: Path, programs: Path, status: tuple[int, ...] = (0,), drop: bool = False
) -> str:
    """What it printed, or else said. drop: without root's right to write into what is read-only, by setpriv."""
    variables = {"PATH": str(programs), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    variables.update({name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "http"))})
    setpriv = shutil.which("setpriv")
    dropped = [setpriv, "--bounding-set=-dac_override", "--"] if drop and setpriv and not os.geteuid() else []
    try:
        done = subprocess.run([*dropped, *command], cwd=folder, env=variables, capture_output=True, text=True,
                              timeout=600, check=False)  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"{shlex.join(command)[:200]}: no end after {error.timeout:.0f} s") from error
    if done.returncode not in status or "Traceback" in done.stderr:
        last = "; ".join(done.stderr.strip().splitlines()[-3:])
        raise Wrong(f"{shlex.join(command)[:200]}: exit status {done.returncode}: {last}")
    return done.stdout or done.stderr


def install(wheel: Path, python: str, oldest: bool, folder: Path) -> tuple[Path, str]:
    """The programs of a new virtual environment, and the versions that were installed beside the wheel."""
    environment, programs = folder / "venv", folder / "venv" / "bin"
    call([python, "-m", "venv", str(environment)], folder, programs)
    pip = [str(programs / "python"), *PIP, "install", "--quiet", "--only-binary", ":all:"]
    for name, bound in bounds(wheel).items() if oldest else ():
        for version in (bound, *NEXT.get(name, ())):
            try:
                call([*pip, f"{name}=={version}"], folder, programs)
                break
            except Wrong:
                continue
        else:
            raise Wrong(f"no version of {name} from {bound} on installs without a compiler")
    call([*pip, str(wheel)], folder, programs)
    listed = json.loads(call([str(programs / "python"), *PIP, "list", "--format", "json"], folder, programs))
    versions = {row["name"].lower(): row["version"] for row in listed}
    return programs, ", ".join(f"{name} {versions[name.lower()]}" for name in bounds(wheel))


def contents(folder: Path) -> dict[str, str]:
    """Digest by path, of everything in a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def writable(folder: Path, yes: bool) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o200 if yes else mode & ~0o222)


def tried(wheel: Path, python: str, oldest: bool, folder: Path) -> tuple[str, list[str]]:
    """The versions of the dependencies, and the answer of each trial; Wrong where one is not right."""
    programs, versions = install(wheel, python, oldest, folder)
    (package,) = programs.parent.glob("lib/python3*/site-packages/pyshim")
    policies = sorted(path.stem for path in (package / "policies").glob("*.yaml"))
    before = contents(package)
    writable(programs.parent, False)
    answers = []
    try:
        for trial in trials(programs, package / "_lib", policies):
            answer = trial.read(call(trial.command, folder, programs, trial.status, drop=True))
            if not trial.right(answer):
                raise Wrong(f"{shlex.join(trial.command)[:200]}: answers {str(answer)[:200]}")
            answers.append(json.dumps(answer).replace(str(package), ""))
    finally:
        writable(programs.parent, True)
    if contents(package) != before:
        raise Wrong("something was written beside the installed modules")
    return versions, answers


def check(wheel: Path, say: Say, found: Mapping[str, str] | None = None) -> Iterator[str]:
    """Every finding; what was tried is said."""
    same: list[str] | None = None
    found = pythons() if found is None else found
    if not any(found.values()):
        yield "no Python from 3.9 to 3.13 was found that can make virtual environments"
    for version, python in found.items():
        if not python:
            say(f"Python {version}: not found, not tried")
        for oldest in (False, True) if python else ():
            what = f"Python {version} with the {'oldest' if oldest else 'newest'} dependencies"
            with tempfile.TemporaryDirectory(prefix="overlap-installed-") as folder:
                try:
                    versions, answers = tried(wheel.resolve(), python, oldest, Path(folder).resolve())
                except (Wrong, ValueError, KeyError) as error:
                    yield f"{what}: {error}"
                    continue
            if same is not None and answers != same:
                yield f"{what}: other answers than the Python before"
            same = answers
            say(f"{what} ({versions}): {len(answers)} trials right")


def main() -> int:
    parser = argparse.ArgumentParser(description="install a wheel on every Python found, and try it")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", action="append", metavar="PYTHON", help="only this one; may be repeated")
    options = parser.parse_args()
    asked = {python: python for python in options.python} if options.python else None
    failed = 0
    for line in check(options.wheel, lambda line: print(f"installed: {line}", file=sys.stderr, flush=True), asked):
        failed += 1
        print(f"installed: {line}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
