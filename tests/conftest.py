"""What every test may use: the commands as real processes, in an environment that nothing outside has touched."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import browser as chromium
import debian
import pytest
from hypothesis import HealthCheck, settings

from pyshim import _native
from pyshim.cli import main, run
from tests import in_process, needs
from tools.checks import shim_build

ROOT = Path(__file__).resolve().parent.parent

# Before any test imports these: their asserts say values.
pytest.register_assert_rewrite("interposing", "words", "iterating", "null_driver", "hip_interposing")
# Programs in front of the simulated driver, with and without the library: tests/programs.
from interposing import bare, build, preloaded, simulated, table_of  # noqa: E402
from iterating import iterations  # noqa: E402
from null_driver import under  # noqa: E402

__all__ = ["bare", "build", "iterations", "preloaded", "simulated", "table_of", "under"]
# A loaded machine is no failure.
settings.register_profile(
    "tests", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("tests")

_FOREIGN = ("OVERLAP_", "SLURM_", "OMPI_", "PMI", "SIMGPU", "LD_", "TRITON_", "NCCL_")
# The runtime of a library built with a sanitizer (tools/checks/sanitizer.py): preloaded before all else.
RUNTIME = os.environ.get("OVERLAP_TEST_PRELOAD", "")
# The interpreter, the loader and the C library read these when a process starts.
_READ_AT_THE_START = ("PYTHON", "LANG", "LC_", "LD_PRELOAD")
_ALSO = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "RANK", "WORLD_SIZE", "LOCAL_RANK")
# Each collects all tests and makes what sessions share for itself: more would cost more than they bring.
_MOST_WORKERS = 8

Run = Callable[..., "subprocess.CompletedProcess[str]"]


# A program that is preloaded may be a compiler, which then is a test's object itself.
_CC = """#!/bin/sh
[ -z "$LD_PRELOAD" ] || exec {compiler} "$@"
exec {once} "$@"
"""

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
    """Keep everything that tests and their programs write inside the tree, and compile each program once."""
    sys.dont_write_bytecode = False  # else every process rewrites the asserts of all tests anew
    worker = hasattr(config, "workerinput")
    if RUNTIME and (worker or not config.getoption("numprocesses", None)):
        os.environ.pop("LD_PRELOAD", None)  # this process has it; compilers need it not, and workers inherit it
    if worker:
        return  # the environment is that of the first process
    os.environ["OVERLAP_TESTS"] = config.option.markexpr
    _keep_in_the_tree(config)
    os.environ["CC"] = _compiler(Path(os.environ["TMPDIR"]))


def _keep_in_the_tree(config: pytest.Config) -> None:
    """Temporary files, caches and the home folder go into one folder, which is removed at the end."""
    needs.KEPT.mkdir(parents=True, exist_ok=True)
    for old in needs.KEPT.glob("run-*"):
        if time.time() - old.stat().st_mtime > 86400:  # of a run that was killed
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=needs.KEPT))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    home = folder / "home"
    home.mkdir()
    os.environ.update(TMPDIR=str(folder), HOME=str(home), XDG_CACHE_HOME=str(home / ".cache"))
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(needs.KEPT / "zig"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # thousands of our commands are started: each would compile itself
    tempfile.tempdir = None  # asked for again


def _compiler(folder: Path) -> str:
    """Return what compiles each program once (compile_once.py), by $CC, cc or the package's own; in PATH it is `cc`."""
    build = shim_build.load()
    found = build.system_compiler()
    if not found:
        machine, version = build.machine(), platform.libc_ver()[1]
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{version}"]
        (folder / "zig").write_text(
            _ZIG_CC.format(machine=machine, zig=shlex.join([*zig, "-fno-sanitize=undefined"])), encoding="utf-8"
        )
        (folder / "zig").chmod(0o755)
        found = [str(folder / "zig")]
    found = [shutil.which(found[0]) or found[0], *found[1:]]  # compile_once.py looks at the file
    cache, commands = needs.KEPT / "compiled", folder / "commands"
    cache.mkdir(exist_ok=True)
    commands.mkdir()
    once = [sys.executable, "-I", "-S", str(ROOT / "tests" / "compile_once.py"), str(cache), *found, "--"]
    script = _CC.format(compiler=shlex.join(found), once=shlex.join(once))
    (commands / "cc").write_text(script, encoding="utf-8")
    (commands / "cc").chmod(0o755)
    os.environ["PATH"] = os.pathsep.join(filter(None, (str(commands), os.environ.get("PATH"))))
    return str(commands / "cc")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`--numprocesses auto`, as `make test` says it: a process on each core that we may use; none where a person wants
    the terminal, which only this process has."""
    option = config.option
    if option.capture == "no" or option.usepdb or option.trace:
        return 0
    return min(len(os.sched_getaffinity(0)), _MOST_WORKERS)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need what needs.py lists are slow. Several processes begin with the files of many and of slow cases,
    so that none of them is alone at the end."""
    weights: Counter[Path] = Counter()
    for item in items:
        given = getattr(item, "callspec", None)
        fixtures, values = getattr(item, "fixturenames", ()), given._idlist if given else ()
        if needs.needed(item.path, getattr(item, "originalname", item.name), fixtures, values):
            item.add_marker(pytest.mark.slow)
        weights[item.path] += 20 if item.get_closest_marker("slow") else 1
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (-weights[item.path], item.path))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` does not read files of which it runs nothing: they may import what only test-all installs."""
    return True if config.option.markexpr == needs.QUICK and needs.wholly(collection_path) else None


@pytest.fixture(scope="session")
def clean_environment() -> dict[str, str]:
    """Ours, without what a launcher, another test or an outer overlap-run has set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN) and name not in _ALSO}
    first = {"LD_PRELOAD": RUNTIME} if RUNTIME else {}
    return {**kept, **first, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def overlap_run(clean_environment: dict[str, str]) -> Run:
    """The command in a fork of this process (in_process.py), or in an interpreter of its own, as a test needs it."""
    process = _runner(("-m", "pyshim.cli.run"), clean_environment)

    def start(*arguments: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        if _of_a_process(env) or "preexec_fn" in more:
            return process(*arguments, env=env, **more)
        return in_process.forked(run.main, arguments, {**clean_environment, **(env or {})}, **more)

    return start


@pytest.fixture(scope="session")
def overlap(clean_environment: dict[str, str]) -> Run:
    """The command in this process or a fork of it (in_process.py), or in an interpreter of its own, as a test needs it.

    On a busy machine anything may take the two seconds after which progress is said."""
    environment = {**clean_environment, "OVERLAP_PROGRESS": "off"}
    process = _runner(("-m", "pyshim"), environment)

    def run(*arguments: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        if _of_a_process(env) or "preexec_fn" in more:
            return process(*arguments, env=env, **more)
        variables = {**environment, **(env or {})}
        if more.keys() <= {"cwd"}:
            return in_process.overlap(arguments, variables, **more)
        return in_process.forked(main, arguments, variables, **more)

    return run


@pytest.fixture(scope="session")
def python(clean_environment: dict[str, str]) -> Run:
    """Run the interpreter of these tests: python("-m", "tools.docs.write", ..., cwd=folder)."""
    return _runner((), clean_environment)


@pytest.fixture(scope="session")
def built() -> None:
    """Need the library and the simulated driver."""
    for path in (_native.SHIM, _native.SIMULATED_DRIVER):
        if not path.exists():
            pytest.fail(f"{path.name} was not built: make setup")


@pytest.fixture(scope="session")
def library() -> Any:
    """The library's functions; the library must have been built (make setup)."""
    return _native.library()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    try:
        with chromium.browser(tmp_path_factory.mktemp("browser")) as found:
            yield found
    except debian.Missing as missing:
        pytest.skip(f"no browser: {missing}")


def _of_a_process(variables: Iterable[str] | None) -> bool:
    return any(name.startswith(_READ_AT_THE_START) for name in variables or ())


def _runner(words: tuple[str, ...], clean: Mapping[str, str]) -> Run:
    def run(*arguments: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        more.setdefault("timeout", 300)
        return subprocess.run(
            [sys.executable, *words, *arguments],
            env={**clean, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            **more,
        )

    return run
