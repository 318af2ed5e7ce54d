"""Names of kernels: profilers write them as C++ has them, the driver and our patterns know them mangled."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from pyshim import _native

# What the Itanium ABI calls a namespace without a name; nvcc adds its file: _GLOBAL__N__8a3151be_10_a_cu_6c10400d.
ANONYMOUS = "_GLOBAL__N_1"
_UNNAMED = "_GLOBAL__N_"


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
    qualified = (
        "::".join(word for word in words[:end] if not word.startswith(_UNNAMED)) if name.startswith("_ZN") else last
    )
    return f"{qualified}<{', '.join(classes)}>" if classes and f"{last}I" in name else qualified


_TOKEN = re.compile(
    r"(?:S[0-9A-Z]*|[AT][0-9]*|D[Fv][0-9]+|Ut[0-9]*)[_b]|[CD][0-9]|_[0-9]"  # numbers that are no lengths
    r"|(?P<opens>L_Z|Ul|[FIJLNXZ])|(?P<length>[1-9][0-9]{0,5})|(?s:.)"
)


def _identifiers(name: str) -> Iterator[str]:
    """Yield the identifiers of a mangled name up to the end of its template arguments, without those of values."""
    at, opened = 2, ""
    while token := _TOKEN.match(name, at):
        at = token.end()
        length = int(token["length"] or 0)
        if length and (opened[-1:] != "L" or name[token.start() - 1] == "L"):  # else a value: Li9E, L4Enum2E
            word, at = name[at : at + length], at + length
            if len(word) == length and not {"L", "Z"} & set(opened) and re.fullmatch(r"[A-Za-z_]\w*", word):
                yield word
        elif token["opens"] and (token["opens"] != "L" or opened[-1:] in ("I", "J", "X")):  # else internal linkage
            opened += token["opens"][-1]
        elif token[0] == "E":
            at = (name.find("_", at) + 1 or len(name)) if opened[-1:] == "l" else at  # a lambda's number
            if not (opened := opened[:-1]):
                return
