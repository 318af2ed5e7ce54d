"""A command with a limit: what it printed until then, and nothing of it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NOT_FOUND, LATE = 127, 124  # as of a shell, and as of timeout(1)
GRACE = 5  # seconds from SIGTERM to SIGKILL


@dataclass(frozen=True)
class Ended:
    status: int  # minus the number of a signal; LATE: ended at its limit
    output: str
    errors: str
    seconds: float


def ended(words: Sequence[str], environment: Mapping[str, str], limit: float, work: Path) -> Ended:
    """Run it in `work`, for at most `limit` seconds; all that it started in its session ends with it."""
    begun = time.monotonic()
    paths = work / "stdout", work / "stderr"
    with paths[0].open("wb") as output, paths[1].open("wb") as errors:
        try:
            process = subprocess.Popen(
                words,
                env=dict(environment),
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            return Ended(NOT_FOUND, "", f"{words[0]}: {error.strerror}", 0.0)
        late = False
        try:
            process.wait(max(0.0, limit))
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _end(process)
    read = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    return Ended(LATE if late else process.returncode, read[0], read[1], round(time.monotonic() - begun, 1))


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
