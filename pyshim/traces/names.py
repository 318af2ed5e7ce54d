"""Names of kernels: profilers write them as C++ has them, the driver and our patterns know them mangled."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from pyshim import _native

ANONYMOUS = "_GLOBAL__N_1"  # what the Itanium ABI calls a namespace without a name


def driver_name(kernel: str) -> str:
    """Return the name that the driver has for a kernel: `void a::b<int>(float*)` -> `_ZN1a1bEv`.

    The template's and the function's arguments are left out. A name without scope or arguments, or mangled already,
    stays as it is."""
    if kernel.startswith("_Z"):
        return kernel
    parts = _scopes(kernel.replace("(anonymous namespace)", ANONYMOUS).replace("<unnamed>", ANONYMOUS))
    if len(parts) < 2:
        return parts[0] if parts else kernel
    return "_ZN" + "".join(f"{len(_bytes(part))}{part}" for part in parts) + "Ev"


@functools.lru_cache(maxsize=1 << 16)
def plain(name: str) -> str:
    """Return the plain form of a mangled name: _Z4gemmPf is gemm."""
    text = _native.ffi.new("char[512]")
    _native.library().overlap_plain_name(name.encode("utf-8", "replace"), text, len(text))
    return _native.text(text)


@functools.cache
def is_communication(kernel: str) -> bool:
    """Return whether a kernel communicates, as the library itself decides, by its families of kernels."""
    library = _native.library()
    names = {kernel, driver_name(kernel)}
    return any(library.overlap_is_communication(_bytes(name)) for name in names)


def _bytes(name: str) -> bytes:
    """Whatever was in a file, as a C string."""
    return name.encode("utf-8", "replace").replace(b"\0", b"?")


def _scopes(name: str) -> list[str]:
    """Return the identifiers before the function's arguments: void a::b<c::d>(e) -> a, b."""
    kept: list[str] = []
    depth = 0
    for character in name:
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "(" and depth == 0:
            break
        elif depth == 0:
            kept.append(character)
    words = "".join(kept).split()  # of templates the type that they return comes first
    return [part for part in words[-1].split("::") if part] if words else []


@functools.lru_cache(maxsize=1 << 16)
def readable(name: str) -> str:
    """Return a kernel's name for people: with its namespaces, and the first two classes of its template arguments.

    _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE... is
    at::native::vectorized_elementwise_kernel<CUDAFunctor_add>."""
    name = driver_name(name)
    if not name.startswith("_Z"):
        return name
    words, last = list(_identifiers(name)), plain(name)
    if last not in words:
        return last
    end = words.index(last) + 1
    classes = list(dict.fromkeys(word for word in words[end:] if word[0].isupper()))[:2]
    qualified = "::".join(word for word in words[:end] if word != ANONYMOUS) if name.startswith("_ZN") else last
    return f"{qualified}<{', '.join(classes)}>" if classes and f"{last}I" in name else qualified


def _identifiers(name: str) -> Iterator[str]:
    """Yield the identifiers of a mangled name, without the numbers that are arguments of templates (Li9E)."""
    at = 2
    while at < len(name):
        number = re.compile(r"L[a-z]n?\d+E").match(name, at)
        if number:
            at = number.end()
            continue
        digits = re.compile(r"[1-9]\d*").match(name, at)
        word = name[digits.end() : digits.end() + int(digits[0])] if digits else ""
        if digits and len(word) == int(digits[0]) and re.fullmatch(r"[A-Za-z_]\w*", word):
            yield word
            at = digits.end() + len(word)
        else:
            at += 1
