"""The bytes of a policy table, as shim/overlap_abi.h lays them out (struct overlap_table). No other module knows them.

What the start of a program needs works without cffi.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

from pyshim.errors import OverlapError

Record = Mapping[str, object]  # the fields of a structure, by their names

_HEAD = struct.Struct("<8I")  # struct overlap_table: magic, version, size, checksum, ...


def encode(table: bytes) -> str:
    """Return the table as the environment carries it."""
    from base64 import b64encode

    return b64encode(table).decode("ascii")


def decode(text: str) -> bytes:
    """Reverse encode. Raises OverlapError where the text is not base64."""
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise OverlapError(
            f"the policy table is not base64: {error}", "unset OVERLAP_TABLE, and start it by overlap-run"
        ) from error


class Sections:
    """The growing end of a table: patterns point into strings, policies and rules point at patterns."""

    def __init__(self) -> None:
        self.patterns: list[int] = []
        self.strings = bytearray(b"\0")  # offset 0: the empty string
        self._offsets = {"": 0}
        self._spans: dict[tuple[str, ...], tuple[int, int]] = {}

    def string(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self.strings)
            self.strings += text.encode("utf-8") + b"\0"
        return self._offsets[text]

    def span(self, texts: Iterable[str]) -> tuple[int, int]:
        wanted = tuple(texts)
        if wanted not in self._spans:
            self._spans[wanted] = (len(self.patterns), len(wanted))
            self.patterns += [self.string(text) for text in wanted]
        return self._spans[wanted]


def assemble(policies: Sequence[Record], rules: Sequence[Record], sections: Sections) -> bytes:
    """Return the table of these records. Raise OverlapError if it is too large to travel in the environment.

    policies: struct overlap_policy; rules: struct overlap_rule; both have taken their texts and patterns from sections.
    """
    from pyshim import _native

    constants, ffi = _native.header(), _native.ffi
    parts = (
        ffi.new("struct overlap_policy[]", policies),
        ffi.new("struct overlap_rule[]", rules),
        ffi.new("uint32_t[]", sections.patterns),
    )
    body = b"".join(bytes(ffi.buffer(part)) for part in parts) + bytes(sections.strings)
    size, limit = _HEAD.size + len(body), constants.OVERLAP_TABLE_MAX_SIZE
    if size > limit:
        raise OverlapError(
            f"the policy compiles to {size:,} bytes, and the table that travels in the environment holds {limit:,}",
            "merge rules that have the same shape: a rule may list several kernels",
        )
    counts = len(policies), len(rules), len(sections.patterns), len(sections.strings)
    trusted = constants.OVERLAP_TABLE_MAGIC, constants.OVERLAP_ABI_VERSION, size, zlib.crc32(body)
    return _HEAD.pack(*trusted, *counts) + body
