"""The GPUs that the library knows by name, and which of them a policy file means."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.policy.finding import closest, did_you_mean, quote
from pyshim.policy.values import pattern_covers

NVIDIA, AMD = "nvidia", "amd"
# Whose runtime or driver tools/simgpu has.
SIMULATED = (NVIDIA, AMD)
# How the architectures of each are called: sm_90, gfx90a.
ARCHITECTURES = {NVIDIA: "sm_*", AMD: "gfx*"}
_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,6}")


class KnownGpu(NamedTuple):
    """Limits of one multiprocessor (AMD: compute unit) unless said otherwise; bytes."""

    key: str  # h100
    name: str  # as the driver answers
    architecture: str  # sm_90, gfx90a
    vendor: str
    multiprocessors: int
    threads: int
    blocks: int
    registers: int
    shared_memory: int
    shared_memory_per_block: int
    memory_gib: int

    @property
    def simulated(self) -> bool:
        """Whether --simulate takes it."""
        return self.vendor in SIMULATED


@functools.cache
def known() -> tuple[KnownGpu, ...]:
    """Return the library's table. Raises OverlapError where the library was not built."""
    library = _native.library()
    return tuple(
        KnownGpu(
            key=_native.text(gpu.key),
            name=_native.text(gpu.name),
            architecture=_native.text(gpu.architecture),
            vendor=AMD if gpu.vendor == library.OVERLAP_VENDOR_AMD else NVIDIA,
            multiprocessors=gpu.multiprocessors,
            threads=gpu.threads,
            blocks=gpu.blocks,
            registers=gpu.registers,
            shared_memory=gpu.shared,
            shared_memory_per_block=gpu.shared_optin,
            memory_gib=gpu.memory_gib,
        )
        for gpu in _native.gpus()
    )


def checkable() -> tuple[KnownGpu, ...]:
    """Return the GPUs that a policy can be compared with: none in a checkout that was not built."""
    try:
        return known()
    except OverlapError:
        return ()


def named(word: str) -> KnownGpu:
    """Return the GPU of a key (h100), driver's name or unique architecture, in any case. Raises OverlapError."""
    folded = " ".join(word.split()).casefold()
    makers = tuple(f"{vendor} " for vendor in ARCHITECTURES)
    found = [
        gpu
        for gpu in known()
        if folded in (gpu.key, gpu.architecture) or _bare(gpu.name.casefold(), makers) == _bare(folded, makers)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        keys = " and ".join(gpu.key for gpu in found)
        raise OverlapError(f"{quote(word)} is the architecture of {keys}", f"name one of them: {found[0].key}", USAGE)
    keys = ", ".join(gpu.key for gpu in known())
    within = next((gpu.key for gpu in known() if gpu.key in re.split(r"[^a-z0-9]+", folded)), "")  # NVIDIA H100 PCIe
    close = f"did you mean {quote(within)}?" if within else did_you_mean(word, [gpu.key for gpu in known()])
    raise OverlapError(f"no GPU is called {quote(word)}", f"{close} known: {keys}".strip(), USAGE)


def _bare(name: str, makers: tuple[str, ...]) -> str:
    return next((name[len(maker) :] for maker in makers if name.startswith(maker)), name)


def matching(patterns: Iterable[str]) -> tuple[KnownGpu, ...]:
    """Return the GPUs that a policy's `gpu` names; all of them where it names none."""
    asked = tuple(patterns)
    if not asked:
        return checkable()
    return tuple(gpu for gpu in checkable() if any(_is_called(gpu, glob) for glob in asked))


def apart(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether no GPU can be named by both: none that is known, and no pattern is the other's special case."""
    if not some or not others or set(matching(some)) & set(matching(others)):
        return False
    return not any(pattern_covers(one, other) or pattern_covers(other, one) for one in some for other in others)


def vendors(patterns: Iterable[str]) -> frozenset[str]:
    """Return whose GPUs a policy may be for, by its `gpu`: all vendors where a pattern does not tell."""
    found: set[str] = set()
    for pattern in tuple(patterns) or ("*",):
        of_known = {gpu.vendor for gpu in matching([pattern])}
        by_word = {
            vendor
            for vendor, glob in ARCHITECTURES.items()
            if fnmatchcase(pattern, glob) or pattern.startswith(f"{vendor.upper()} ")
        }
        found |= by_word or of_known or set(ARCHITECTURES)
    return frozenset(found)


def hint(pattern: str) -> str:
    """Return what may have been meant by a name that no known GPU has, or where the known names are."""
    return meant(pattern) or "`overlap policy list` has those that are known"


def unknown(pattern: str) -> str:
    """Return the sentence about a name that no known GPU has."""
    return f"no GPU that is known has the name {quote(pattern)}"


def is_unknown(pattern: str) -> bool:
    """Return whether a pattern names no known GPU, and is no architecture."""
    return bool(checkable()) and not matching([pattern]) and not _ARCHITECTURE.fullmatch(pattern)


def meant(pattern: str) -> str:
    """Return what may have been meant by a name that no known GPU has, or the empty string."""
    folded = pattern.casefold()
    for gpu in checkable():
        if fnmatchcase(gpu.name.casefold(), folded):
            return f'did you mean "{gpu.name}"? upper and lower case matter'
    near = closest(pattern, [name for gpu in checkable() for name in (gpu.key, gpu.architecture)])
    words = re.split(r"[\s*]+", folded)
    for gpu in checkable():
        if gpu.key == near or gpu.key in words:
            return f'a GPU is called as the driver calls it: write "{_pattern(gpu)}"'
    return f"did you mean `{near}`?" if near else ""


def _pattern(gpu: KnownGpu) -> str:
    """Return a pattern of the driver's names for all forms of a GPU: its own up to the key, as NVIDIA H100*."""
    end = gpu.name.casefold().find(gpu.key) + len(gpu.key)
    return f"{gpu.name[:end]}*"


def _is_called(gpu: KnownGpu, glob: str) -> bool:
    return fnmatchcase(gpu.name, glob) or fnmatchcase(gpu.architecture, glob)
