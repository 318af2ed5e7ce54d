"""Run the program once, and take its figure: the time of the run, or numbers that it prints.

The program has a session of its own, so that it can be ended with all that it started: first by SIGTERM to its group,
as launchers expect it, and after a while by SIGKILL to the whole session. Its output goes to a file.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from statistics import median
from threading import Timer
from typing import NamedTuple

from pyshim.counts import counted
from pyshim.errors import USAGE, OverlapError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that end a search
PATIENCE = 10.0  # seconds from SIGTERM to SIGKILL
_MOMENT = 1.0  # seconds in which what a program leaves running may end by itself
_MOST = 1 << 28  # characters of an output that are read
_KEPT = 1 << 19  # bytes of an output that are kept, at its beginning and at its end
_GONE = (ProcessLookupError, PermissionError)  # or it is another user's, as behind sudo
_TENTH = 10  # so much of a program's numbers is its warm-up, unless --skip says how many


NO_MATCH = "nothing that it printed matches --metric"


class Metric(NamedTuple):
    pattern: str | None = None  # None: seconds of the run
    higher: bool = False  # is better
    skip: int | None = None
    same: str | None = None

    def check(self) -> None:
        """Raise OverlapError for a wrong expression."""
        for option, pattern in (("--metric", self.pattern), ("--same", self.same)):
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise OverlapError(
                    f"{option} {pattern}: {error}", "it is a regular expression of Python's", USAGE
                ) from error
        if self.same is not None and re.search(self.same, "", re.MULTILINE):
            sentence = f"--same {self.same!r} matches an empty string: an output without results would pass the check"
            hint = "name what must not change: --same 'energy .*', or --same '.+' for every line"
            raise OverlapError(sentence, hint, USAGE)
        if self.pattern is None and (self.higher or self.skip is not None):
            option = "--higher" if self.higher else "--skip"
            raise OverlapError(f"{option} needs --metric", "--metric 'step ([0-9.]+) ms'", USAGE)
        if self.skip is not None and self.skip < 0:
            raise OverlapError(f"--skip {self.skip}: not a number of matches", "--skip 10", USAGE)

    def read(self, text: str) -> float:
        """Return the figure in an output: the median. Raises ValueError with why there is none."""
        assert self.pattern is not None
        found = [_number(match) for match in re.finditer(self.pattern, text, re.MULTILINE)]
        if not found:
            raise ValueError(NO_MATCH)
        left = found[len(found) // _TENTH if self.skip is None else self.skip :]
        if not left:
            raise ValueError(f"--skip {self.skip} leaves nothing of {counted(len(found), 'match')} of --metric")
        numbers = []
        for number in left:
            try:
                numbers.append(float(number))
            except ValueError:
                raise ValueError(
                    f"--metric matches {number!r}, which is no number: put ( ) around the number"
                ) from None
        value = math.nan if any(map(math.isnan, numbers)) else median(numbers)
        if not 0 < value < float("inf"):
            raise ValueError(f"--metric finds {value:g}, and only positive numbers can be compared")
        return value

    def results(self, text: str) -> str:
        """Return a digest of what must not change."""
        found = self.kept(text)
        return hashlib.sha256("\n".join(found).encode("utf-8", "replace")).hexdigest() if found else ""

    def kept(self, text: str) -> list[str]:
        """Return what --same matches."""
        if self.same is None:
            return []
        # An expression can match nothing between two letters only, as \b does: that checks nothing.
        return [match[0] for match in re.finditer(self.same, text, re.MULTILINE) if match[0]]

    def covered(self, text: str) -> str:
        """Return what --same matches around a number that --metric reads, which no arm could change then; or ""."""
        if self.same is None or self.pattern is None:
            return ""
        numbers = sorted(_span(match) for match in re.finditer(self.pattern, text, re.MULTILINE))
        begins = [begin for begin, _ in numbers]
        for match in re.finditer(self.same, text, re.MULTILINE):
            at = bisect.bisect_left(begins, match.end())  # those before it begin inside or before the match
            if at and numbers[at - 1][1] > match.start():
                return match[0].strip()
        return ""


def _number(match: re.Match[str]) -> str:
    """Return the first group that took part, in `a (.)|b (.)` that of b, too; without groups the whole match."""
    return next((group for group in match.groups() if group is not None), match[0])


def _span(match: re.Match[str]) -> tuple[int, int]:
    """Return where the number is that _number() returns."""
    group = next((index for index, group in enumerate(match.groups(), 1) if group is not None), 0)
    return match.span(group)


class TimedRun(NamedTuple):
    seconds: float
    value: float | None = None
    wrong: str = ""  # why it counts for nothing
    results: str = ""  # that --same names
    late: bool = False  # ended because it took too long


def run(command: Sequence[str], names: Mapping[str, str], file: str, patience: float, metric: Metric) -> TimedRun:
    """Run the program. patience: seconds until it is ended. Raises OverlapError where it cannot be started."""
    try:
        return _run(command, names, file, patience, metric)
    finally:
        shorten(file)


def _run(command: Sequence[str], names: Mapping[str, str], file: str, patience: float, metric: Metric) -> TimedRun:
    seconds, status, late = _start(command, names, file, patience)
    if late:
        return TimedRun(seconds, wrong="took too long", late=True)
    if status:
        return TimedRun(seconds, wrong=_ended(status))
    printed = text(file)
    try:
        value = seconds if metric.pattern is None else metric.read(printed)
    except ValueError as error:
        return TimedRun(seconds, wrong=str(error))
    return TimedRun(seconds, value, results=metric.results(printed))


def text(file: str) -> str:
    """Return an output."""
    with open(file, encoding="utf-8", errors="replace") as output:
        return output.read(_MOST)


def shorten(file: str) -> None:
    """Keep beginning and end of a long output: a search has many."""
    with suppress(OSError), open(file, "r+b") as output:
        size = os.fstat(output.fileno()).st_size
        if size > 3 * _KEPT:
            output.seek(size - _KEPT)
            end = output.read(_KEPT)
            output.seek(_KEPT)
            output.write(f"\n[{size - 2 * _KEPT} bytes are left out]\n".encode() + end)
            output.truncate()


def _start(command: Sequence[str], names: Mapping[str, str], file: str, patience: float) -> tuple[float, int, bool]:
    late: list[bool] = []
    process = None

    def stop() -> None:
        assert process is not None
        late.append(True)
        end(process)

    timer = Timer(patience, stop)  # Popen.wait(timeout) polls, which would blur the time
    timer.daemon = True
    try:
        with open(file, "wb") as output, _held():
            begin = time.monotonic()
            process = subprocess.Popen(
                command, env=dict(names), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        timer.start()
        status = process.wait()
        seconds = time.monotonic() - begin
        timer.cancel()
        if late:
            timer.join()
        else:
            _end_rest(process)
    except OSError as error:
        at = command[0] if error.filename != file else file
        raise OverlapError(f"{at}: {error.strerror}", "look whether it is still there and can be started") from error
    except BaseException:
        if process is not None:
            end(process)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        raise
    finally:
        timer.cancel()
    return seconds, status, bool(late)


@contextmanager
def _held() -> Iterator[None]:
    """Hold signals back while a program is started: until Popen returns, nobody could end it."""
    held: list[int] = []
    before = [(number, signal.getsignal(number)) for number in ENDING]
    own = [(number, handler) for number, handler in before if callable(handler)]
    for number, _ in own:
        signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in own:
            signal.signal(number, handler)
        for caught in held:
            signal.raise_signal(caught)


def _end_rest(process: subprocess.Popen[bytes]) -> None:
    """End what a program that has ended left running, after a moment in which it may end by itself."""
    limit = time.monotonic() + _MOMENT
    while (left := _session(process.pid)) and time.monotonic() < limit:
        time.sleep(0.02)
    for pid in left:
        with suppress(*_GONE):
            os.kill(pid, signal.SIGTERM)
    if left:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started; another Ctrl-C ends the patience with it."""
    try:
        with suppress(*_GONE):
            os.killpg(process.pid, signal.SIGTERM)
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit and _session(process.pid):
            time.sleep(0.05)
    finally:
        limit = time.monotonic() + PATIENCE  # until they have gone: what runs next must have the GPU for itself
        while (left := _session(process.pid)) and time.monotonic() < limit:
            for pid in left:
                with suppress(*_GONE):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def _session(leader: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    import psutil

    found = []
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


def _ended(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def last_line(file: str) -> str:
    """Return the last line that the program printed, for a message."""
    with suppress(OSError), open(file, "rb") as output:
        lines = [line.strip() for line in output.read()[-4096:].decode("utf-8", "replace").splitlines()]
        return next((line[:160] for line in reversed(lines) if line), "")
    return ""
