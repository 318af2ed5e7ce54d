"""What the first run shows: the libraries that the program loads, and whether it repeats a step.

The first run is under the policy `observe`, which changes nothing, where something is to be found out: no variable was
named to try, or no --metric. Pages tell which libraries launch and create streams. While processes of this host run,
/proc tells what else they have mapped (UCX launches nothing), and their pages how waits and collectives add up.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import NamedTuple

from pyshim.errors import OverlapError
from pyshim.pages.page import Page, read_page
from pyshim.pages.untrusted import Unreadable
from pyshim.report import collect

OBSERVE = "observe"
_EVERY = 0.25  # seconds
_LOOP = 16  # waits or collectives: so many are a loop
_NCCL, _TORCH, _UCX = "libnccl.so", "libtorch", "libucp.so"


class Seen(NamedTuple):
    libraries: frozenset[str]  # basenames
    hosts: int
    steps: int  # waits of the host and collectives, of all processes
    start: float | None  # seconds until the first of them; None: not known
    steady: bool  # they went on at a steady rate from there to the end

    @property
    def sets(self) -> list[str]:
        """Return the sets of variables that may matter to it."""
        nccl = self._loads(_NCCL)
        chosen = (
            ("nccl", nccl),
            ("pytorch", nccl and self._loads(_TORCH)),
            ("nccl-network", nccl and self.hosts > 1),
            ("mpi", self._loads(_UCX)),
        )
        return [name for name, fits in chosen if fits]

    @property
    def because(self) -> list[str]:
        """Return the libraries by which the sets were chosen."""
        names = [min((one for one in self.libraries if one.startswith(name)), default="") for name in (_NCCL, _UCX)]
        return [name for name in names if name]

    def _loads(self, name: str) -> bool:
        return any(library.startswith(name) for library in self.libraries)


class Watcher:
    """Looks at a run while it runs. report: the folder of its pages."""

    def __init__(self, report: str) -> None:
        self.report = report
        self.mapped: set[str] = set()
        self.counts: list[tuple[float, int]] = []  # seconds, waits and collectives so far
        self.over = Event()
        self.begin = time.monotonic()
        self.thread = Thread(target=self._watch, daemon=True)
        self.thread.start()

    def seen(self) -> Seen | None:
        """Return what was seen, at the end of the run. None: no process left a page, so none used a GPU."""
        seconds = time.monotonic() - self.begin
        self.over.set()
        self.thread.join()
        try:
            pages = collect.collect(self.report).pages
        except OverlapError:
            return None
        if not pages:
            return None
        hosts = len({page.host for page in pages})
        steps = sum(map(_steps, pages))
        start, steady = rate([*self.counts, (seconds, steps)])
        return Seen(frozenset(self.mapped | _callers(pages)), hosts, steps, start, steady)

    def _watch(self) -> None:
        here = os.uname().nodename[:63]
        while not self.over.wait(_EVERY):
            with suppress(OSError, OverlapError):
                pages = list(_pages(self.report))
                self.counts.append((time.monotonic() - self.begin, sum(map(_steps, pages))))
                for page in pages:
                    if page.host == here:
                        self.mapped |= mapped(page.pid)


def _pages(folder: str) -> Iterable[Page]:
    for name in collect.listed(folder):
        if name.endswith(".page"):
            with suppress(Unreadable):
                yield read_page(os.path.join(folder, name))


def _steps(page: Page) -> int:
    return page.waits + page.communication


def _callers(pages: Iterable[Page]) -> set[str]:
    """Return the libraries that launched or created a stream. NCCL may be part of another library."""
    found = {row.library for page in pages for row in page.rows} | {
        stream.creator for page in pages for stream in page.streams
    }
    kernels = {row.plain for page in pages for row in page.rows if "rccl" not in row.library}
    if any(kernel.startswith(("ncclDevKernel", "ncclKernel")) for kernel in kernels):
        found.add(_NCCL)
    return {name for name in found if name}


def mapped(pid: int) -> set[str]:
    """Return the basenames of the libraries that a process of ours has mapped."""
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        return {os.path.basename(line.split(None, 5)[5].strip()) for line in file if ".so" in line and line.count("/")}
    return set()


def rate(counts: Collection[tuple[float, int]]) -> tuple[float | None, bool]:
    """Return when counting began, and whether it went on steadily.

    Steadily: half of it is reached between a third and two thirds of the time from there to the end."""
    rising = [(seconds, count) for seconds, count in counts if count]
    total = rising[-1][1] if rising else 0
    if len(rising) < 4 or total < _LOOP:
        return None, False
    begin, end = rising[0][0], rising[-1][0]
    half = next(seconds for seconds, count in rising if count >= (rising[0][1] + total) / 2)
    return begin, 1 / 3 <= (half - begin) / (end - begin) <= 2 / 3


# ---- what is said ----


def chosen(names: Sequence[str], seen: Seen | None) -> str:
    """Say which sets of variables are tried, and why."""
    if names:
        by = f", because the program loads {' and '.join(seen.because)}" if seen else ""
        return f"tries {' '.join(f'--set {name}' for name in names)}{by}"
    if seen is None:
        return "tries no variables: what the ranks of the first run used was not seen here; --set NAME names some"
    return "tries no variables: the program loads neither NCCL nor UCX; --try VAR=V1,V2 names some"


def advice(seen: Seen | None, seconds: float, printed: str) -> str:
    """Say what comparing whole runs hides, and the --metric that the output offers."""
    said = f"without --metric, whole runs of {seconds:.1f} s are compared, their start included"
    if seen is not None and seen.start is not None and seen.steady:
        said += f": {seen.start:.1f} s pass before steps recur at a steady rate ({seen.steps} waits and collectives)"
    return f"{said}; {offer(printed)}"


def offer(printed: str) -> str:
    """Say which --metric fits what a program printed; if none surely does, show the lines with numbers."""
    found = metric(printed)
    if found is not None:
        pattern, higher, line = found
        return f'it prints "{line}": --metric {shlex.quote(pattern)}{" --higher" * higher} compares that'
    lines = [f'"{line}"' for line in _with_numbers(printed)]
    if lines:
        return f"it prints numbers in {', '.join(lines)}: --metric takes one of them, with ( ) around the number"
    return "it prints no number: let the program print the time of a step, and name that with --metric"


def _with_numbers(text: str) -> list[str]:
    """Return the last few lines with numbers, of lines that differ in their numbers only the last."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if re.search(rf"(?<![\w.]){_NUMBER}", line):
            found[re.sub(_NUMBER, "0", line)] = _cut(line.strip(), _SHOWN)
    return list(found.values())[-_LINES:]


