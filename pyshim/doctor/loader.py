"""Which libraries ld.so would load for a program, from where and by whose word; nothing is executed.

As ld.so(8) and glibc's elf/dl-load.c say: a name with a slash is a path; else DT_RPATH of the object that needs it and
of those that loaded it, where the object has no DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH of the object; the cache; the
usual folders. Left out: glibc-hwcaps folders, which hold faster copies of the same libraries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyshim.launch import driver, elf

RPATH, VARIABLE, RUNPATH, CACHE, USUAL, PATH = "DT_RPATH", "LD_LIBRARY_PATH", "DT_RUNPATH", "cache", "usual", "path"
_MOST = 1000  # libraries of a program


class Loaded(NamedTuple):
    name: str  # as it is asked for
    path: str
    program: elf.Program
    by: Loaded | None  # None: the program itself
    how: str = PATH

    def folders(self, text: str) -> Iterator[str]:
        """Yield the folders of DT_RPATH or DT_RUNPATH, with $ORIGIN and the like put in."""
        origin = os.path.dirname(os.path.realpath(self.path))
        for entry in text.split(":"):
            for lib in _LIBS if re.search(r"\$(LIB\b|\{LIB\})", entry) else ("",):
                made = entry
                for word, value in (("ORIGIN", origin), ("LIB", lib), ("PLATFORM", os.uname().machine)):
                    made = made.replace(f"${{{word}}}", value).replace(f"${word}", value)
                yield made


@dataclass
class Walk:
    loaded: list[Loaded] = field(default_factory=list)  # breadth first; the program itself comes first
    missing: list[tuple[str, str]] = field(default_factory=list)  # name, and the path of what needs it
    stopped: bool = False  # there are more than anybody can mean


_LIBS = (f"lib/{os.uname().machine}-linux-gnu", "lib64", "lib")


class Loader:
    def __init__(self, environment: Mapping[str, str], root: str = "/") -> None:
        variable = environment.get("LD_LIBRARY_PATH", "")
        self._variable = [folder or "." for folder in re.split("[:;]", variable)] if variable else []
        self._root = root
        self._usual = [os.path.join(root, prefix + lib) for lib in _LIBS for prefix in ("", "usr/")]
        self._cache: dict[str, list[str]] | None = None

    def walk(self, path: str) -> Walk:
        start = elf.inspect(path)
        found = Walk()
        if start.kind != elf.ELF:
            return found
        found.loaded.append(Loaded(os.path.basename(path), path, start, None))
        known = {start.soname} if start.soname else set()
        for index in range(_MOST):
            if index >= len(found.loaded):
                return found
            parent = found.loaded[index]
            for name in parent.program.needed:
                if name in known:
                    continue
                known.add(name)
                child = self.find(name, parent)
                if child is None:
                    found.missing.append((name, parent.path))
                elif child.program.soname not in known - {name}:
                    known.add(child.program.soname or name)
                    found.loaded.append(child)
        found.stopped = True
        return found

    def find(self, name: str, parent: Loaded) -> Loaded | None:
        """Return the first file of that name that is for the parent's machine and word size."""
        for path, how in self._candidates(name, parent):
            program = elf.inspect(path)
            if program.kind == elf.ELF and (program.bits, program.machine) == _kind(parent.program):
                return Loaded(name, path, program, parent, how)
        return None

    def by_name(self, name: str) -> str | None:
        """Return the path that LD_PRELOAD and dlopen of the program would find; None: not there."""
        here = elf.Program(elf.ELF, 64, os.uname().machine)
        found = self.find(name, Loaded("", "", here, None))
        return found.path if found else None

    def _candidates(self, name: str, parent: Loaded) -> Iterator[tuple[str, str]]:
        if "/" in name:
            yield from ((path, PATH) for path in parent.folders(name))
            return
        above: Loaded | None = None if parent.program.runpath else parent
        while above:
            yield from ((os.path.join(folder, name), RPATH) for folder in _set(above, above.program.rpath))
            above = above.by
        yield from ((os.path.join(folder, name), VARIABLE) for folder in self._variable)
        yield from ((os.path.join(folder, name), RUNPATH) for folder in _set(parent, parent.program.runpath))
        yield from ((path, CACHE) for path in self.cached(name))
        yield from ((os.path.join(folder, name), USUAL) for folder in self._usual)

    def cached(self, name: str) -> list[str]:
        """Return what the loader's cache has for a name, for programs of every kind."""
        if self._cache is None:
            self._cache = {}
            for path in driver.cached(self._root):
                path = os.path.join(self._root, path.lstrip("/"))
                self._cache.setdefault(os.path.basename(path), []).append(path)
        return self._cache.get(name, [])


def _set(by: Loaded, text: str) -> Iterator[str]:
    return by.folders(text) if text else iter(())


def _kind(program: elf.Program) -> tuple[int, str]:
    return program.bits, program.machine
