"""Kernels of binaries, and the block of communication that computation is planned beside."""

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
from pyshim.explain import planner
from pyshim.explain.answer import Explainer, gpu_called
from pyshim.explain.planner import Footprint, plain
from pyshim.explain.request import COMMUNICATION, NEEDED, Request
from pyshim.footprints import collectives
from pyshim.footprints.collectives import Collective, image_for
from pyshim.footprints.footprint import Footprint as BinaryFootprint
from pyshim.footprints.footprint import Unreadable
from pyshim.footprints.read import read
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.kernels import SETS
from pyshim.policy.values import Bad, kernel_pattern
from pyshim.traces.names import ANONYMOUS

_TAKES = "libraries are .so, .cubin, .fatbin, .co and .hsaco files"
_TAKES_TRACES = "it takes libraries (.so, .cubin, .fatbin, .co) and traces (.json, .json.gz, .sqlite)"
SHIPPED = {"demo": "demo-stencil", "demo-stencil": "demo-stencil", "demo-step": "demo-step"}  # recorded on two H200
_SQLITE, _GZIP = b"SQLite format 3\0", b"\x1f\x8b"
# What is looked for in a folder; a file that is named may be called anything.
ENDINGS = (".co", ".hsaco", ".cubin", ".fatbin")


class Kernel(NamedTuple):
    """One kernel of a file."""

    file: str  # its name without the folder
    footprint: BinaryFootprint

    def block(self, threads: int, dynamic: int) -> Footprint:
        """Return what one block takes. threads: if the binary has no launch bound; dynamic: bytes."""
        f = self.footprint
        threads = f.required_threads or f.max_threads or threads
        return Footprint(threads, f.registers, f.static_shared_memory, dynamic, f.barriers or 0, f.scalars or 0)


def files_of(names: Iterable[str]) -> list[Path]:
    """Return the files themselves, and those of folders that look like GPU code. Raise OverlapError."""
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
    """Raise OverlapError for what cannot be read more than once, and from any place: a pipe would be waited for."""
    try:
        found = path.stat()
    except OSError as error:
        raise OverlapError(f"{path}: cannot be read: {error.strerror or error}", takes, USAGE) from None
    if not stat.S_ISREG(found.st_mode):
        raise OverlapError(f"{path} is a pipe or a device, not a file", "write it into a file first", USAGE)
    if not found.st_size:
        raise OverlapError(f"{path} is empty", takes, USAGE)


def shipped(name: str) -> str:
    """Return the recorded trace that ships under a name unless a file has that name; else the name itself."""
    path = _native.DEMO / f"{SHIPPED.get(name, '')}.json.gz"
    return str(path) if name in SHIPPED and not os.path.exists(name) and path.exists() else name


def trace_name(path: str) -> str:
    """Return the name under which a trace ships; the path of any other."""
    file = Path(path)
    name = file.name.partition(".")[0]
    return name if file.parent == _native.DEMO and name in SHIPPED.values() else path


def is_trace(path: Path) -> bool:
    """Whether a file is a trace and no binary, by its first bytes. Raise OverlapError if it cannot be read."""
    if os.path.isdir(path):
        return False
    check_file(path, _TAKES_TRACES)
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise OverlapError(f"{path}: cannot be read: {error.strerror or error}", _TAKES_TRACES, USAGE) from None
    return head.startswith((_SQLITE, _GZIP)) or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def kernels_of(files: Sequence[Path], gpus: Sequence[KnownGpu]) -> tuple[list[Kernel], set[str]]:
    """Return every kernel that one of the GPUs runs, once, and the architectures of all images. Raise OverlapError."""
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
    """Yield the kernels that this GPU would load: of each name the image that suits it best."""
    images: dict[str, set[str]] = {}
    mine = [kernel for kernel in kernels if image_for(gpu.architecture, (kernel.footprint.architecture,))]
    for kernel in mine:
        images.setdefault(kernel.footprint.kernel, set()).add(kernel.footprint.architecture)
    best = {name: image_for(gpu.architecture, found) for name, found in images.items()}
    return (kernel for kernel in mine if best[kernel.footprint.kernel] == kernel.footprint.architecture)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a name is what a user asks for. pattern: a set by its word, or a glob as in a policy."""
    if pattern in SETS:
        return any_of(SETS[pattern])
    try:
        return any_of((kernel_pattern(pattern),))
    except Bad as bad:
        raise OverlapError(bad.sentence, bad.hint, USAGE) from None


def any_of(texts: Iterable[str]) -> Callable[[str], bool]:
    """Return whether a name, as in the binary or in its plain form, matches one of these globs."""
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


class Block(NamedTuple):
    """One block of communication."""

    name: str  # where its numbers come from
    takes: Footprint
    told: bool = False  # by the options


def given_block(request: Request) -> Block | None:
    """Return the block that the options give."""
    return Block("as told", request.communication, True) if request.communicates else None


def newest_blocks(gpu: KnownGpu) -> list[Block]:
    """Return those of the newest known library."""
    return _named(collectives.newest(gpu.architecture))


def with_usual(request: Request, explainer: Explainer) -> tuple[Request, str]:
    """Return the request with the usual block of communication, and its name; "" if options give one. Raise Mistake."""
    if not request.said.isdisjoint(COMMUNICATION):
        return request, ""
    request = explainer.with_gpu(request)
    request.need(NEEDED)
    gpu = gpu_called(request.gpu or "")
    block = newest_blocks(gpu)[0]
    return request.beside(block.takes), block.name


def blocks_of_file(file: str, own: Sequence[Kernel], gpu: KnownGpu) -> list[Block]:
    """Return the collectives of a binary. own: its kernels for that GPU. Raise OverlapError if there is none."""
    known = collectives.of_kernels([kernel.footprint for kernel in own], gpu.architecture)
    if not known:
        hint = "--comm-kernel PATTERN says which of its kernels communicate"
        raise OverlapError(f"{file}: no collective of NCCL or RCCL that {gpu.key} runs", hint, USAGE)
    return _named(known, Path(file).name)


def largest_block(file: str, own: Sequence[Kernel], pattern: str, request: Request) -> Block:
    """Return the most that kernels of that name take of each resource, as the library measures communication."""
    matches, told = matcher(pattern), request.communication
    found = [kernel.block(0, told.dynamic) for kernel in own if matches(kernel.footprint.kernel)]
    if not found:
        raise OverlapError(f"{file}: no kernel in it is called like {pattern}", None, USAGE)
    most = Footprint(*(max(column) for column in zip(*found)))
    if not (told.threads or most.threads):
        raise OverlapError(f"{pattern}: the binary has no launch bound", "say --comm-threads T", USAGE)
    return Block(pattern, most._replace(threads=told.threads or most.threads))


def _named(found: Iterable[Collective], source: str = "") -> list[Block]:
    every = list(found)
    usual = [one for one in every if one.usual] or every
    return [
        Block(
            " ".join(filter(None, (source or one.library, one.variant, one.path and f"by {one.path}"))),
            Footprint(one.threads, one.registers, one.static, one.dynamic, one.barriers, one.scalars),
        )
        for one in usual
    ]


def settings_for(block: Block, gpu: KnownGpu) -> Iterator[tuple[str, Block]]:
    """Yield the settings of its library that make the block smaller, and the block then."""
    for name, takes in planner.knobs(gpu, block.takes):
        yield name, Block(f"{block.name}, {name.split(' with ')[0]}", takes)