def _cut(line: str, most: int) -> str:
    """Return a line of so many characters at most; "..." ends one that was longer, behind a whole word."""
    if len(line) <= most:
        return line
    head = line[: most - 3]
    return f"{head.rpartition(' ')[0] or head}..."


# ---- a metric in what the program prints ----

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_RATES = (
    r"(?:it|iter|iters|iterations|steps?|samples?|tokens?|images?|frames?|atoms?)/s(?:ec(?:ond)?)?"
    r"|fps|[GMT]?FLOP/?s|[GT]B/s"
)
_TIMES = r"(?:[mun]?s|sec|secs|seconds|milliseconds|microseconds)"
_STEP = r"(?:step|iter|iteration|it|batch|epoch|frame|timestep)s?"
# What follows or precedes a number, best first, and whether more is better.
_FORMS = (
    (rf"({_NUMBER}) ?{_TIMES} ?(?:/|per|an?) ?{_STEP}\b", False),
    (rf"({_NUMBER}) ?(?:{_RATES})\b", True),
    (rf"{_TIMES} ?(?:/|per) ?{_STEP}\W{{1,4}}({_NUMBER})", False),
    (rf"{_STEP}(?: |_)?time\W{{1,4}}({_NUMBER})", False),
    (rf"\b(?:\w+_)?{_TIMES}\"? ?[:=] ?({_NUMBER})", False),
    (rf"\b{_STEP}\b[^\n]{{0,60}}?({_NUMBER}) ?{_TIMES}\b", False),
)
_LINES, _SHOWN = 3, 80  # lines that are shown, and characters of one
_MANY = 3  # matches of a form that one line alone does not prove


def metric(text: str) -> tuple[str, bool, str] | None:
    """Return an expression for --metric that fits an output, whether more is better, and a line that it matches."""
    for at, (form, higher) in enumerate(_FORMS):
        found = list(re.finditer(form, text, re.IGNORECASE))
        if not found or (at > 0 and len(found) < _MANY):
            continue
        numbers = [float(match[1]) for match in found]
        growing = numbers == sorted(numbers) and numbers[-1] > 1.5 * numbers[0]
        if growing or min(numbers) <= 0:  # a clock, or no time
            continue
        chosen = _plain(found[-1])
        if len(re.findall(chosen, text)) >= len(found) / 2:
            line = text[: found[-1].end()].rpartition("\n")[2] + text[found[-1].end() :].partition("\n")[0]
            return chosen, higher, _cut(line.strip(), 100)
    return None


def _plain(match: re.Match[str]) -> str:
    """Return a short expression for a match: its words as they are, other numbers as any number."""
    before, after = match[0][: match.start(1) - match.start()], match[0][match.end(1) - match.start() :]
    if not after.strip():
        pieces = re.split(_NUMBER, before)
        return r"[0-9.]+".join(map(re.escape, pieces)).replace(r"\ ", " ") + "([0-9.eE+-]+)"
    return "([0-9.]+)" + re.escape(after).replace(r"\ ", " ")
