"""Find patterns that were hardly meant as they are written.

They are a letter off the names that usual libraries give to kernels, files that no installation has, or rules for
kernels that are never shaped. Users have kernels of their own, so a pattern that matches nothing known gets a note, and
only a near miss gets a warning. A pattern with a bracket, `[n]vjett`, is taken as it is written.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import NamedTuple

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy.finding import quote
from pyshim.policy.kernels import FUSED, SETS
from pyshim.policy.values import Bad, is_wild, pattern_covers

# Parts of the patterns of kernels.py and of shim/core/family.def (a test compares) of which a near miss is hardly a
# word of its own; `naive`, a letter off `native`, is one.
PRODUCTS = ("nccl", "nvjet", "cutlass", "triton", "cudnn", "nvshmem", "mscclpp", "flashinfer")
WORDS = (*PRODUCTS, "kernel", "elementwise", "attention", "matmul", "optimizer", "allreduce", "embedding", "backward")

_TELLING = 6  # letters

# The libraries that launch nothing but communication, as family.def has them (a test compares).
COMMUNICATION_LIBRARIES = ("libnccl.so*", "librccl.so*", "libnvshmem_host.so*")
# How the files of libraries are called that launch kernels or create streams: each ends in a version.
_VERSIONED = (
    "libnccl.so",
    "librccl.so",
    "libnvshmem_host.so",
    "libcublas.so",
    "libcublasLt.so",
    "libcudnn.so",
    "libcusparse.so",
    "libcufft.so",
    "librocblas.so",
    "libhipblaslt.so",
    "libMIOpen.so",
)

# Variables that policies set, or that change what communication launches:
# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html and facts of the shipped policies.
VARIABLES = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NTHREADS",
    "NCCL_LL128_NTHREADS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_CTA_POLICY",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_P2P_NCHANNELS",
    "NCCL_MAX_P2P_NCHANNELS",
    "NCCL_MIN_NRINGS",
    "NCCL_MAX_NRINGS",
    "NCCL_BUFFSIZE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_CGA_CLUSTER_SIZE",
    "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_LAUNCH_ORDER_IMPLICIT",
    "NCCL_DEBUG",
    "RCCL_UNROLL_FACTOR",
    "RCCL_THREADS_PER_BLOCK",
    "RCCL_MSCCL_ENABLE",
    "RCCL_MSCCLPP_ENABLE",
    "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_NCCL_BLOCKING_WAIT",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "GPU_MAX_HW_QUEUES",
)


def near_miss(pattern: str) -> Bad | None:
    """Return what is probably wrong with a pattern of kernels; words for sets and families are compared elsewhere."""
    if "[" in pattern or "::" in pattern:
        return None
    for found in re.finditer(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", pattern):
        word = _meant(found[0], pattern[: found.start()][-1:], pattern[found.end() :][:1])
        if word:
            better = pattern[: found.start()] + word + pattern[found.end() :]
            # In front of the first letter, so that it reads as a name.
            as_is = f"{pattern[: found.start()]}[{found[0][0]}]{found[0][1:]}{pattern[found.end() :]}"
            where = "" if found[0] == pattern else f" in {quote(pattern)}"
            sentence = f"{quote(found[0])}{where} is a letter off {quote(word)}"
            return Bad("kernel", sentence, f"did you mean {quote(better)}? or, if it is right as it is: {quote(as_is)}")
    letters = re.sub(r"[*?_0-9]", "", pattern)
    if letters not in PRODUCTS and letters.casefold() in PRODUCTS:
        better = pattern.replace(letters, letters.casefold())
        sentence = f"upper and lower case matter, and kernels of {letters.casefold()} do not match {quote(pattern)}"
        return Bad("kernel", sentence, f"did you mean {quote(better)}?")
    return None


def _meant(word: str, before: str, after: str) -> str:
    """Return the word of ours that is one edit away, spelt as this one begins, or the empty string."""
    folded = word.casefold()
    if folded in WORDS or len(folded) < 4:
        return ""
    for known in WORDS:
        if folded[0] != known[0] or not _one_edit(folded, known):
            continue
        # With another ending a word is a word, and a product is none.
        if known not in PRODUCTS and (folded.startswith(known) or known.startswith(folded)):
            continue
        # Cut off where a star stands for the rest: it matches.
        if folded == known[:-1] and after == "*":
            continue
        return known.capitalize() if word[0].isupper() else known
    return ""


def _one_edit(one: str, other: str) -> bool:
    """Compare two words: a letter added, left out or another, or two that have changed places."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    first, second = one[start:], other[start:]
    if len(first) == len(second):
        return first[1:] == second[1:] or (first[:2] == second[1::-1] and first[2:] == second[2:])
    return first == second[1:] or first[1:] == second


