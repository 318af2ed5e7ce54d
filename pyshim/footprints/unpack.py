"""Decompression, by Python packages that nothing else needs: `pip install lz4 zstandard`."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

from pyshim.footprints.footprint import Unreadable

# More than any image of any library that we know; a damaged size must not ask for all memory.
MOST = 4 << 30
_PIECE = 1 << 20


def unpack_lz4(packed: bytes, size: int) -> bytes:
    """One LZ4 block without a frame."""
    block = _package("lz4.block", "lz4")
    return _checked(lambda: block.decompress(packed, uncompressed_size=size), size)


def unpack_zstd(packed: bytes, size: int) -> bytes:
    """One zstd frame; what follows it is filling."""
    zstandard = _package("zstandard", "zstandard")
    return _checked(lambda: zstandard.ZstdDecompressor().decompressobj().decompress(packed), size)


class Forward:
    """What a part of a file unpacks to, from its beginning on: RCCL's is 1.2 GB, of which one image is looked at at a
    time."""

    def __init__(self, data: bytes, start: int, end: int, method: str) -> None:
        """method: zstd or zlib."""
        self._data, self._packed_at, self._end = data, start, end
        self._unpack = _zlib() if method == "zlib" else _zstd()
        self._rest, self._used = bytearray(), 0  # unpacked, and how much of that was given
        self.at = 0  # bytes given or skipped so far

    def read(self, size: int) -> bytearray:
        """So many bytes. Raises Unreadable where there are not so many."""
        if size <= len(self._rest) - self._used:
            found = self._rest[self._used : self._used + size]
            self._used += size
        else:
            found = self._rest  # images are large: no second copy
            del found[: self._used]
            while len(found) < size:
                found += self._more()
            self._rest, self._used = found[size:], 0
            del found[size:]
        self.at += size
        return found

    def skip(self, to: int) -> None:
        """To a place that is not before this one."""
        while len(self._rest) - self._used < to - self.at:
            self.at += len(self._rest) - self._used
            self._rest, self._used = bytearray(self._more()), 0
        self._used += to - self.at
        self.at = to

    def _more(self) -> bytes:
        if self._packed_at >= self._end:
            raise Unreadable("a broken compressed code object: it ends before what it announces")
        piece = self._data[self._packed_at : min(self._packed_at + _PIECE, self._end)]
        self._packed_at += len(piece)
        try:
            return self._unpack(piece)
        except Exception as error:  # each package has errors of its own
            raise Unreadable(f"a broken compressed code object: {error}") from error


def _zlib() -> Callable[[bytes], bytes]:
    return zlib.decompressobj().decompress


def _zstd() -> Callable[[bytes], bytes]:
    unpack: Callable[[bytes], bytes] = _package("zstandard", "zstandard").ZstdDecompressor().decompressobj().decompress
    return unpack


def _checked(unpack: Any, size: int) -> bytes:
    if size > MOST:
        raise Unreadable(f"a broken compressed image: it announces {size} bytes")
    try:
        data: bytes = unpack()
    except Exception as error:  # each package has errors of its own
        raise Unreadable(f"a broken compressed image: {error}") from error
    if len(data) != size:
        raise Unreadable(f"a broken compressed image: {len(data)} bytes where it announces {size}")
    return data


def _package(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unreadable(f"its images are compressed: pip install {name}") from error
