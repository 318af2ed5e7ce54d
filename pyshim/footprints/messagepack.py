"""MessagePack, as far as it occurs in the metadata of AMD code objects (no floats, no extensions)."""

from __future__ import annotations

import struct
from typing import Any

_UNSIGNED = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_TEXT = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_LISTS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode(data: bytes) -> Any:
    """Its first value. ValueError or struct.error where the data is not this format."""
    return _value(data, 0)[0]


def _value(data: bytes, at: int) -> tuple[Any, int]:
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 0x100, at
    if first < 0x90:
        return _map(data, at, first & 0x0F)
    if first < 0xA0:
        return _list(data, at, first & 0x0F)
    if first < 0xC0:
        return _text(data, at, first & 0x1F)
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    for kinds, then in ((_UNSIGNED, None), (_TEXT, _text), (_LISTS, _list), (_MAPS, _map)):
        if first in kinds:
            (number,) = struct.unpack_from(kinds[first], data, at)
            at += struct.calcsize(kinds[first])
            return then(data, at, number) if then else (number, at)
    raise ValueError(f"byte {first:#x} is no MessagePack that occurs here")


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    text = data[at : at + size]
    if len(text) < size:
        raise ValueError("text ends early")
    return text.decode(), at + size


def _list(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    found = []
    for _ in range(count):
        value, at = _value(data, at)
        found.append(value)
    return found, at


def _map(data: bytes, at: int, count: int) -> tuple[dict[Any, Any], int]:
    found = {}
    for _ in range(count):
        key, at = _value(data, at)
        found[key], at = _value(data, at)
    return found, at
