"""Where programs run: C libraries of several Debian releases, each with its own loader, and another processor.

Programs, the simulated driver and the preloaded library are built once for each kind of C library. A program names its
loader by PT_INTERP, as any program does; LD_LIBRARY_PATH says where the rest of that C library is.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import debian
import pytest
import zig
from interposing import PROGRAMS, WAYS

OLD, NEW, NEWEST = (f"x86_64-linux-gnu.{version}" for version in (zig.OLDEST, "2.34", "2.43"))
MUSL, AARCH64 = "x86_64-linux-musl", f"aarch64-linux-gnu.{zig.OLDEST}"


class Kind(NamedTuple):
    """What an environment is made of."""

    suites: tuple[str, ...]  # of Debian: the first that has it
    package: str
    loader: str  # a path's end
    targets: tuple[str, ...]  # of the compiler; from glibc 2.34 on, dlsym and threads are in libc itself
    nodes: tuple[str, ...] = ()  # versions of dlsym that it has
    architecture: str = debian.AMD64


def _glibc(*suites: str, new: tuple[str, ...] = (NEW,)) -> Kind:
    nodes = ("GLIBC_2.2.5", *(["GLIBC_2.34"] if new else []))
    return Kind(suites, "libc6", "x86_64-linux-gnu/ld-linux-x86-64.so.2", (OLD, *new), nodes)


GLIBC = {
    "glibc 2.31 (Debian 11)": _glibc("bullseye", new=()),
    "glibc 2.36 (Debian 12)": _glibc("bookworm"),
    "glibc 2.41 (Debian 13)": _glibc("trixie"),
    "glibc of Debian testing": _glibc("forky", new=(NEWEST,)),
    "newest glibc (Debian experimental)": _glibc("experimental", "sid", new=(NEWEST,)),
}
MUSLS = {"musl 1.2": Kind(("bookworm",), "musl", "x86_64-linux-musl/libc.so", (MUSL,))}
OTHER_PROCESSORS = {
    "aarch64 (qemu)": Kind(
        ("bookworm",),
        "libc6",
        "aarch64-linux-gnu/ld-linux-aarch64.so.1",
        (AARCH64,),
        ("GLIBC_2.17", "GLIBC_2.34"),
        "arm64",
    )
}
ALL = {**GLIBC, **MUSLS, **OTHER_PROCESSORS}


class Shop:
    """What is built of one session, each thing once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[Any, Path] = {}

    def driver(self, target: str) -> Path:
        target = OLD if target in (NEW, NEWEST) else target
        return self._once(("driver", target), lambda: zig.driver(target, self.folder / target / "driver"))

    def library(self, machine: str) -> Path:
        return self._once(("library", machine), lambda: zig.library(machine, self.folder / machine))

    def program(self, target: str, name: str, source: str, flags: Sequence[str], link: Sequence[Any]) -> Path:
        out = self.folder / target / name
        return self._once(out, lambda: zig.build(target, out, [PROGRAMS / source], *flags, link=link))

    def _once(self, key: Any, make: Callable[[], Path]) -> Path:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]


class World:
    """An environment that is there: builds programs for it, and says how they are run."""

    def __init__(self, name: str, shop: Shop) -> None:
        self.name, self.kind, self.shop = name, ALL[name], shop
        self.folder = shop.folder / name.replace(" ", "-").replace("(", "").replace(")", "")
        self.root = _unpacked(self.kind)
        self.loader = next(path for path in sorted(self.root.rglob("*.so*")) if str(path).endswith(self.kind.loader))
        self.machine = self.kind.targets[0].partition("-")[0]
        # What a program is started through, and what it says where it starts another one.
        self.start = [] if self.kind.architecture == debian.AMD64 else [_qemu()]

    @property
    def version(self) -> str:
        """As glibc says it itself; empty for another C library."""
        said = re.search(rb"stable release version ([0-9.]+[0-9])", (self.loader.parent / "libc.so.6").read_bytes())
        return said[1].decode() if said else ""

    @property
    def library(self) -> Path:
        """The one file for all environments of a processor."""
        return self.shop.library(self.machine)

    def variables(self, target: str, driver: bool = True) -> dict[str, str]:
        folders = [*([self.shop.driver(target).parent] if driver else []), self.loader.parent]
        started = {"QEMU_LD_PREFIX": str(self.root), "CLIENT_THROUGH": self.start[0]} if self.start else {}
        return {"LD_LIBRARY_PATH": ":".join(map(str, folders)), **started}

    def program(self, target: str, name: str, source: str, *flags: str, link: Sequence[Any] = ()) -> Path:
        """With this environment's loader in it."""
        made = self.shop.program(target, name, source, flags, link)
        out = self.folder / target / name
        if self.start or out.exists():
            return made if self.start else out
        out.parent.mkdir(parents=True, exist_ok=True)
        return with_loader(made, self.loader, out)

    def shared(self, target: str, name: str, source: str, *flags: str, link: Sequence[Any] = ()) -> Path:
        return self.shop.program(target, name, source, ["-shared", "-fPIC", f"-Wl,-soname,{name}", *flags], link)

    def client(self, target: str, way: str = "symbol") -> Path:
        link = [self.shop.driver(target)] if way == "symbol" else []
        return self.program(target, f"client-{way}", "client.c", "-O1", f"-DWAY_{WAYS[way]}", link=link)


def _unpacked(kind: Kind) -> Path:
    for suite in kind.suites:
        try:
            return debian.fetch(suite, [kind.package], kind.architecture)
        except debian.Missing as missing:
            why = missing
    pytest.skip(f"needs {kind.package} of Debian: {why}")


def _qemu() -> str:
    for name in ("qemu-aarch64-static", "qemu-aarch64"):
        if found := shutil.which(name):
            return found
    try:
        return str(debian.fetch("bookworm", ["qemu-user-static"]) / "usr/bin/qemu-aarch64-static")
    except debian.Missing as missing:
        pytest.skip(f"needs qemu-user: {missing}")


def with_loader(program: Path, loader: Path, out: Path) -> Path:
    """A copy whose PT_INTERP is another: its path is put at the end of the file."""
    data, interp = bytearray(program.read_bytes()), 3
    table, (size, count) = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<HH", data, 54)
    at = next(at for at in range(table, table + size * count, size) if struct.unpack_from("<I", data, at)[0] == interp)
    path = str(loader).encode() + b"\0"
    struct.pack_into("<Q", data, at + 8, len(data))
    struct.pack_into("<QQ", data, at + 32, len(path), len(path))
    out.write_bytes(data + path)
    out.chmod(0o755)
    return out
