"""Names: of kernels, for people and in patterns, and of the traces that ship."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain.planner import plain
from pyshim.policy.kernel_sets import SETS
from pyshim.policy.values import Bad, kernel_pattern
from pyshim.traces.names import ANONYMOUS

SHIPPED = ("demo-stencil",)  # recorded on two H200


def shipped(name: str) -> str:
    """Return the recorded trace that ships under a name unless a file has that name; else the name itself."""
    path = _native.DEMO / f"{name}.json.gz"
    return str(path) if name in SHIPPED and not os.path.exists(name) and path.exists() else name


def trace_name(path: str) -> str:
    """Return the name under which a trace ships; the path of any other."""
    file = Path(path)
    name = file.name.partition(".")[0]
    return name if file.parent == _native.DEMO and name in SHIPPED else path


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a name is what a user asks for. pattern: a set by its word, or a glob as in a policy."""
    if pattern in SETS:
        return _any_of(SETS[pattern])
    try:
        return _any_of((kernel_pattern(pattern),))
    except Bad as bad:
        raise OverlapError(bad.sentence, bad.hint, USAGE) from None


def _any_of(texts: Iterable[str]) -> Callable[[str], bool]:
    """Return whether a name, as the driver gives it or in its plain form, matches one of these globs."""
    match = re.compile("|".join(fnmatch.translate(text) for text in texts)).match
    return lambda name: bool(match(name) or match(plain(name)))


@functools.lru_cache(maxsize=1 << 16)
def readable(name: str) -> str:
    """Return a mangled name for people: with its namespaces, and the first two classes of its template arguments.

    _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE... is
    at::native::vectorized_elementwise_kernel<CUDAFunctor_add>."""
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
