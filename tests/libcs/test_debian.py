"""Packages of other releases: where they come from, and one reason where they do not."""

from __future__ import annotations

from pathlib import Path

import debian
import pytest

KEY = "/usr/share/keyrings/archive.gpg"
NEW = f"""\
Types: deb
URIs: http://security.invalid/debian-security
Suites: bookworm-security
Components: main

# a comment
Types: deb
URIs: http://mirror.invalid/debian http://second.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: {KEY}
"""
OLD = f"""\
# deb http://comment.invalid/debian bookworm main
deb http://other.invalid/tools stable main
deb [arch=amd64 signed-by={KEY}] http://mirror.invalid/debian/ bookworm main contrib
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own, with nothing in its cache and without sources."""
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    monkeypatch.setattr(debian, "SOURCES", tmp_path)
    monkeypatch.setattr(debian, "RELEASE", tmp_path / "os-release")
    monkeypatch.setattr(debian, "cache", lambda: tmp_path / "cache")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("sources.list.d/debian.sources", NEW, f"deb [signed-by={KEY}] http://mirror.invalid/debian trixie main\n"),
        ("sources.list", OLD, f"deb [arch=amd64 signed-by={KEY}] http://mirror.invalid/debian/ trixie main\n"),
    ],
)
def test_the_machines_own_source_with_another_release(machine: Path, file: str, text: str, line: str) -> None:
    (machine / file).write_text(text)
    assert debian.exchanged("trixie") == line


def test_a_machine_without_a_source_says_so(machine: Path) -> None:
    with pytest.raises(debian.Missing, match="no source of bookworm main"):
        debian.fetch("trixie", ["hello"])


def test_another_distribution_says_so(machine: Path) -> None:
    (machine / "os-release").write_text("ID=ubuntu\nVERSION_CODENAME=noble\n")
    with pytest.raises(debian.Missing, match="needs Debian"):
        debian.fetch("trixie", ["hello"])


def test_an_archive_that_is_not_there_is_a_reason_and_leaves_nothing_behind(machine: Path) -> None:
    (machine / "sources.list").write_text(f"deb [trusted=yes] file:{machine}/nowhere bookworm main\n")
    with pytest.raises(debian.Missing, match="apt-get: "):
        debian.fetch("bookworm", ["hello"])
    assert not (debian.cache() / "bookworm" / "root").exists()


def test_what_is_there_is_not_fetched_again(machine: Path) -> None:
    done = debian.cache() / "trixie" / "done"
    done.mkdir(parents=True)
    (done / "hello").touch()
    assert debian.fetch("trixie", ["hello"]) == debian.cache() / "trixie" / "root"


def test_packages_of_another_processor_are_kept_apart(machine: Path) -> None:
    done = debian.cache() / "trixie-arm64" / "done"
    done.mkdir(parents=True)
    (done / "hello").touch()
    assert debian.fetch("trixie", ["hello"], "arm64") == debian.cache() / "trixie-arm64" / "root"
    (machine / "sources.list").write_text(f"deb [trusted=yes] file:{machine}/nowhere bookworm main\n")
    with pytest.raises(debian.Missing):
        debian.fetch("trixie", ["hello"])
