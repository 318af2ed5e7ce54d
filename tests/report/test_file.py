"""Files appear whole or not at all: reports, pages for a browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyshim.pages import untrusted as file


def test_a_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"
    for text in (b"first", b"second, longer"):
        file.write_whole(str(target), text)
        assert target.read_bytes() == text
        assert target.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["target"]


def test_what_was_there_stays_where_the_new_one_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, seen = tmp_path / "target", []
    target.write_bytes(b"before")

    def fail(scratch: str, path: str) -> None:
        seen.append((Path(scratch), Path(path), target.read_bytes()))
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        file.write_whole(str(target), b"after")
    ((scratch, path, before),) = seen
    assert (scratch.parent, path, before) == (tmp_path, target, b"before")
    assert scratch.name.startswith("."), "no report reads it"
    assert target.read_bytes() == b"before" and os.listdir(tmp_path) == ["target"]


@pytest.mark.parametrize("link", [True, False])
def test_nothing_is_written_through_a_link_or_into_a_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    other, scratch = tmp_path / "other", tmp_path / f".{os.getpid()}.{bytes(4).hex()}"
    other.write_bytes(b"other")
    scratch.symlink_to(other) if link else os.link(other, scratch)
    monkeypatch.setattr(os, "urandom", bytes)
    with pytest.raises(FileExistsError):
        file.write_whole(str(tmp_path / "target"), b"x")
    assert other.read_bytes() == b"other" and scratch.exists()
