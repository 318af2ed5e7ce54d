"""What the checks look at: an environment, files below a root folder, a program, the GPUs that drivers answer.

A driver may hang or crash, so a process of its own asks it (ask.py). And what a check says: a Line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pyshim.doctor import child
from pyshim.start import driver, program
from pyshim.start.driver import SimulatedGpu

HIP = driver.HIP
_ASK = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ask.py")
_SHOWN = 4
State = Literal["ok", "warn", "fail"]


class Line(NamedTuple):
    state: State  # warn: it may be meant so, or costs something; fail: nothing can work like this
    sentence: str  # without a full stop
    hint: str = ""  # what to do


def ok(sentence: str) -> Line:
    return Line("ok", sentence)


def warn(sentence: str, hint: str) -> Line:
    return Line("warn", sentence, hint)


def fail(sentence: str, hint: str) -> Line:
    return Line("fail", sentence, hint)


def some(names: Sequence[str]) -> str:
    """Return the first four, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


class DriverGpu(NamedTuple):
    name: str
    architecture: str = ""  # sm_90, gfx90a
    multiprocessors: int = 0
    memory: int = 0  # bytes
    compute_mode: int = 0  # CUcomputemode


class DriverReply(NamedTuple):
    """error: why there are no GPUs, for the middle of a sentence. code: the driver's own number for it."""

    gpus: tuple[DriverGpu, ...] = ()
    version: int = 0
    error: str = ""
    code: int = 0


def ask(kind: str, library: str, environment: Mapping[str, str], seconds: float) -> DriverReply:
    """Ask a driver. kind: cuda or hip, as ask.py takes it."""
    data, why = child.ask(_ASK, (kind, library), environment, seconds)
    if why:
        return DriverReply(error=why)
    try:
        return refusal(data) or DriverReply(tuple(_gpu(gpu) for gpu in data.get("gpus", ())), int(data["version"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return DriverReply(error=child.NO_SENSE)


def refusal(data: dict[str, Any]) -> DriverReply | None:
    """Return the answer for a driver that does not load, or that answers an error; None for any other."""
    if "not_loaded" in data:
        return DriverReply(error=f"it does not load: {data['not_loaded']}")
    if "error" in data:
        name = data.get("name")
        return DriverReply(error=f"error {data['error']}" + (f" ({name})" if name else ""), code=int(data["error"]))
    return None


def _gpu(data: dict[str, Any]) -> DriverGpu:
    return DriverGpu(
        name=str(data["name"]),
        architecture=str(data.get("architecture", "")),
        multiprocessors=int(data.get("multiprocessors") or 0),
        memory=int(data["memory"]),
        compute_mode=int(data.get("compute_mode") or 0),
    )


def alike(gpus: Iterable[DriverGpu]) -> dict[DriverGpu, list[int]]:
    """Group equal GPUs, with the numbers under which they are found."""
    found: dict[DriverGpu, list[int]] = {}
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


@dataclass(frozen=True)
class Machine:
    environment: Mapping[str, str]
    root: str = "/"
    access: Callable[[str, int], bool] = os.access
    command: Sequence[str] = ()  # PROGRAM and its arguments
    policy: str | None = None  # of --policy
    simulated: SimulatedGpu | None = None
    patience: float = 20.0  # seconds for a question to a driver; with eight GPUs and no persistence mode it takes a few

    def path(self, absolute: str) -> str:
        return os.path.join(self.root, absolute.lstrip("/"))

    def exists(self, absolute: str) -> bool:
        return os.path.exists(self.path(absolute))

    def text(self, absolute: str) -> str:
        """Return the beginning of a small file; empty where it cannot be read."""
        return driver.text(self.path(absolute))

    def set(self, name: str) -> str | None:
        """Return the value of a variable; None where it is not set, or empty."""
        return self.environment.get(name) or None

    def vendors(self) -> frozenset[str]:
        if self.simulated:
            return frozenset((self.simulated.vendor,))
        return program.vendors(self.environment, self.root)

    @cached_property
    def cuda(self) -> DriverReply | None:
        """What NVIDIA's driver says, or the simulated one; None: there is none."""
        if "nvidia" not in self.vendors():
            return None
        return ask("cuda", program.CUDA, self.environment, self.patience)

    @cached_property
    def hip(self) -> DriverReply | None:
        """What AMD's runtime says, or a simulated one; None: there is no driver, or no runtime."""
        runtimes = driver.hip_runtimes(self.environment, self.root) if "amd" in self.vendors() else {}
        if not runtimes:
            return None
        numbered = [name for name in runtimes if name != HIP] or list(runtimes)
        return ask("hip", runtimes[numbered[-1]][0], self.environment, self.patience)

    def gpus(self) -> tuple[DriverGpu, ...]:
        return tuple(gpu for answer in (self.cuda, self.hip) if answer for gpu in answer.gpus)
