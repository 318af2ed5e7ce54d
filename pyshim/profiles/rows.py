"""Kernels, copies and calls of a large trace of Kineto, read without a JSON decoder.

Kineto writes the keys of an event in one order: ph, cat, name, pid, tid, ts, dur, args. One pattern takes such an event
apart; what its arguments mean is asked of the decoder once for all events that are alike but for times and numbers of
calls. Another pattern finds the next event that is of use, past operators, Python frames and arrows. Whatever is
written in another way is left to the decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyshim.profiles.record import Activity, Call, MemoryOperation, TracedLaunch
from pyshim.profiles.store import Store
from pyshim.profiles.window import Window, decode

# An event that is taken apart here, or the beginning of another one that is of use.
_ROWS = re.compile(
    r'\{\s*"(?:ph":\s*"X",\s*"cat":\s*"(kernel|cuda_runtime|cuda_driver|gpu_memcpy|gpu_memset)",\s*'
    r'"name":\s*"([^"]*)",\s*"pid":\s*([^,]*),\s*"tid":\s*([^,]*),\s*"ts":\s*([^,]*),\s*"dur":\s*([^,]*),\s*'
    r'"args":\s*\{([^}]*)\}\s*\}'
    r'|ph"\s*:\s*(?:"X"(?!,\s*"cat":\s*"(?:cpu_op|python_function|overhead|cuda_event)")|"?[^"Xsft\s])'
    r'|(?:cat|name|pid|tid|ts|dur|id|args|s|bp)"\s*:)'
)
_BEHIND_ANOTHER = re.compile(r"\}\s*,\s*\Z")
_LIST_ENDS = re.compile(r"\}\s*\]")
_FILE_ENDS = re.compile(r"\s*\}?\s*\Z")
_FIELD = re.compile(r'\s*,\s*"[^"\\]*"\s*:\s*')
_CUT = 16  # as in window.py
_CORRELATION = '"correlation":'
_IDENTIFIER = '"External id":'  # of the operator: another one for each event
_TAIL = 1 << 16  # characters that are kept of the window: an event may begin in them
_SPACES = 1 << 8  # between two events
_MANY = 50_000  # events that are not alike
_LATEST = 2.0**53


class _Undecided(Exception):
    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class Rows:
    """Reads events of a trace into a store. record_of: the one record that an event is, if it is one."""

    def __init__(self, record_of: Callable[[dict[str, Any]], Activity | None], store: Store) -> None:
        self._record_of = record_of
        self._store = store
        self._forms: dict[tuple[str, ...], int] = {}
        self._searched = ""  # the window in which the list of events was seen to end, or not to
        self._end: int | None = None

    def read_on(self, window: Window) -> bool:
        """Read from the event that comes next to one that is not understood. Return whether any was passed."""
        if window.next() != "{":
            return False
        begun = window.at
        while True:
            text, at = window.text, window.at
            try:
                end = self._end_of_list(text, at)
            except _Undecided as undecided:
                begun = min(begun, 0)
                if window.more():
                    continue
                end = undecided.place - at
                text, at = window.text, window.at
                self._searched, self._end = text, end  # nothing more comes, so that need not be asked for each event
            for row in _ROWS.finditer(text, at, len(text) if end is None else end):
                if row[1]:
                    if self._take(row, text):
                        at = row.end() - 1
                        continue
                elif row.start() > at and not _BEHIND_ANOTHER.search(text, max(at, row.start() - _SPACES), row.start()):
                    continue
                passed = row.start() > begun
                window.at = row.start()
                return passed
            if end is not None:
                window.at = end
                return True
            # The brace of an event, so that the one behind it is seen to be behind another.
            window.at = max(at, text.rfind("}", at, len(text) - _TAIL))
            begun = -1
            if not window.more():
                window.at = len(window.text)
                return True

    def _end_of_list(self, text: str, begin: int) -> int | None:
        """Return where the list of all events ends, if it does."""
        if self._searched is not text:
            found = _LIST_ENDS.search(text, begin)
            while found and not _ends(text, begin, found.start()):
                found = _LIST_ENDS.search(text, found.end())
            self._searched, self._end = text, None if found is None else found.end() - 1
        return self._end

    def _take(self, row: re.Match[str], text: str) -> bool:
        category, name, pid, tid, ts, dur, arguments = row.groups()
        place = arguments.find(_CORRELATION)
        number, _, behind = arguments[place + 14 :].partition(",")
        is_call = category[0] == "c"
        key: tuple[str, ...]
        if is_call:
            key = category, name, pid, behind
        else:
            before = arguments[:place]
            if _IDENTIFIER in before:
                before = before.partition(",")[2]
            if category == "kernel":
                key = name, pid, tid, before, behind
            elif '"stream"' in before and '"rank"' not in behind:
                key = category, name, pid, tid, before
            else:
                return False
        try:
            start_us, length_us, correlation = float(ts), float(dur), int(number)
        except ValueError:
            return False
        if place < 0 or not (-_LATEST < start_us < _LATEST and 0 <= length_us < _LATEST and 0 < correlation < 1 << 62):
            return False
        form = self._forms.get(key)
        if form is None:
            form = self._form(text, row.start(), category)
            if form is None:
                return False
            if len(self._forms) >= _MANY:
                self._forms.clear()
            self._forms[key] = form
        if is_call:
            self._store.add_call(form, start_us, start_us + length_us, correlation)
        else:
            self._store.add_work(form, start_us, start_us + length_us, correlation)
        return True

    def _form(self, text: str, at: int, category: str) -> int | None:
        """Ask the decoder what an event is, and return the number of its form; None if that is not so simple."""
        try:
            event, _ = decode(text, at)
        except (ValueError, RecursionError):
            return None
        one = self._record_of(event)
        if isinstance(one, Call) and category.startswith("cuda"):
            return self._store.calls.number_of(one._replace(start_us=0.0, end_us=0.0, correlation=0))
        if (isinstance(one, TracedLaunch) and category == "kernel") or isinstance(one, MemoryOperation):
            return self._store.works.number_of(one._replace(start_us=0.0, end_us=0.0, correlation=None))
        return None


def _ends(text: str, begin: int, brace: int) -> bool:
    """Return whether a brace ends the last of all events, and not a list of objects inside one.

    That is told by what it ends, an event with a phase or an empty one (XLA's profiler writes it last), and by what
    follows. Raises _Undecided where the window ends."""
    start = text.rfind("{", begin, brace)
    is_empty = start >= 0 and not text[start + 1 : brace].strip()
    if not is_empty or (start > begin and not _BEHIND_ANOTHER.search(text, max(begin, start - _SPACES), start)):
        start = text.rfind("{", begin, max(begin, text.rfind('"ph"', begin, brace)))
    try:
        if start < 0 or decode(text, start)[1] != brace + 1:
            return False
        at = end = text.index("]", brace) + 1
        while not _FILE_ENDS.match(text, at):
            field = _FIELD.match(text, at)
            if not field:
                return False
            _, at = decode(text, field.end())
    except RecursionError:
        return False
    except ValueError as error:
        if getattr(error, "pos", 0) <= len(text) - _CUT:
            return False
        end = text.index("]", brace) + 1
    raise _Undecided(end - 1)  # the text ends, and the file may not
