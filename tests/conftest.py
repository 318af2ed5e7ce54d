"""What every test may use: the commands as real processes, in an environment that nothing outside has touched."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parent.parent
_FOREIGN = ("OVERLAP_", "SLURM_", "OMPI_", "PMI", "SIMGPU", "LD_", "TRITON_", "NCCL_")
# Where the library is built with a sanitizer (tools/instrumented.py): the runtime, to be preloaded before all else.
RUNTIME = os.environ.get("OVERLAP_TEST_PRELOAD", "")
_ALSO = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
# Each collects all tests and makes what sessions share for itself: more would cost more than they bring.
_MOST_WORKERS = 8

Run = Callable[..., "subprocess.CompletedProcess[str]"]


# zig has no static glibc; to a test, a static program is static whichever C library is in it.
_ZIG_CC = """#!/bin/sh
for word; do
    case $word in -static | -static-pie) set -- "$@" -target {machine}-linux-musl; break ;; esac
done
exec {zig} "$@"
"""


if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell's background job ignores it, and so would every program that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Tests compile with $CC or cc. Where neither works, both become what the package is built with."""
    if RUNTIME and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        os.environ.pop("LD_PRELOAD", None)  # this process has it; compilers need it not, and workers inherit it
    spec = importlib.util.spec_from_file_location("shim_build", ROOT / "shim" / "build.py")
    assert spec and spec.loader
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    found = build.system_compiler()
    if os.environ.get("CC") or found == [shutil.which("cc")]:
        return
    script = f'#!/bin/sh\nexec {shlex.join(found or [])} "$@"\n'
    if not found:
        machine, version = build.machine(), platform.libc_ver()[1]
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{version}"]
        script = _ZIG_CC.format(machine=machine, zig=shlex.join([*zig, "-fno-sanitize=undefined"]))
    folder = Path(tempfile.mkdtemp(prefix="overlap-cc-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    (folder / "cc").write_text(script, encoding="utf-8")
    (folder / "cc").chmod(0o755)
    os.environ["PATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PATH"))))
    os.environ["CC"] = str(folder / "cc")  # so that nobody asks whether it works, with an output that zig replaces


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`--numprocesses auto`, as `make test` says it: a process on each core that we may use; none where a person wants
    the terminal, which only this process has."""
    option = config.option
    if option.capture == "no" or option.usepdb or option.trace:
        return 0
    return min(len(os.sched_getaffinity(0)), _MOST_WORKERS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several processes begin with the files that take long, so that none of them is alone at the end. Hazards are
    written into what --junitxml keeps, from which tools/hazards.py makes its table."""
    for item in items:
        for mark in item.iter_markers("hazard"):
            item.user_properties.append(("hazard", json.dumps([*mark.args, mark.kwargs.get("source")])))
            given = getattr(item, "callspec", None)
            item.user_properties.append(("environment", given.params.get("environment", "") if given else ""))
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def clean_environment() -> dict[str, str]:
    """Ours, without what a launcher, another test or an outer overlap-run has set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN) and name not in _ALSO}
    first = {"LD_PRELOAD": RUNTIME} if RUNTIME else {}
    # What `overlap probe` once found on this machine is nobody's business here.
    return {**kept, **first, "COLUMNS": "80", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": "/nonexistent"}


@pytest.fixture(scope="session")
def overlap_run(clean_environment: dict[str, str]) -> Run:
    return _runner("pyshim.cli.run", clean_environment)


@pytest.fixture(scope="session")
def overlap(clean_environment: dict[str, str]) -> Run:
    return _runner("pyshim", clean_environment)


@pytest.fixture(scope="session")
def library() -> Any:
    """The library's functions; the library must have been built (make setup)."""
    return _native.library()


def _runner(module: str, clean: Mapping[str, str]) -> Run:
    def run(*arguments: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        more.setdefault("timeout", 60)
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={**clean, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            **more,
        )

    return run
