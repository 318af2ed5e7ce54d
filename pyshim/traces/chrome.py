"""Chrome traces, event by event, in bounded memory: JSON of gigabytes, plain or compressed by gzip, whole or torn.

The standard library's decoder reads one event after the other out of a window over the file. It is faster here than
an event-driven parser, and where a file ends in the middle of an event everything before that is there.
"""

from __future__ import annotations

import json
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, BinaryIO

_BYTES = 1 << 20
_COMPRESSED = 1 << 16  # becomes 64 MiB at the very worst
_LONGEST = 1 << 24  # characters of one event, or of one value beside them
# Nor may a small file keep us busy for hours: traces become 10 to 50 times as large, of zeros gzip makes 1,000 times as
# much.
_FEW, _TIMES = 1 << 26, 400
_FIELDS = ("deviceProperties", "distributedInfo")  # that somebody asks for
_SPACE = re.compile(r"[\s,]*")
# As C prints a float that is none; Kineto has let it through ("blocks per SM", with a GPU that it does not know).
_NO_NUMBER = re.compile(r"-?(inf|nan)\b", re.IGNORECASE)
_decode = json.JSONDecoder(strict=False).raw_decode


class Torn(Exception):
    """The file goes no further; says how it ends, as the end of a sentence."""


class _Bomb(Exception):
    """As Torn: few bytes become very many."""


class ChromeFile:
    """The trace event format: an object with `traceEvents`, or the bare array of events.

    fields: what the object says beside its events, of what we ask for, complete once events() has come to its end;
    torn: how it ends instead, None where it is whole.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fields: dict[str, Any] = {}
        self.torn: str | None = None

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of the file. Raises OSError."""
        self.fields, self.torn = {}, None
        with open(self.path, "rb") as file:
            text = _Text(file)
            try:
                yield from self._document(text)
            except Torn as torn:
                self.torn = str(torn)

    def _document(self, text: _Text) -> Iterator[dict[str, Any]]:
        if text.take("["):
            yield from self._array(text)
            return
        text.expect("{")
        while not text.take("}"):
            key = text.value()
            text.expect(":")
            if key == "traceEvents" and text.take("["):
                yield from self._array(text)
            else:
                value = text.value()
                if key in _FIELDS:
                    self.fields[str(key)] = value

    def _array(self, text: _Text) -> Iterator[dict[str, Any]]:
        while not text.take("]"):
            event = text.value()
            if isinstance(event, dict):
                yield event


class _Text:
    """A window over the characters of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._chunks = _characters(file)
        self._text = ""
        self._at = 0
        self._ending = "it ends in the middle"

    def take(self, character: str) -> bool:
        """Return whether the sign comes next, and go behind it if it does."""
        if self._next() != character:
            return False
        self._at += 1
        return True

    def expect(self, character: str) -> None:
        if not self.take(character):
            raise Torn(f"it is no JSON where {character} should be")

    def value(self) -> Any:
        """Return any JSON value."""
        if not self._next():
            raise Torn(self._ending)
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except RecursionError:
                raise Torn("it is nested too deep") from None
            except json.JSONDecodeError as error:
                number = _NO_NUMBER.match(self._text, error.pos)
                if number:
                    self._text = f"{self._text[: error.pos]}null{self._text[number.end() :]}"
                elif len(self._text) - self._at > _LONGEST:
                    raise Torn("it is no JSON") from None
                elif not self._more():
                    raise Torn(self._ending) from None
                continue
            except ValueError:  # a number of thousands of digits
                raise Torn("it is no JSON") from None
            if end == len(self._text) and self._more():  # a number may go on
                continue
            self._at = end
            return value

    def _next(self) -> str:
        """Return the next character that means something, "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Twice as much as is left, or a long value would be tried very often."""
        parts = [self._text[self._at :]]
        wanted = max(1, len(parts[0]))
        try:
            while wanted > 0:
                parts.append(next(self._chunks))
                wanted -= len(parts[-1])
        except StopIteration:
            pass
        except zlib.error:
            self._ending = "what follows cannot be decompressed"
        except _Bomb as bomb:
            raise Torn(str(bomb)) from None
        self._text, self._at = "".join(parts), 0
        return len(parts) > 1


def _characters(file: BinaryIO) -> Iterator[str]:
    """Whatever a kernel's name consists of: what is no UTF-8 becomes a question mark."""
    decoder = getincrementaldecoder("utf-8-sig")("replace")
    for data in _bytes(file):
        text = decoder.decode(data)
        if text:
            yield text


def _bytes(file: BinaryIO) -> Iterator[bytes]:
    """Unpacked, to the last byte that there is. Raises zlib.error."""
    compressed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not compressed:
        yield from iter(lambda: file.read(_BYTES), b"")
        return
    member = zlib.decompressobj(31)
    read = unpacked = 0
    for data in iter(lambda: file.read(_COMPRESSED), b""):
        read += len(data)
        while data:
            found = member.decompress(data)
            unpacked += len(found)
            if unpacked > max(_FEW, _TIMES * read):
                raise _Bomb(f"it unpacks to more than {_TIMES} times its size, as no trace does")
            yield found
            data = member.unused_data
            if member.eof:
                member = zlib.decompressobj(31)
