"""Images with another C library than the host's: an older glibc, and musl."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import debian
import images
import musl
import pytest
import zig
from containers import Engine, launches
from interposing import PROGRAMS
from test_engines import inside, no_variables

from pyshim.start.program import inspect

# Of Debian 11: glibc 2.31, a shell, and what task-prolog starts.
BULLSEYE = ("libc6", "dash", "coreutils", "libselinux1", "libpcre2-8-0", "libacl1", "libattr1", "libgmp10", "libgcc-s1")


@pytest.fixture(scope="session")
def old(engines: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of Debian 11. Driver and program are built for glibc 2.17, as no program of ours for the host would
    start there; the library is that of the site."""
    try:
        unpacked = debian.fetch("bullseye", BULLSEYE)
    except debian.Missing as missing:
        pytest.skip(f"needs packages of Debian 11: {missing}")
    folder = images.bare(tmp_path_factory.mktemp("old"))
    for place in ("bin", "lib", "lib64", "usr"):
        shutil.copytree(unpacked / place, folder / place, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
    target = f"{os.uname().machine}-linux-gnu.{zig.OLDEST}"
    (folder / "driver").mkdir(exist_ok=True)
    shutil.copy(zig.driver(target), folder / "driver")
    zig.build(target, folder / "bin/client", [PROGRAMS / "client.c"], "-DWAY_DLSYM")
    return folder


def test_an_image_with_an_older_glibc(engine: Engine, old: Path, report: Path) -> None:
    done = replace(engine, image=old)(report=report)
    assert (done.status, done.stderr, launches(report)) == (0, "", [3])
    done = replace(engine, image=old)(inside(engine), report=report, change=no_variables)
    assert (done.status, done.stderr, launches(report)) == (0, "", [3, 3])


def test_an_image_with_musl_alone(engine: Engine, report: Path, tmp_path: Path) -> None:
    """No shell, no glibc; the library is loaded all the same."""
    folder = images.bare(tmp_path / "musl")
    try:
        program = musl.build(PROGRAMS / "musl.c", folder / "bin/client", folder)
    except debian.Missing as missing:
        pytest.skip(f"needs musl: {missing}")
    loader = inspect(str(program)).interpreter
    own = replace(engine, image=folder)
    without = own("client", change=no_variables, report=report)
    assert (without.status, without.stdout.splitlines()[0]) == (7, "strlen 1"), without.stderr
    done = own("client", report=report)
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, "")
    assert f"{engine.site}/lib/liboverlap.so" in own(f"{loader} --list /bin/client").stdout
    missing = own("client", mounted=False)
    assert (missing.status, missing.stdout, missing.stderr) == (without.status, without.stdout, "")
