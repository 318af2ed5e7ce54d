"""The GPUs of this machine, as the driver says: asked by a process of its own (ask.py), which may hang or crash."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyshim.doctor import child

_ASK = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ask.py")


class Gpu(NamedTuple):
    name: str
    architecture: str = ""  # sm_90, gfx90a
    multiprocessors: int = 0
    memory: int = 0  # bytes
    compute_mode: int = 0  # CUcomputemode


class Answer(NamedTuple):
    """error: why there are no GPUs, for the middle of a sentence. code: the driver's own number for it."""

    gpus: tuple[Gpu, ...] = ()
    version: int = 0
    error: str = ""
    code: int = 0


def ask(kind: str, library: str, environment: Mapping[str, str], seconds: float) -> Answer:
    """Ask a driver. kind: cuda, hip or nccl, as ask.py takes it."""
    data, why = child.ask(_ASK, (kind, library), environment, seconds)
    if why:
        return Answer(error=why)
    try:
        return refusal(data) or Answer(tuple(_gpu(gpu) for gpu in data.get("gpus", ())), int(data["version"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Answer(error=child.NO_SENSE)


def refusal(data: dict[str, Any]) -> Answer | None:
    """Return the answer for a driver that does not load, or that answers an error; None for any other."""
    if "not_loaded" in data:
        return Answer(error=f"it does not load: {data['not_loaded']}")
    if "error" in data:
        name = data.get("name")
        return Answer(error=f"error {data['error']}" + (f" ({name})" if name else ""), code=int(data["error"]))
    return None


def _gpu(data: dict[str, Any]) -> Gpu:
    return Gpu(
        name=str(data["name"]),
        architecture=str(data.get("architecture", "")),
        multiprocessors=int(data.get("multiprocessors") or 0),
        memory=int(data["memory"]),
        compute_mode=int(data.get("compute_mode") or 0),
    )


def alike(gpus: Iterable[Gpu]) -> dict[Gpu, list[int]]:
    """Group equal GPUs, with the numbers under which they are found."""
    found: dict[Gpu, list[int]] = {}
    for index, gpu in enumerate(gpus):
        found.setdefault(gpu, []).append(index)
    return found


def numbers(indices: list[int]) -> str:
    """Return the GPUs in words: GPU 0; GPUs 0-7; GPUs 0, 2."""
    if len(indices) == 1:
        return f"GPU {indices[0]}"
    if indices == list(range(indices[0], indices[-1] + 1)):
        return f"GPUs {indices[0]}-{indices[-1]}"
    return f"GPUs {', '.join(map(str, indices))}"


def gib(size: int) -> str:
    return f"{size / 2**30:,.0f} GiB"
