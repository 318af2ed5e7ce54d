"""Names of kernels: profilers write them as C++ has them, the driver and our patterns know them mangled."""

from __future__ import annotations

import functools

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
