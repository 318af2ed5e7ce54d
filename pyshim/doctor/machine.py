"""What the checks look at: an environment, the files below a root folder, a program, and what the driver says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyshim.doctor import gpus
from pyshim.launch import driver, program
from pyshim.launch.driver import Gpu as Simulated

HIP = driver.HIP


@dataclass(frozen=True)
class Machine:
    environment: Mapping[str, str]
    root: str = "/"
    access: Callable[[str, int], bool] = os.access
    command: Sequence[str] = ()  # PROGRAM and its arguments
    policy: str | None = None  # of --policy
    simulated: Simulated | None = None
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
    def cuda(self) -> gpus.Answer | None:
        """What NVIDIA's driver says, or the simulated one; None: there is none."""
        if "nvidia" not in self.vendors():
            return None
        return gpus.ask("cuda", program.CUDA, self.environment, self.patience)

    @cached_property
    def hip(self) -> gpus.Answer | None:
        """What AMD's runtime says, or a simulated one; None: there is no driver, or no runtime."""
        runtimes = driver.hip_runtimes(self.environment, self.root) if "amd" in self.vendors() else {}
        if not runtimes:
            return None
        numbered = [name for name in runtimes if name != HIP] or list(runtimes)
        return gpus.ask("hip", runtimes[numbered[-1]][0], self.environment, self.patience)

    def gpus(self) -> tuple[gpus.Gpu, ...]:
        return tuple(gpu for answer in (self.cuda, self.hip) if answer for gpu in answer.gpus)
