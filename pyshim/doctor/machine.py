"""What the checks look at: an environment, and the files below a root folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyshim.launch import driver

HIP = "libamdhip64.so"
_RUNTIME = re.compile(re.escape(HIP) + r"\.\d+")
_CACHED = re.compile(rb"/[^\0]*/" + re.escape(HIP.encode()) + rb"\.\d+(?=\0)")
_CACHE_SIZE = 16 << 20


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
        """Whether anything here is of AMD: a driver or a runtime."""
        return "amd" in self.vendors() or bool(self.hip_runtimes())

    def hip_runtimes(self) -> dict[str, list[str]]:
        """libamdhip64.so.N -> where it is, in the order in which the loader looks; PyTorch's own last."""
        found: dict[str, list[str]] = {}
        for path in (*self._listed(), *self._cached(), *self._of_torch()):
            places = found.setdefault(os.path.basename(path), [])
            if path not in places:
                places.append(path)
        return dict(sorted(found.items()))

    def _listed(self) -> Iterator[str]:
        folders = self.environment.get("LD_LIBRARY_PATH", "").split(":")
        for folder in (*filter(None, folders), self.path("opt/rocm/lib")):
            yield from _runtimes_in(folder)

    def _cached(self) -> Iterator[str]:
        try:
            with open(self.path(driver.CACHE), "rb") as file:
                data = file.read(_CACHE_SIZE)
        except OSError:
            return
        yield from (os.fsdecode(match) for match in _CACHED.findall(data))

    def _of_torch(self) -> Iterator[str]:
        for folder in self.packages:
            yield from _runtimes_in(os.path.join(folder, "torch", "lib"), bundled=True)


def _runtimes_in(folder: str, bundled: bool = False) -> Iterator[str]:
    """bundled: PyTorch's wheels leave the number out of the file's name."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if _RUNTIME.fullmatch(name) or (bundled and name == HIP))
