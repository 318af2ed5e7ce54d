"""Decompression, by Python packages that only this tool needs: `pip install lz4 zstandard`."""

from __future__ import annotations

import importlib
from typing import Any

from footprint import Unreadable

# More than any image of any library that we know; a damaged size must not ask for all memory.
MOST = 4 << 30


def unpack_lz4(packed: bytes, size: int) -> bytes:
    """One LZ4 block without a frame."""
    block = _package("lz4.block", "lz4")
    return _checked(lambda: block.decompress(packed, uncompressed_size=size), size)


def unpack_zstd(packed: bytes, size: int) -> bytes:
    """One zstd frame; what follows it is filling."""
    zstandard = _package("zstandard", "zstandard")
    return _checked(lambda: zstandard.ZstdDecompressor().decompressobj().decompress(packed), size)


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
