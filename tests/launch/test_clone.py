"""make in a clone of one user, run by another: what is built stays the owner's, and nothing of others is removed.

The clone is real, and so are make and the users. What pip and the compiler would take half a minute for is done by a
stand-in of Python, which copies what is built already."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
OWNER = pwd.getpwnam("nobody")
SYSTEM = "/usr/bin/python3"  # one that every user can run
Make = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users: run as root"),
    pytest.mark.skipif(not os.access(SYSTEM, os.X_OK), reason=f"needs {SYSTEM}, which other users can run"),
]
# Of make's commands: `-m venv`, `-m pip` and `shim/build.py`. Everything else is run by a real Python.
PYTHON = """#!/bin/sh
case "$1 $2" in
"-c import ensurepip, venv") exit {has_venv} ;;
"-m venv") [ ! -e {top}/no-space ] || exit 1; for to; do :; done; mkdir -p "$to/bin" && cp {top}/python "$to/bin" ;;
"-m pip") ;;
"shim/build.py --requires") ;;
"shim/build.py ") mkdir -p pyshim/_lib && cp -R {top}/built/. pyshim/_lib ;;
*) if [ "$(id -u)" = 0 ]; then exec {real} "$@"; fi; exec {system} "$@" ;;
esac
"""


@pytest.fixture
def top(library: object) -> Iterator[Path]:
    """A folder that all users can read, with a clone of this tree, a Python and what a build makes."""
    folder = Path(tempfile.mkdtemp(prefix="clone-", dir="/tmp"))
    folder.chmod(0o755)
    files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    parts = ["Makefile", "pyproject.toml", "pyshim", "policies", "shim", "tools/*.py", "tools/deploy", "tools/release"]
    named = subprocess.run([*files, *parts], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, named.split("\0")):
        target = folder / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    shutil.copytree(_native.DIRECTORY, folder / "built", ignore=shutil.ignore_patterns(".*", "simgpu", "demo"))
    python(folder)
    yield folder
    shutil.rmtree(folder)


def python(top: Path, has_venv: int = 0) -> Path:
    path = top / "python"
    path.write_text(PYTHON.format(top=top, real=sys.executable, system=SYSTEM, has_venv=has_venv))
    path.chmod(0o755)
    return path


def give(path: Path, user: int) -> None:
    for one in [path, *path.rglob("*")]:
        os.chown(one, user, user, follow_symlinks=False)


@pytest.fixture
def make(top: Path, clean_environment: dict[str, str]) -> Make:
    """make(user, words ...), in the clone."""

    def run(user: int, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["make", f"PYTHON={top}/python", *words]
        environment = {**clean_environment, "HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command,
            cwd=top / "clone",
            env=environment,
            user=user,
            group=user,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


def others(top: Path, user: int) -> list[str]:
    """What in the clone belongs to another user."""
    clone = top / "clone"
    return [str(path.relative_to(clone)) for path in clone.rglob("*") if path.lstat().st_uid != user]


def test_root_makes_a_site_and_leaves_nothing_of_its_own_in_the_clone(top: Path, make: Make) -> None:
    give(top / "clone", OWNER.pw_uid)
    done = make(0, "site", f"PREFIX={top}/site")
    assert done.returncode == 0, done.stderr
    assert (top / "site/lib/liboverlap.so").stat().st_uid == 0
    assert (top / "clone/.venv/.made").exists() and others(top, OWNER.pw_uid) == []
    again = make(0, "site", f"PREFIX={top}/site")
    assert again.returncode == 0 and len(again.stdout.splitlines()) == 1  # the command of make: nothing was built
    assert make(OWNER.pw_uid, ".venv/bin/overlap-run").returncode == 0
    done = make(OWNER.pw_uid, "clean")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (top / "clone/.venv").exists() and not (top / "clone/pyshim/_lib").exists()


def test_a_dry_run_of_root_builds_nothing(top: Path, make: Make) -> None:
    give(top / "clone", OWNER.pw_uid)
    assert make(0, "--dry-run", "site", f"PREFIX={top}/site").returncode == 0
    assert not (top / "clone/.venv").exists() and not (top / "site").exists()


@pytest.mark.parametrize("target", ["site", "pyshim/_lib/.built", ".venv/bin/overlap-run", ".venv/.group-test"])
def test_what_root_has_left_is_named_and_stays(top: Path, make: Make, target: str) -> None:
    """As an earlier make did by sudo, with a Python that the owner cannot run."""
    assert make(0, ".venv/bin/overlap-run").returncode == 0
    give(top / "clone", OWNER.pw_uid)
    give(top / "clone/.venv", 0)
    (top / "clone/.venv/bin/python").chmod(0o700)
    before = sorted(top.rglob("*"))
    done = make(OWNER.pw_uid, target, f"PREFIX={top}/site")
    said = done.stderr.splitlines()
    assert done.returncode != 0
    assert said[:2] == [
        "make: .venv belongs to root, and you (nobody) cannot replace it",
        "make: help: sudo make clean, then run make again without sudo",
    ]
    assert len(said) == 3 and said[2].startswith("make: ***")
    assert sorted(top.rglob("*")) == before


@pytest.mark.parametrize(
    ("changed", "target"),
    [
        ("pyproject.toml", "pyshim/_lib/.built"),
        ("shim/build.py", "pyshim/_lib/.built"),
        ("shim/build.py", ".venv/bin/overlap-run"),
        (None, ".venv/bin/overlap-run"),
        (None, ".venv/.group-test"),
    ],
)
def test_a_step_of_the_build_that_would_fail_says_why_before(
    top: Path, make: Make, changed: str | None, target: str
) -> None:
    """Root has built a part, with a Python that the owner can run; something has changed since, or is missing."""
    assert make(0, "pyshim/_lib/.built").returncode == 0
    give(top / "clone", OWNER.pw_uid)
    give(top / "clone/.venv", 0)
    assert make(OWNER.pw_uid, "pyshim/_lib/.built").returncode == 0  # nothing to build
    if changed:
        os.utime(top / "clone" / changed)
    done = make(OWNER.pw_uid, target)
    assert done.returncode != 0 and done.stderr.startswith("make: .venv belongs to root, and you (nobody) cannot ")


def test_clean_removes_all_or_says_in_one_sentence_why_nothing(top: Path, make: Make) -> None:
    assert make(0, ".venv/bin/overlap-run").returncode == 0
    give(top / "clone", OWNER.pw_uid)
    (top / "clone/tools/__pycache__").mkdir()
    give(top / "clone/tools/__pycache__", 0)
    before = sorted(top.rglob("*"))
    done = make(OWNER.pw_uid, "clean")
    said = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert done.returncode != 0 and said == [
        "make: nothing is removed: tools/__pycache__ belongs to root, and you (nobody) cannot remove it",
        "make: help: sudo make clean",
    ]
    assert sorted(top.rglob("*")) == before
    assert make(0, "clean").returncode == 0  # as is said
    assert not (top / "clone/.venv").exists() and not (top / "clone/tools/__pycache__").exists()


def test_a_clone_of_another_user(top: Path, make: Make) -> None:
    """Nobody builds in it but its owner; then anyone may use what is built there."""
    done = make(OWNER.pw_uid, "site", f"PREFIX={top}/site")
    assert done.returncode != 0 and done.stderr.startswith(
        f"make: make builds in {top}/clone, which belongs to root, and you (nobody) cannot write there\n"
        "make: help: clone into a folder of your own, and run make there\n"
    )
    assert not (top / "clone/.venv").exists()
    assert make(0, "pyshim/_lib/.built").returncode == 0
    done = make(OWNER.pw_uid, "pyshim/_lib/.built")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("target", ["pyshim/_lib/.built", "clean"])
def test_an_environment_that_make_did_not_make_stays(top: Path, make: Make, target: str) -> None:
    theirs = top / "clone/.venv/lib/theirs"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    done = make(0, target)
    assert theirs.exists() and "not made by make" in done.stderr
    assert (done.returncode == 0) == (target == "clean")


def test_an_environment_that_cannot_be_made_has_its_cause_said(top: Path, make: Make) -> None:
    python(top, has_venv=1)
    done = make(0, "pyshim/_lib/.built")
    assert done.returncode != 0 and "apt-get install python3-venv" in done.stderr
    python(top)
    (top / "no-space").touch()
    done = make(0, "pyshim/_lib/.built")
    assert done.returncode != 0 and "python3-venv" not in done.stderr
    assert not (top / "clone/.venv").exists()


def test_what_an_interrupted_make_has_left_is_made_anew(top: Path, make: Make) -> None:
    assert make(0, "pyshim/_lib/.built").returncode == 0
    (top / "clone/.venv/.made").unlink()
    done = make(0, "pyshim/_lib/.built")
    assert done.returncode == 0, done.stderr
