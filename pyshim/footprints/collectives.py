"""What a block of NCCL or RCCL takes on a GPU: from the table of a version that is known, or of one that was read."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim.footprints.families import NCCL, RCCL, Library
from pyshim.footprints.footprint import Footprint
from pyshim.footprints.summary import rows

LIBRARIES = Path(__file__).parent / "libraries"
FAMILY = "ncclDevKernel"  # collectives; the others are one-rank reductions, symmetric memory, MSCCL


@dataclass(frozen=True)
class Collective:
    """One block, as it is launched."""

    library: str  # NCCL 2.28.9; only the library's name where the version is not known
    variant: str  # unroll 4; the empty string on NVIDIA
    path: str  # hipLaunchKernel; the empty string on NVIDIA
    threads: int
    registers: int
    static: int
    dynamic: int
    barriers: int = 0
    scalars: int = 0
    usual: bool = False  # what the library launches if nobody set a variable; of two paths both may be


@functools.cache
def tables(library: str) -> tuple[dict[str, Any], ...]:
    """Return the committed tables of nccl or rccl, oldest version first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in LIBRARIES.glob(f"{library}-*.json")]
    return tuple(sorted(found, key=lambda table: [int(part) for part in table["version"].split(".")]))


def newest(architecture: str) -> list[Collective]:
    """Return those of the newest version that is known."""
    table = tables(library_of(architecture).name.lower())[-1]
    return list(of_table(table, architecture))


def of_kernels(found: Iterable[Footprint], architecture: str) -> list[Collective]:
    """Return those of a binary whose kernels were read."""
    library = library_of(architecture)
    table = {"library": library.name, "version": "", "rows": rows(found, library)}
    return list(of_table({**table, "not_in_the_binary": library.not_in_the_binary}, architecture))


def library_of(architecture: str) -> Library:
    return NCCL if architecture.startswith("sm_") else RCCL


def image_for(architecture: str, images: Iterable[str]) -> str | None:
    """Return the image for a GPU: its chip's, else of its major and next lower minor number; on AMD the very same."""
    found = set(images)
    if not architecture.startswith("sm_"):
        return next((image for image in (architecture, f"{architecture}:xnack+") if image in found), None)
    for letter in "af":
        if architecture + letter in found:
            return architecture + letter
    number = int(architecture[3:])
    fitting = [int(image[3:]) for image in found if re.fullmatch(r"sm_\d+", image)]
    fitting = [image for image in fitting if image // 10 == number // 10 and image <= number]
    return f"sm_{max(fitting)}" if fitting else None


def of_table(table: Mapping[str, Any], architecture: str) -> Iterator[Collective]:
    own = [row for row in table["rows"] if row["family"] == FAMILY]
    image = image_for(architecture, {row["architecture"] for row in own})
    facts = {fact["what"]: fact for fact in table["not_in_the_binary"] if fact["family"] == FAMILY}
    library = f"{table['library']} {table['version']}".strip()
    launches = _on_amd if "gfx" in architecture else _on_nvidia
    for row in (row for row in own if row["architecture"] == image):
        yield from launches(library, row, facts, architecture)


def _on_nvidia(library: str, row: Mapping[str, Any], facts: Mapping[str, Any], gpu: str) -> Iterator[Collective]:
    dynamic = facts["dynamic_shared_memory"]
    size = dynamic["other_architectures"].get(gpu, dynamic["bytes"])
    usual = True
    for threads in dict.fromkeys(facts["threads"]["values"].values()):
        yield Collective(library, "", "", threads, *_most(row), size, row["usual"].get("barriers", 0), usual=usual)
        usual = False  # the first of them is


def _on_amd(library: str, row: Mapping[str, Any], facts: Mapping[str, Any], gpu: str) -> Iterator[Collective]:
    dynamic = facts["dynamic_shared_memory"]
    usual = facts["shape"]["values"].get(gpu) == row["shape"]
    for path, asked in dynamic["values"].items():
        size = dynamic["other_architectures"].get(gpu, asked) if asked else 0
        scalars = row["usual"].get("scalars", 0)
        yield Collective(
            library, f"unroll {row['shape']}", path, row["threads"], *_most(row), size, scalars=scalars, usual=usual
        )


def _most(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["registers"]["most"], row["static_shared_memory"]["most"]
