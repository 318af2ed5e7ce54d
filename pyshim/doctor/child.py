"""A question that only another process may ask: it may hang, crash or be ended, and we go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

_GRACE = 2.0  # a process that hangs inside the kernel cannot be killed: it is left behind
LATE = "it did not answer in time"
NO_SENSE = "the process that asked it gave no answer that makes sense"
_MOST = 1 << 20  # bytes that are kept of an answer, and of what it complains about


class Outcome(NamedTuple):
    status: int | None  # negative: the signal that ended it; None: it took too long and was killed
    answer: bytes  # what it wrote to the descriptor that it was given
    stderr: str

    @property
    def how(self) -> str:
        """How it ended, for the middle of a sentence."""
        if self.status is None:
            return f"was killed: {LATE}"
        if self.status < 0:
            return f"died of {_signal(-self.status)}"
        return f"ended with status {self.status}"

    @property
    def last(self) -> str:
        """The last line of what it complained about."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""


def run(command: Sequence[str], environment: Mapping[str, str], seconds: float, stdout: bool = False) -> Outcome:
    """Run a command, for at most so many seconds. Raises OSError where it cannot be started.

    `{answer}` in the command becomes the number of the descriptor to answer on; stdout: its stdout is that one. Answer
    and stderr are files in memory: the end of the process counts, not that of a pipe, which a daemon may keep."""
    answer, complaint = os.memfd_create("answer"), os.memfd_create("stderr")
    try:
        process = subprocess.Popen(
            [word.replace("{answer}", str(answer)) for word in command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=answer if stdout else subprocess.DEVNULL,
            stderr=complaint,
            pass_fds=(answer,),
            start_new_session=True,  # so that what it started can be ended with it
        )
        status: int | None = None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also at Ctrl-C, which only we get
            if process.returncode is None:
                _kill(process)
        return Outcome(status, os.pread(answer, _MOST, 0), os.pread(complaint, _MOST, 0).decode("utf-8", "replace"))
    finally:
        os.close(answer)
        os.close(complaint)


def ask(script: str, words: Sequence[str], environment: Mapping[str, str], seconds: float) -> tuple[Any, str]:
    """Run a script of ours, and return the object that it answers; without one, also why, for inside a sentence."""
    command = [sys.executable, "-I", "-S", script, *words, "{answer}"]
    # Ours may be preloaded here, and has nothing to say about this question.
    quiet = {**environment, "OVERLAP_RUN": "off"}
    try:
        outcome = run(command, quiet, seconds)
    except OSError as error:
        return None, f"could not be asked: {error.strerror}"
    if outcome.status != 0:
        last = f" ({outcome.last})" if outcome.last and outcome.status is not None else ""
        return None, f"the process that asked it {outcome.how}{last}"
    try:
        return json.loads(outcome.answer), ""
    except ValueError:
        return None, NO_SENSE


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
