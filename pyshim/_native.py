"""The only door to C: the preloaded library itself, opened by cffi with the header that it was compiled from."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path
from typing import Any

import cffi

from pyshim.errors import OverlapError

DIRECTORY = Path(__file__).resolve().parent / "_lib"
SHIM = DIRECTORY / "liboverlap.so"
SIMULATED_DRIVER = DIRECTORY / "simgpu" / "libcuda.so.1"
DEMO = DIRECTORY / "demo"

AGAIN = "install the package again: pip install ."

ffi = cffi.FFI()
_one_at_a_time = threading.RLock()  # a cache alone lets several threads begin, and cffi takes a header once only


def header() -> Any:
    """Declare the header's types to `ffi`, and return its constants as attributes; needs no object code."""
    with _one_at_a_time:
        return _header()


@functools.cache
def _header() -> Any:
    ffi.cdef(source("overlap_abi.h"))
    return ffi.dlopen(None)


def source(name: str) -> str:
    """Return a file of shim/ that the build copies. In a checkout that was not built yet it is still there.

    Raises OverlapError where it cannot be read.
    """
    path = DIRECTORY / Path(name).name
    try:
        return (path if path.exists() else DIRECTORY.parent.parent / "shim" / name).read_text(encoding="utf-8")
    except OSError as error:
        raise OverlapError(f"{path.name} cannot be read: {error}", AGAIN) from error


def library() -> Any:
    """Return the library's functions, after a check that header and object code are of one version.

    Raises OverlapError where the library was not built or does not load.
    """
    with _one_at_a_time:
        return _library()


@functools.cache
def _library() -> Any:
    header()
    try:
        lib = _opened()
    except OSError as error:
        raise OverlapError(f"the library cannot be loaded: {error}", AGAIN) from error
    if lib.overlap_abi_version() != lib.OVERLAP_ABI_VERSION:
        raise OverlapError(f"{SHIM} is of another version than overlap_abi.h beside it", AGAIN)
    return lib


def _opened() -> Any:
    # RTLD_LOCAL: the wrappers inside must not become visible to anything else in this process.
    flags = os.RTLD_NOW | os.RTLD_LOCAL
    return ffi.dlopen(str(SHIM), flags)


def line_of(line: int) -> tuple[int, int]:
    """Return the line of a rule, and how many `extends` lead to the file that has it."""
    bits: int = header().OVERLAP_LINE_BITS
    return line & ((1 << bits) - 1), line >> bits


@functools.cache
def gpus() -> tuple[Any, ...]:
    """Return every GPU that the library knows by name: struct overlap_gpu. Raise OverlapError as library() does."""
    found: list[Any] = []
    while library().overlap_gpu_known(len(found), made := ffi.new("struct overlap_gpu *")):
        found.append(made)
    return tuple(found)


def text(value: Any) -> str:
    """Return a C string, or a field of bytes up to its first NUL, decoded; "" for NULL."""
    return "" if value == ffi.NULL else ffi.string(value).decode("utf-8", "replace")
