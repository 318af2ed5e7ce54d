"""Fixtures of several commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import browser as chromium
import debian
import pytest


@pytest.fixture
def driver(tmp_path: Path) -> dict[str, str]:
    """A machine that looks as if it had a driver: the launcher looks for the file and never opens it."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "libcuda.so.1").write_bytes(b"")
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    try:
        with chromium.browser(tmp_path_factory.mktemp("browser")) as found:
            yield found
    except debian.Missing as missing:
        pytest.skip(f"no browser: {missing}")
