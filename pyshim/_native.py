"""The only door to C: the preloaded library itself, opened by cffi with the header that it was compiled from.

The build writes the header as cffi reads it, _lib/abi.py: parsing the header would take half of a command's time.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any, Literal

from pyshim.errors import OverlapError

DIRECTORY = Path(__file__).resolve().parent / "_lib"
SHIM = DIRECTORY / "liboverlap.so"
SIMULATED_DRIVER = DIRECTORY / "simgpu" / "libcuda.so.1"
DEMO = DIRECTORY / "demo"

AGAIN = "install the package again: pip install ."

# Words of policies and reports for members of enums of shim/overlap_abi.h.
ShapeKind = Literal["leave", "blocks", "percent", "bytes", "make_room"]

# What a judgement says of a stream: raised, or the first condition of the rule that did not hold.
STREAM_STATUSES = (
    "raised",
    "not_waited",
    "large",
    "graphs",
    "programs",
    "default",
    "wide",
    "together",
    "fixed",
)


def _types() -> Any:
    """Return cffi's view of the header: what the build made of it, or of the header itself while that is built."""
    try:
        from pyshim._lib.abi import ffi as made
    except ModuleNotFoundError:
        from cffi import FFI

        made = FFI()
        made.cdef(source("overlap_abi.h"))
    return made


@functools.cache
def header() -> Any:
    """Return the header's constants as attributes; needs no object code."""
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


@functools.cache
def library() -> Any:
    """Return the library's functions, after a check that header and object code are of one version.

    Raises OverlapError where the library was not built or does not load.
    """
    try:
        lib = _opened()
    except OSError as error:
        raise OverlapError(f"the library cannot be loaded: {error}", AGAIN) from error
    if lib.overlap_abi_version() != lib.OVERLAP_ABI_VERSION:
        raise OverlapError(f"{SHIM} is of another version than abi.py beside it", AGAIN)
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


def shape_words(kind: str, value: int) -> str | tuple[str, str]:
    """Return a shape as policies write it: one word, or a key and its value."""
    if kind in ("blocks", "percent"):
        return "blocks_per_sm", f"{value}{'%' if kind == 'percent' else ''}"
    if kind == "bytes":
        return "dynamic_shared_memory", f"{value >> 10}KiB" if value and value % 1024 == 0 else str(value)
    return kind


def text(value: Any) -> str:
    """Return a C string, or a field of bytes up to its first NUL, decoded; "" for NULL."""
    return "" if value == ffi.NULL else ffi.string(value).decode("utf-8", "replace")


ffi = _types()
