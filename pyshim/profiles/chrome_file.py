"""Read the events of a file in the trace event format of Chrome, one after the other, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pyshim.profiles.record import CALL, COPY, KERNEL, WAIT
from pyshim.profiles.window import Broken, Torn, Window, line_of

# Of what the file says beside its events: what is kept.
_FIELDS = ("deviceProperties", "distributedInfo", "host_name")
HIP_FIELDS = ("roctracer_version", "rocprofiler-sdk_version", "hip_runtime_version", "hip_driver_version")
_SMALL = 1 << 23  # characters: of a smaller file, every event is decoded
_KEYS = "ph|cat|name|pid|tid|ts|dur|id|args|s|bp"
_BOUNDARY = rf'\}}\s*,\s*(?=\{{\s*"(?:{_KEYS})"\s*:)'
_LAST = r'\}\s*\]\s*(?=\}\s*\Z|,\s*"|\Z)'

MEMORY = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
SYNC = "cuda_sync"
# What the categories of events stand for that an answer needs.
SORTS = {
    "kernel": KERNEL,
    **dict.fromkeys(MEMORY, COPY),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "runtime"), CALL),
    SYNC: WAIT,
}
_CATEGORY = re.compile(r'\s*\{[^{}]*?"cat"\s*:\s*"(\w+)"(?:\s*,\s*"name"\s*:\s*"([^"]*)")?')
_HEAD = 2000  # characters of an event that has its category and its name


class ChromeFile:
    """The trace event format: an object with `traceEvents`, or the bare array of events.

    fields: what the object says beside its events, of what we ask for, complete once events() has come to its end;
    torn: how it ends instead, None where it is whole; place: of the event that was read last, in characters;
    broken: how many events are no JSON; first_broken: the place of the first of them; of_use: how many of them are of
    use, by sort and name.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fields: dict[str, Any] = {}
        self.torn: str | None = None
        self.place = 0
        self.broken = 0
        self.first_broken = 0
        self.of_use: Counter[tuple[str, str]] = Counter()
        self._read_on: Callable[[Window], bool] | None = None

    def events(self, read_on: Callable[[Window], bool] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the events of the file. Raises OSError.

        read_on: takes over after the first part of a large file, reads further events out of the window itself, and
        returns False at one that it leaves to us."""
        self.fields, self.torn, self.broken = {}, None, 0
        self.of_use.clear()
        self._read_on = read_on
        with open(self.path, "rb") as file:
            window = Window(file)
            try:
                yield from self._document(window)
            except Torn as torn:
                self.torn = str(torn)
            except Broken:
                self.torn = f"it is no JSON in line {line_of(self.path, window.place):,}"

    def _document(self, window: Window) -> Iterator[dict[str, Any]]:
        if window.take("["):
            yield from self._array(window)
            return
        window.expect("{")
        while not window.take("}"):
            key = window.value()
            window.expect(":")
            if key == "traceEvents" and window.take("["):
                yield from self._array(window)
            else:
                value = window.value()
                if key in _FIELDS or key in HIP_FIELDS:
                    self.fields[str(key)] = value

    def _array(self, window: Window) -> Iterator[dict[str, Any]]:
        decoded = 0
        while not window.take("]"):
            if self._read_on and decoded > _SMALL and self._read_on(window):
                continue
            self.place, before = window.place, window.at
            try:
                event = window.value()
            except Broken:
                self._skip(window)
                continue
            decoded += max(0, window.at - before)
            if isinstance(event, dict):
                yield event

    def _skip(self, window: Window) -> None:
        """Go behind an event that is no JSON."""
        self.first_broken = self.first_broken or self.place
        head = _CATEGORY.match(window.text[window.at : window.at + _HEAD])
        if head and head[1].lower() in SORTS:
            self.of_use[SORTS[head[1].lower()], head[2] or ""] += 1
        boundary = re.compile(_BOUNDARY)
        while True:
            found = boundary.search(window.text, window.at)
            if found:
                break
            if not window.more():
                # Nothing follows; but the array's end may.
                found = re.compile(_LAST).search(window.text, window.at)
                if not found:
                    raise Torn(window.ending)
                self.broken += 1
                window.at = window.text.index("]", found.start())
                return
        self.broken += 1
        window.at = found.end()
