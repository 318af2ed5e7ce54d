"""A question that only another process may ask: it may hang, crash or be ended, and we go on."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

_PR_SET_PDEATHSIG = 1  # prctl(2)
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


def run(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> Outcome:
    """Run a command, for at most so many seconds.

    `{answer}` in the command becomes the number of the descriptor to answer on. The end of the process counts, not that
    of its pipes, which what it leaves running may keep: `subprocess.run` would wait for those, and keep all that is
    written. The process does not outlive this one, however that ends. Raises OSError where it cannot be started."""
    answer, complaint = _Pipe(), _Pipe()
    with answer, complaint:
        process = subprocess.Popen(
            [word.replace("{answer}", str(answer.writer)) for word in command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaint.writer,
            pass_fds=(answer.writer,),
            start_new_session=True,  # so that what it started can be ended with it
            preexec_fn=_tied(),
        )
        try:
            status = _wait(process, (answer, complaint), seconds)
        except BaseException:  # Ctrl-C, which only we get
            _kill(process)
            raise
        if status is None:
            _kill(process)
        for pipe in (answer, complaint):
            pipe.read()
        return Outcome(status, bytes(answer.data), complaint.data.decode("utf-8", "replace"))


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


def _tied() -> Callable[[], None]:
    """Return what a child calls before its program starts, so that the kernel kills it when this process is gone."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # gone already
            os.kill(os.getpid(), signal.SIGKILL)

    return tie


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it started."""
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


class _Pipe:
    """From a child; read without waiting."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def __enter__(self) -> _Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.reader)
        os.close(self.writer)

    def read(self) -> None:
        with suppress(BlockingIOError):
            while part := os.read(self.reader, 1 << 16):
                self.data += part[: _MOST - len(self.data)]


def _wait(process: subprocess.Popen[bytes], pipes: Sequence[_Pipe], seconds: float) -> int | None:
    """Return its exit status; None where it takes longer than that."""
    end = time.monotonic() + seconds
    step = 0.001
    with selectors.DefaultSelector() as ready:
        for pipe in pipes:
            ready.register(pipe.reader, selectors.EVENT_READ, pipe)
        while (status := process.poll()) is None and time.monotonic() < end:
            for key, _ in ready.select(step):
                key.data.read()
            step = min(2 * step, 0.05)
    return status


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
