"""The bytes of a policy table (struct overlap_table): what a start changes in one, without cffi."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_HEAD = struct.Struct("<8I")  # struct overlap_table: magic, version, size, checksum, ...
_NUMBER = struct.Struct("<I")
_CHECKSUM = 3 * _NUMBER.size  # offset: the CRC-32 of everything behind the header


class Undecided(NamedTuple):
    """A policy in a table that does not know the dispatch rule of its GPUs: where that stands, and what would."""

    policy: int  # index in the table
    gpus: tuple[str, ...]  # its `gpu`
    dispatch_at: int  # offset in the table: 4 bytes, enum overlap_dispatch
    hash_at: int  # likewise: 16 digits
    answers: Mapping[str, tuple[int, str]]  # by rule, for both places


def checksum(encoded: str) -> str | None:
    """Return what pages name a table by, 8 hexadecimal digits; None for what is no table. encoded: in base64."""
    from base64 import b64decode

    try:
        head = b64decode(encoded[:24])  # 18 bytes
        return f"{int.from_bytes(head[_CHECKSUM : _CHECKSUM + 4], 'little'):08x}" if encoded else None
    except ValueError:
        return None


def decided(table: bytes, rules: Iterable[tuple[Undecided, str]]) -> bytes:
    """Return the table with these dispatch rules in these of its policies."""
    data = bytearray(table)
    for item, rule in rules:
        number, digest = item.answers[rule]
        _NUMBER.pack_into(data, item.dispatch_at, number)
        data[item.hash_at : item.hash_at + len(digest)] = digest.encode("ascii")
    _NUMBER.pack_into(data, _CHECKSUM, zlib.crc32(data[_HEAD.size :]))
    return bytes(data)
