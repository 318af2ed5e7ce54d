"""Files of the machine that are read before a program starts."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Timer

from pyshim.start import driver, program


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    late = Timer(20.0, pipe.write_text, ["late"])  # so that a read that waits ends, too
    late.daemon = True
    late.start()
    assert driver.text(str(pipe)) == ""
    late.cancel()


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    assert driver.text(str(tmp_path)) == driver.text("\0") == driver.text(str(tmp_path / "missing")) == ""
    assert driver.names(str(tmp_path / "missing")) == program.cached(str(tmp_path)) == []
