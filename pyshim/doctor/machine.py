"""What the checks look at: an environment, and the files below a root folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyshim.launch import driver, hip

HIP = hip.NAME


@dataclass(frozen=True)
class Machine:
    environment: Mapping[str, str]
    root: str = "/"
    packages: Sequence[str] = tuple(sys.path)  # folders in which Python packages are looked for
    access: Callable[[str, int], bool] = os.access

    def path(self, absolute: str) -> str:
        return os.path.join(self.root, absolute.lstrip("/"))

    def exists(self, absolute: str) -> bool:
        return os.path.exists(self.path(absolute))

    def set(self, name: str) -> str | None:
        """The value of a variable; None where it is not set, or empty."""
        return self.environment.get(name) or None

    def vendors(self) -> frozenset[str]:
        return driver.vendors(self.environment, self.root)

    def is_amd(self) -> bool:
        """Whether anything here is of AMD: a driver, or a runtime. Beside NVIDIA's driver a runtime alone is nothing:
        distributions bring one along with other packages."""
        vendors = self.vendors()
        return "amd" in vendors or ("nvidia" not in vendors and bool(self.hip_runtimes()))

    def hip_runtimes(self) -> dict[str, list[str]]:
        """libamdhip64.so.N -> where it is, in the order in which the loader looks; PyTorch's own last."""
        found = hip.installed(self.environment, self.root)
        for folder in self.packages:
            for path in hip.in_folder(os.path.join(folder, "torch", "lib"), bundled=True):
                places = found.setdefault(os.path.basename(path), [])
                if path not in places:
                    places.append(path)
        return dict(sorted(found.items()))
