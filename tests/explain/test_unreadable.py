"""Files and folders that this user may not read: a folder is answered about without them, and the help is about it.

Root may read anything. So where root runs the tests, the command is started without that right."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.explain.steps import trace
from tests.explain.test_verdicts import raised

ROOT = Path(__file__).resolve().parents[2]
Ask = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ask(clean_environment: dict[str, str]) -> Ask:
    """Run overlap explain as a user that may not read everything."""
    command = [sys.executable, "-m", "pyshim", "explain"]
    if os.geteuid() == 0:
        without = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
        can = (
            shutil.which("setpriv")
            and not subprocess.run([*without, "true"], check=False, capture_output=True).returncode
        )
        if not can:
            pytest.skip("root may read anything here")
        command = without + command

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        whole = [*command, *map(str, arguments)]
        return subprocess.run(whole, capture_output=True, text=True, env=clean_environment, cwd=ROOT, check=False)

    return run


@pytest.fixture
def closed(library: None, tmp_path: Path) -> Iterator[Path]:
    """Two traces of ranks, one of them in a subfolder."""
    for rank, name in enumerate(("rank0.json", "sub/rank1.json")):
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        trace(path, raised, rank=rank)
    yield tmp_path / "job"
    for path in (tmp_path / "job", tmp_path / "job/sub", tmp_path / "job/sub/rank1.json"):
        path.chmod(0o700)


@pytest.mark.parametrize("name", ["sub", "sub/rank1.json"])
def test_a_folder_is_answered_about_without_what_is_closed_in_it(ask: Ask, closed: Path, name: str) -> None:
    (closed / name).chmod(0)
    done = ask(closed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("yes: ")
    assert done.stderr == f"overlap: {closed}/{name} cannot be read: Permission denied: it was passed over\n"


@pytest.mark.parametrize(("shut", "why"), [("sub/rank1.json", "read the file"), ("sub", "list the folder")])
def test_a_folder_whose_only_trace_is_closed_has_help_for_that(ask: Ask, closed: Path, shut: str, why: str) -> None:
    """How to record a trace is no help: one is there. The command that it says is run, and then there is an answer."""
    (closed / "rank0.json").unlink()
    (closed / shut).chmod(0)
    done = ask(closed)
    assert (done.returncode, done.stdout) == (2, "")
    error, hint = done.stderr.splitlines()
    assert error == (
        f"overlap: error: {closed} holds no trace: {closed / shut} cannot be read: Permission denied: "
        "it was passed over"
    )
    found = re.fullmatch(rf"overlap: help: this user may not {why}: (chmod .*)", hint)
    assert found, hint
    subprocess.run(shlex.split(found[1]), check=True)
    assert ask(closed).returncode == 0


@pytest.mark.parametrize(
    ("name", "shut", "why", "right"),
    [
        ("sub/rank1.json", "sub/rank1.json", "read the file", "u+r"),
        ("sub/rank1.json", "sub", "enter the folder", "u+x"),
        ("sub", "sub", "list the folder", "u+rx"),
        ("", "", "list the folder", "u+rx"),
    ],
)
def test_the_help_gives_the_permission(ask: Ask, closed: Path, name: str, shut: str, why: str, right: str) -> None:
    """The command that it says is run, and then there is an answer."""
    (closed / shut).chmod(0)
    done = ask(closed / name)
    assert (done.returncode, done.stdout) == (2, "")
    error, hint = done.stderr.splitlines()
    assert error == f"overlap: error: {closed / name} cannot be read: Permission denied"
    found = re.fullmatch(rf"overlap: help: this user may not {why}.*: (chmod {re.escape(right)} .*)", hint)
    assert found, hint
    subprocess.run(shlex.split(found[1]), check=True)
    assert ask(closed / name).returncode == 0


def test_a_page_that_cannot_be_written_has_help(ask: Ask, closed: Path) -> None:
    (closed / "sub").chmod(0o500)
    done = ask(closed / "rank0.json", "--html", closed / "sub/page.html")
    assert done.returncode == 2
    error, hint = done.stderr.splitlines()
    assert error == f"overlap: error: {closed}/sub/page.html cannot be written: Permission denied"
    assert hint.startswith("overlap: help: name ")


def test_many_notes_of_one_kind_are_one(ask: Ask, closed: Path) -> None:
    for number in range(30):
        shutil.copy(closed / "rank0.json", closed / f"copy-{number}.json")
    done = ask(closed)
    notes = done.stderr.splitlines()
    assert done.returncode == 0 and len(notes) == 1, notes
    assert "is the same recording as" in notes[0] and "(and 29 more notes like this one: --full has them)" in notes[0]
    assert ask(closed, "--full").stdout.count(" is the same") == 30
