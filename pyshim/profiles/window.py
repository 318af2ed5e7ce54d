"""A window over the characters of a large JSON file, plain or compressed by gzip, whole or torn.

The standard library's decoder reads one value after the other out of it, in bounded memory. It is faster here than an
event-driven parser, and where a file ends in the middle of a value everything before that is there.
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
LONGEST = 1 << 24  # characters of one event, or of one value beside them
# Nor may a small file keep us busy for hours: traces become 10 to 50 times as large, of zeros gzip makes 1,000 times as
# much.
_FEW, _TIMES = 1 << 26, 400
_CUT = 16  # characters: longer than whatever is no JSON because the rest of it is yet to come
_SPACE = re.compile(r"[\s,]*")
# As C prints a float that is none; Kineto has let it through ("blocks per SM", with a GPU that it does not know).
_NO_NUMBER = re.compile(r"-?(inf|nan)\b", re.IGNORECASE)
_TEXT_OR_NONE = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))|-?(?:inf|nan)\b', re.IGNORECASE | re.DOTALL)
_NONE = {3: '"" ', 4: '""  '}  # as long, so that places stay those of the file
decode = json.JSONDecoder(strict=False).raw_decode


class Torn(Exception):
    """The file goes no further; says how it ends, as the end of a sentence."""


class Broken(Exception):
    """The value that comes next is no JSON, whatever follows."""


class _Bomb(Exception):
    """As Torn: few bytes become very many."""


class Window:
    """text[at:] is what was read ahead of the file, and is not used yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._chunks = _characters(file)
        self.text = ""
        self.at = 0
        self.ending = "it ends in the middle"
        self._dropped = 0  # characters of the file in front of `text`

    @property
    def place(self) -> int:
        """The number of characters of the file in front of what comes next."""
        return self._dropped + self.at

    def take(self, character: str) -> bool:
        """Return whether the sign comes next, and go behind it if it does."""
        if self.next() != character:
            return False
        self.at += 1
        return True

    def expect(self, character: str) -> None:
        if not self.take(character):
            raise Broken if self.next() else Torn(self.ending)

    def value(self) -> Any:
        """Return any JSON value. Raises Torn where the file ends in it, Broken where it can be none."""
        if not self.next():
            raise Torn(self.ending)
        while True:
            try:
                value, end = decode(self.text, self.at)
            except RecursionError:
                raise Torn("it is nested too deep") from None
            except json.JSONDecodeError as error:
                if _NO_NUMBER.match(self.text, error.pos):
                    # All of the window at once: it is copied, and a trace may have millions of them.
                    left = self.text[self.at :]
                    self.text = _TEXT_OR_NONE.sub(lambda found: found[1] or _NONE[len(found[0])], left)
                    self._dropped += self.at
                    self.at = 0
                    if self.text == left:
                        raise Broken from None
                elif error.pos < len(self.text) - _CUT and not error.msg.startswith("Unterminated string"):
                    raise Broken from None
                elif len(self.text) - self.at > LONGEST or not self.more():
                    raise Torn(self.ending) from None
                continue
            except ValueError:  # a number of thousands of digits
                raise Broken from None
            if end == len(self.text) and self.more():  # a number may go on
                continue
            self.at = end
            return value

    def next(self) -> str:
        """Return the next character that means something, "" at the end."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def more(self) -> bool:
        """Read on; drop what lies before `at`. Twice as much as is left, or a long value would be tried very often."""
        self._dropped += self.at
        parts = [self.text[self.at :]]
        wanted = max(1, len(parts[0]))
        try:
            while wanted > 0:
                parts.append(next(self._chunks))
                wanted -= len(parts[-1])
        except StopIteration:
            pass
        except zlib.error:
            self.ending = "what follows cannot be decompressed"
        except _Bomb as bomb:
            raise Torn(str(bomb)) from None
        self.text, self.at = "".join(parts), 0
        return len(parts) > 1


def line_of(path: str, place: int) -> int:
    """Return the number of the line of a character of a file. Raises OSError."""
    line, passed = 1, 0
    with open(path, "rb") as file:
        for text in _characters(file):
            line += text.count("\n", 0, max(0, place - passed))
            passed += len(text)
            if passed >= place:
                break
    return line


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
