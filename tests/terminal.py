"""What a command writes to a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any


def on_a_terminal(command: Sequence[object], environment: Mapping[str, str], columns: int = 80, **streams: Any) -> str:
    """Return what it writes. streams: of subprocess.run; None, as stdout is, is the terminal."""
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", str(columns), "rows", "24"], stdin=theirs, check=True)
    chosen: dict[str, Any] = {
        name: theirs if value is None else value for name, value in {"stdout": None, **streams}.items()
    }
    with open(ours, "rb", buffering=0) as screen:
        with subprocess.Popen([str(word) for word in command], env=dict(environment), **chosen) as process:
            os.close(theirs)
            seen = b""
            try:
                while part := screen.read(1 << 16):
                    seen += part
            except OSError:  # Linux: the other end is closed
                pass
        assert process.returncode == 0
    return seen.decode().replace("\r\n", "\n")
