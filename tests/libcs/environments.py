"""Where programs run: C libraries of several Debian releases, each with its own loader, and another processor.

Programs, the simulated driver and the preloaded library are built once for each kind of C library. A program names its
loader by PT_INTERP, as any program does; LD_LIBRARY_PATH says where the rest of that C library is.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import debian
import needs
import pytest
import zig
from interposing import PROGRAMS, WAYS, Done

OLD, NEW, NEWEST = (f"x86_64-linux-gnu.{version}" for version in (zig.OLDEST, "2.34", "2.43"))
LOADER = "ld-linux-x86-64.so.2"
MUSL, AARCH64 = "x86_64-linux-musl", f"aarch64-linux-gnu.{zig.OLDEST}"


class Kind(NamedTuple):
    """What an environment is made of."""

    suites: tuple[str, ...]  # of Debian: the first that has it
    package: str
    loader: str
    triple: str  # the name of the folder of the C library
    targets: tuple[str, ...]  # of the compiler; from glibc 2.34 on, dlsym and threads are in libc itself
    nodes: tuple[str, ...] = ()  # versions of dlsym that it has
    architecture: str = debian.AMD64


def _glibc(*suites: str, new: tuple[str, ...] = (NEW,)) -> Kind:
    nodes = ("GLIBC_2.2.5", *(["GLIBC_2.34"] if new else []))
    return Kind(suites, "libc6", LOADER, "x86_64-linux-gnu", (OLD, *new), nodes)


GLIBC = {
    "glibc 2.31 (Debian 11)": _glibc("bullseye", new=()),
    "glibc 2.36 (Debian 12)": _glibc("bookworm"),
    "glibc 2.41 (Debian 13)": _glibc("trixie"),
    "glibc of Debian testing": _glibc("forky", new=(NEWEST,)),
    "newest glibc (Debian experimental)": _glibc("experimental", "sid", new=(NEWEST,)),
}
# An emulator that brings the libc of Ubuntu 18.04, and of that glibc nothing else but its loader.
LIBC_ALONE = {"glibc 2.27 (Ubuntu 18.04), libc alone": Kind((), "zelos==0.0.0", LOADER, "x86_64-linux-gnu", (OLD,))}
EMULATOR = "96f5f78b1ba2a4da29bf04a0de7947da66699b066b760e1729b1e016f3330357"
MUSLS = {"musl 1.2": Kind(("bookworm",), "musl", "libc.so", "x86_64-linux-musl", (MUSL,))}
OTHER_PROCESSORS = {
    "aarch64 (qemu)": Kind(
        ("bookworm",),
        "libc6",
        "ld-linux-aarch64.so.1",
        "aarch64-linux-gnu",
        (AARCH64,),
        ("GLIBC_2.17", "GLIBC_2.34"),
        "arm64",
    )
}
ALL = {**GLIBC, **MUSLS, **OTHER_PROCESSORS}
KNOWN = {**ALL, **LIBC_ALONE}


class Shop:
    """What is built of one session, each thing once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[Any, Path] = {}

    def driver(self, target: str) -> Path:
        target = OLD if target in (NEW, NEWEST) else target
        return self._once(("driver", target), lambda: zig.driver(target))

    def library(self, machine: str) -> Path:
        return self._once(("library", machine), lambda: zig.library(machine))

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
        self.kind, self.shop = KNOWN[name], shop
        self.machine = self.kind.targets[0].partition("-")[0]
        # What a program is started through, and what it says where it starts another one.
        self.start = [] if self.machine == platform.machine() else [_emulated(self.machine)]
        self.folder = shop.folder / name.replace(" ", "-").replace("(", "").replace(")", "")
        self.root = _unpacked(self.kind) if self.kind.suites else _emulator(self.kind.package)
        # In lib/x86_64-linux-gnu first: what is in lib64 may be a link to a loader of the machine's own.
        found = [sorted(self.root.rglob(name)) for name in (self.kind.loader, "libc.so*")]
        self.loader = next(path for path in found[0] if self.kind.triple in str(path) or not self.kind.suites)
        self.libraries = next(path.parent for path in found[1] if path.parent.name == self.kind.triple)

    @property
    def version(self) -> str:
        """As glibc says it itself; empty for another C library."""
        libc = self.libraries / "libc.so.6"
        said = libc.exists() and re.search(rb"stable release version ([0-9.]+[0-9])", libc.read_bytes())
        return said[1].decode() if said else ""

    @property
    def library(self) -> Path:
        """The one file for all environments of a processor."""
        return self.shop.library(self.machine)

    def variables(self, target: str, driver: bool = True) -> dict[str, str]:
        folders = [*([self.shop.driver(target).parent] if driver else []), self.libraries]
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
        return self.shop.program(
            target, name, source, ["-shared", "-fPIC", f"-Wl,-soname,{Path(name).name}", *flags], link
        )

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


def _emulator(package: str) -> Path:
    """From the package index, by its hash."""
    folder = needs.DOWNLOADS / "package-index"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wheel = folder / f"{package.replace('==', '-')}-py2.py3-none-any.whl"
        if not wheel.exists():
            words = ["pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--only-binary=:all:", package]
            words += ["--dest", str(folder)]
            done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
            if done.returncode or not wheel.exists():
                pytest.skip(
                    f"needs {package} of the package index: {(done.stderr.splitlines() or ['no such file'])[-1]}"
                )
        assert hashlib.sha256(wheel.read_bytes()).hexdigest() == EMULATOR
        with zipfile.ZipFile(wheel) as archive:
            inside = [name for name in archive.namelist() if "/linux-x86-64/lib" in name and "i386" not in name]
            archive.extractall(folder / package, inside)
    for loader in (folder / package).rglob("ld-linux*"):
        loader.chmod(0o755)
    return folder / package


def _emulated(machine: str) -> str:
    if machine != "aarch64":
        pytest.skip(f"programs for {machine} are not run here")
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


# pair(program, words, policy): what a program left behind with the library, and without.
Pair = Callable[..., "tuple[Done, Done]"]

OF_A_PROCESS = ("forked", "ended", "launches", "shaped", "communication", "raised", "refused", "graph_launches")


def counts(done: Done) -> tuple[Any, ...]:
    """What the report says that is equal wherever it ran."""
    processes = done.report["processes"]
    return done.totals, sorted([process[name] for name in OF_A_PROCESS] for process in processes)
