"""Decompression, by Python packages that nothing else needs: `pip install lz4 zstandard`."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

from pyshim.footprints.elffile import Data
from pyshim.footprints.footprint import Unreadable

# More than any image of any library that we know; a damaged size must not ask for all memory.
MOST = 4 << 30
# Nor may few bytes become many: code is packed to a third or so, and of zeros zstd makes 30,000 times as much.
_FEW, _TIMES = 64 << 20, 500
_PIECE = 1 << 20


def unpack_lz4(packed: bytes, size: int) -> bytes:
    """Unpack one LZ4 block without a frame."""
    block = _package("lz4.block", "lz4")
    return _checked(lambda: block.decompress(packed, uncompressed_size=size), size, len(packed))


def unpack_zstd(packed: bytes, size: int) -> bytes:
    """Unpack one zstd frame; the bytes behind it are filling."""
    zstandard = _package("zstandard", "zstandard")
    return _checked(lambda: zstandard.ZstdDecompressor().stream_reader(packed).read(size + 1), size, len(packed))


class Forward:
    """Data unpacked from its beginning on: RCCL's is 1.2 GB, of which one image is looked at at a time."""

    def __init__(self, data: Data, start: int, end: int, method: str) -> None:
        """Open the bytes from start to end; method is zstd or zlib."""
        packed = _Part(data, start, end)
        self._unpack: _Unpack = _Zlib(packed).read if method == "zlib" else _zstd(packed)
        self._left = most(end - start)
        self._rest, self._used = bytearray(), 0  # unpacked, and how much of that was given
        self.at = 0  # bytes given or skipped so far

    def read(self, size: int) -> bytearray:
        """Return so many bytes. Raises Unreadable where there are fewer."""
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
        """Go to an offset that is not before the current one."""
        while len(self._rest) - self._used < to - self.at:
            self.at += len(self._rest) - self._used
            self._rest, self._used = bytearray(self._more()), 0
        self._used += to - self.at
        self.at = to

    def _more(self) -> bytes:
        try:
            piece = self._unpack(_PIECE)
        except Exception as error:  # each package has errors of its own
            raise Unreadable(f"a broken compressed code object: {error}") from error
        if not piece:
            raise Unreadable("a broken compressed code object: it ends before what it announces")
        self._left -= len(piece)
        if self._left < 0:
            raise Unreadable("a broken compressed code object: few bytes become very many")
        return piece


_Unpack = Callable[[int], bytes]


class _Part:
    """Of a file, read as a file."""

    def __init__(self, data: Data, start: int, end: int) -> None:
        self._data, self._at, self._end = data, start, end

    def read(self, size: int = -1) -> bytes:
        start, end = self._at, self._end if size < 0 else min(self._at + size, self._end)
        self._at = end
        return bytes(self._data[start:end])


class _Zlib:
    def __init__(self, packed: _Part) -> None:
        self._packed = packed
        self._unpack = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        found = b""
        while not found and not self._unpack.eof:
            packed = self._unpack.unconsumed_tail or self._packed.read(_PIECE)
            if not packed:
                break
            found = self._unpack.decompress(packed, size)
        return found


def _zstd(packed: _Part) -> _Unpack:
    read: _Unpack = _package("zstandard", "zstandard").ZstdDecompressor().stream_reader(packed).read
    return read


def most(packed: int) -> int:
    """Return the bytes that so many packed bytes may be unpacked to."""
    return max(_FEW, _TIMES * packed)


def _checked(unpack: Any, size: int, packed: int) -> bytes:
    if size > min(MOST, most(packed)):
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