def unknown(text: str, pattern: str, communication: tuple[str, ...]) -> Bad | None:
    """Note that a pattern, `text` in the file, matches no known kernel. communication: what the policy calls so."""
    if "[" in text or any(product in pattern for product in PRODUCTS):
        return None
    name = _name_of(pattern)
    if any(fnmatchcase(name, one) for one in communication) or is_communication(name, ()):
        return None
    names, own = (name, _plain(name)), re.compile(translate(pattern))
    if any(own.match(kind.name) or kind.start in pattern or any(map(kind.glob.match, names)) for kind in _kinds()):
        return None
    return Bad("unknown-kernel", f"{quote(text)} is like no kernel that is known here: taken as a kernel of your own")


class _Kind(NamedTuple):
    glob: re.Pattern[str]
    name: str  # that it matches
    start: str  # what every such name holds, and few others


@lru_cache(maxsize=1)
def _kinds() -> tuple[_Kind, ...]:
    """Of the patterns of the sets."""
    globs = dict.fromkeys(pattern for pattern in (*FUSED, *(one for many in SETS.values() for one in many)))
    return tuple(_Kind(re.compile(translate(glob)), _name_of(glob), _start_of(glob)) for glob in globs)


def _name_of(pattern: str) -> str:
    """Return the shortest name, or nearly, that a pattern matches."""
    one = re.sub(r"\[([^]!][^]]*|![^]]+)\]", lambda found: "_" if found[1][0] == "!" else found[1][0], pattern)
    return one.replace("*", "").replace("?", "x")


def _plain(name: str) -> str:
    """Of a mangled function outside of namespaces: `_Z4gemmPf` is `gemm`."""
    found = re.match("_Z([0-9]{1,3})", name)
    return name[found.end() : found.end() + int(found[1])] if found else name


def _start_of(pattern: str) -> str:
    """Its first word that says something, or a text that no pattern holds, where it has none."""
    parts = re.split(r"[*?]|\[[^]]*\]", pattern)
    return next((part for part in parts if len(part) >= _TELLING and len(parts) > 1), "\0")


def library_miss(pattern: str) -> Bad | None:
    """Return what is probably wrong with a pattern of libraries."""
    if "[" in pattern or any(fnmatchcase(f"{name}.9", pattern) for name in _VERSIONED):
        return None
    stem = re.sub(r"(\.[0-9]+)+$", "", pattern.rstrip("*"))
    # Libraries of other vendors are called a letter off NCCL's: hccl, mccl, uccl.
    if is_wild(stem) or (re.fullmatch(r"lib[a-z]ccl\.so", stem) and f"{stem}*" not in COMMUNICATION_LIBRARIES):
        return None
    for name in _VERSIONED:
        if stem == name and stem != pattern:
            return None  # one version of it
        bare = name[len("lib") : -len(".so")]
        forms = (bare, f"lib{bare}", f"{bare}.so", name)
        if stem.casefold() in [form.casefold() for form in forms] or _one_edit(stem.casefold(), name.casefold()):
            sentence = f"{quote(pattern)} does not match the file of the library, which is called {name}.VERSION"
            return Bad("library", sentence, f'did you mean "{name}*"?')
    return None


def variable_miss(name: str) -> Bad | None:
    """Return what is probably wrong with the name of a variable that a policy sets."""
    if name in VARIABLES:
        return None
    for known in VARIABLES:
        if name.upper() == known or _one_edit(name.upper(), known):
            sentence = f"no library reads the variable {quote(name)}, as far as is known here"
            return Bad("variable", sentence, f"did you mean {quote(known)}?")
    return None


def is_communication(pattern: str, kernels: tuple[str, ...]) -> bool:
    """Only where it is certain: as pattern_covers says it, a pattern of stars matches what the text of another does."""
    if any(pattern_covers(wide, pattern) for wide in kernels):
        return True
    if "[" in pattern:
        return False
    try:
        return bool(_native.library().overlap_is_communication(pattern.encode()))
    except OverlapError:
        return False  # not built: the rest of the file can still be checked
