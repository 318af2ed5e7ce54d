"""Fixtures of several commands."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def driver(tmp_path: Path) -> dict[str, str]:
    """A machine that looks as if it had a driver: the launcher looks for the file and never opens it."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "libcuda.so.1").write_bytes(b"")
    return {"LD_LIBRARY_PATH": str(folder)}
