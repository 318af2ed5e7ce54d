"""The GPUs that the library knows by name, as far as a policy file has to know them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy.finding import closest


@dataclass(frozen=True)
class KnownGpu:
    key: str  # h100
    name: str  # as the driver answers
    architecture: str  # sm_90
    block_limit: int  # bytes of shared memory that one block may take


@functools.cache
def known() -> tuple[KnownGpu, ...]:
    """The library's table; in a checkout that was not built, the file that the table is made from."""
    try:
        library = _native.library()
    except OverlapError:
        return _written()
    gpu: Any = _native.ffi.new("struct overlap_gpu *")
    found: list[KnownGpu] = []
    while library.overlap_gpu_known(len(found), gpu):
        key, name = (_native.text(_native.ffi.cast("char *", field)) for field in (gpu.key, gpu.name))
        found.append(KnownGpu(key, name, f"sm_{gpu.major}{gpu.minor}", int(gpu.shared_optin)))
    return tuple(found)


def matching(patterns: Iterable[str]) -> tuple[KnownGpu, ...]:
    """Those that a policy's `gpu` names; all of them where it names none."""
    asked = tuple(patterns)
    if not asked:
        return known()
    return tuple(gpu for gpu in known() if any(_is_called(gpu, glob) for glob in asked))


def hint(pattern: str) -> str:
    """What may have been meant by a name that no GPU has."""
    folded = pattern.casefold()
    for gpu in known():
        if fnmatchcase(gpu.name.casefold(), folded):
            return f'did you mean "{gpu.name}"? upper and lower case matter'
    near = closest(pattern, [name for gpu in known() for name in (gpu.key, gpu.architecture)])
    for gpu in known():
        if gpu.key == near:
            return f'a GPU is called as the driver calls it: "{gpu.name}"'
    return f"did you mean `{near}`?" if near else "`overlap gpus` lists those that are known"


def _is_called(gpu: KnownGpu, glob: str) -> bool:
    return fnmatchcase(gpu.name, glob) or fnmatchcase(gpu.architecture, glob)


def _written() -> tuple[KnownGpu, ...]:
    path = Path(__file__).resolve().parents[2] / "shim" / "core" / "gpu.def"
    if not path.exists():
        return ()
    row = re.compile(r'^GPU\((\w+), +"([^"]+)", +(\d+), +(\d+), +(?:\d+, +){5}(\d+),', re.MULTILINE)
    return tuple(
        KnownGpu(key, name, f"sm_{major}{minor}", int(optin))
        for key, name, major, minor, optin in row.findall(path.read_text(encoding="utf-8"))
    )
