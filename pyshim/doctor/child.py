"""A question that only another process may ask: it may hang, crash or be ended, and we go on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

_GRACE = 2.0  # a process that hangs inside the kernel cannot be killed: it is left behind
_MOST = 1 << 16  # what a pipe holds; nobody reads while the child runs


class Outcome(NamedTuple):
    status: int | None  # negative: the signal that ended it; None: it took too long and was killed
    answer: bytes  # what it wrote to the descriptor that it was given
    stderr: str

    @property
    def how(self) -> str:
        """How it ended, for the middle of a sentence."""
        if self.status is None:
            return "was killed: it did not answer in time"
        if self.status < 0:
            return f"died of {_signal(-self.status)}"
        return f"ended with status {self.status}"

    @property
    def last(self) -> str:
        """The last line of what it complained about."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""


def run(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> Outcome:
    """command: `{answer}` in it becomes the number of the descriptor to answer on. Raises OSError where it cannot be
    started."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        words = [word.replace("{answer}", str(writer)) for word in command]
        process = subprocess.Popen(
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(writer,),
            start_new_session=True,  # so that what it started can be ended with it
        )
        try:
            _, stderr = process.communicate(timeout=seconds)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            stderr, status = _end(process), None
        answer = b""
        with suppress(BlockingIOError):
            answer = os.read(reader, _MOST)
        return Outcome(status, answer, stderr.decode("utf-8", "replace"))
    finally:
        os.close(reader)
        os.close(writer)


def _end(process: subprocess.Popen[bytes]) -> bytes:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=_GRACE)[1]
    return b""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
