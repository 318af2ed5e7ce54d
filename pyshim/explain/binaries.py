"""Kernels of files: which GPUs run them, and what one block takes."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.footprints.collectives import image_for
from pyshim.footprints.footprint import Footprint, Unreadable
from pyshim.footprints.read import read
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.kernels import SETS
from pyshim.policy.values import Bad, kernel_pattern
from pyshim.traces.names import ANONYMOUS

_TAKES = "libraries are .so, .cubin, .fatbin, .co and .hsaco files"
# What is looked for in a folder; a file that is named may be called anything.
ENDINGS = (".co", ".hsaco", ".cubin", ".fatbin")


class Kernel(NamedTuple):
    file: str  # its name without the folder
    footprint: Footprint


def files_of(names: Iterable[str]) -> list[Path]:
    """The files themselves, and those of folders that look like GPU code. Raises OverlapError."""
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if os.path.isdir(path):
            inside = sorted(file for file in path.iterdir() if file.name.endswith(ENDINGS))
            if not inside:
                endings = f"*{', *'.join(ENDINGS)}"
                hint = "name shared objects themselves; folders inside are not looked into"
                raise OverlapError(f"{name}: this folder has no {endings}", hint, USAGE)
            found += inside
        else:
            found.append(path)
    return found


def check_file(path: Path, takes: str = _TAKES) -> None:
    """Raises OverlapError for what cannot be read more than once, and from any place: a pipe would be waited for."""
    try:
        found = path.stat()
    except OSError as error:
        raise OverlapError(f"{path}: cannot be read: {error.strerror or error}", takes, USAGE) from None
    if not stat.S_ISREG(found.st_mode):
        raise OverlapError(f"{path} is a pipe or a device, not a file", "write it into a file first", USAGE)
    if not found.st_size:
        raise OverlapError(f"{path} is empty", takes, USAGE)


def kernels_of(files: Sequence[Path], gpus: Sequence[KnownGpu]) -> tuple[list[Kernel], set[str]]:
    """Every kernel of an architecture that one of the GPUs runs, once; and the architectures of all images that were
    seen. Raises OverlapError."""
    seen: set[str] = set()

    def wanted(architecture: str) -> bool:
        seen.add(architecture)
        return is_run(architecture, gpus)

    found: dict[Kernel, None] = {}
    for file in files:
        check_file(file)
        try:
            found.update((Kernel(file.name, footprint), None) for footprint in read(file, wanted))
        except Unreadable as error:
            sentence, _, install = str(error).partition(": pip install ")
            hint = f"pip install {install}" if install else _TAKES
            raise OverlapError(f"{file}: {sentence}", hint, USAGE) from None
    return list(found), seen


def is_run(image: str, gpus: Iterable[KnownGpu]) -> bool:
    """Whether one of the GPUs could load an image for this architecture."""
    return any(image_for(gpu.architecture, (image,)) for gpu in gpus)


def run_by(gpu: KnownGpu, kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Those that this GPU would load: of each name the image that suits it best."""
    images: dict[str, set[str]] = {}
    mine = [kernel for kernel in kernels if image_for(gpu.architecture, (kernel.footprint.architecture,))]
    for kernel in mine:
        images.setdefault(kernel.footprint.kernel, set()).add(kernel.footprint.architecture)
    best = {name: image_for(gpu.architecture, found) for name, found in images.items()}
    return (kernel for kernel in mine if best[kernel.footprint.kernel] == kernel.footprint.architecture)


def called(pattern: str) -> Callable[[str], bool]:
    """Whether a name is what a user asks for: a set of kernels by its word, or a glob as in a policy."""
    if pattern in SETS:
        return pattern_of(SETS[pattern])
    try:
        return pattern_of((kernel_pattern(pattern),))
    except Bad as bad:
        raise OverlapError(bad.sentence, bad.hint, USAGE) from None


def pattern_of(texts: Iterable[str]) -> Callable[[str], bool]:
    """Whether a name, as the binary says it or in its plain form, matches one of these globs."""
    match = re.compile("|".join(fnmatch.translate(text) for text in texts)).match
    return lambda name: bool(match(name) or match(plain(name)))


@functools.lru_cache(maxsize=1 << 16)
def plain(name: str) -> str:
    """_Z4gemmPf is gemm."""
    text = _native.ffi.new("char[512]")
    _native.library().overlap_plain_name(name.encode("utf-8", "replace"), text, len(text))
    return _native.text(text)


@functools.lru_cache(maxsize=1 << 16)
def readable(name: str) -> str:
    """For people: a mangled name with its namespaces, and of what it is a template of the first two classes.
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
    """Of a mangled name, each said by its length before it. Numbers that are arguments of templates (Li9E) are none."""
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
