"""Programs of other libraries' users that did not start any more, by what they saw."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, Build, Runner

from pyshim.start import plan
from tools.checks import check_exports

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.plain("a sanitizer is preloaded, too", sanitized=True)
def test_every_process_ends_with_127_for_want_of_a_cuda_runtime(simulated: Mapping[str, str]) -> None:
    """The C library alone is needed, so a machine without CUDA runs everything, and says nothing."""
    needed = check_exports.read(Path(plan.LIBRARY).read_bytes()).needed
    assert needed == ["libc.so.6"]
    env = {"PATH": os.environ["PATH"], "LD_PRELOAD": plan.LIBRARY}
    shell = "true; sh -c 'sh -c true' && echo | cat >/dev/null; /nonexistent 2>/dev/null; echo $?"
    done = subprocess.run(["sh", "-c", shell], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "127\n", "")


@pytest.mark.parametrize("separator", [":", " "])
@pytest.mark.plain("a sanitizer is preloaded, too", sanitized=True)
def test_what_was_in_ld_preload_already_is_lost(separator: str, build: Build, overlap_run: Run) -> None:
    """Two libraries of somebody else's, both loaded, in their order, behind ours."""
    others = [str(build.library(f"libother{n}.so", "dlsym_base.c", f"-DVALUE={n}")) for n in (1, 2)]
    env = {"LD_PRELOAD": separator.join(others)}
    maps = overlap_run("--simulate", "h100", "--quiet", "cat", "/proc/self/maps", env=env)
    order = list(dict.fromkeys(line.split()[-1] for line in maps.stdout.splitlines() if ".so" in line))
    assert maps.returncode == 0
    assert set(others) <= set(order)
    assert any(os.path.samefile(path, plan.LIBRARY) for path in order if path.endswith("/liboverlap.so"))
    seen = overlap_run("--simulate", "h100", "--quiet", "printenv", "LD_PRELOAD", env=env)
    assert seen.stdout == ":".join([plan.LIBRARY, *others]) + "\n"


def test_a_library_that_is_not_mounted_is_an_error_line_of_every_process(
    build: Build, bare: Runner, tmp_path: Path
) -> None:
    """What the loader of glibc does, and overlap-run cannot see from outside a container: a line each, and no harm."""
    words = f"ptx=k launch=k,{BLOCKS},256,0"
    done = bare(words, env={"LD_PRELOAD": str(tmp_path / "liboverlap.so")})
    assert (done.status, done.stdout) == (0, bare(words).stdout)
    assert done.stderr.count("liboverlap.so") == 1
    assert "cannot be preloaded" in done.stderr or "No such file" in done.stderr


# Root may read everything, unless this is taken from it.
MAY_NOT_READ = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize(("state", "words"), [("missing", "is missing"), ("unreadable", "cannot be read by this user")])
@pytest.mark.plain("a sanitizer is preloaded, too", sanitized=True)
def test_overlap_run_says_once_that_the_library_is_not_to_be_had(
    state: str, words: str, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Before it becomes the program, which then runs without the library, and all of its processes in silence."""
    package, here = tmp_path / "node" / "pyshim", Path(plan.__file__).parents[1]
    shutil.copytree(here, package, ignore=shutil.ignore_patterns("liboverlap.so", "simgpu", "__pycache__"))
    shutil.copytree(here.parent / "policies", package.parent / "policies")
    library = package / "_lib" / "liboverlap.so"
    if state == "unreadable":
        shutil.copy(plan.LIBRARY, library)
        library.chmod(0)
    if MAY_NOT_READ and not shutil.which(MAY_NOT_READ[0]):
        pytest.skip("root needs setpriv, of Debian's util-linux")
    start = [*MAY_NOT_READ, sys.executable, "-m", "pyshim.cli.run", "--policy", "observe"]
    env = {**clean_environment, "PYTHONPATH": ""}
    more: dict[str, Any] = {"cwd": package.parent, "env": env, "capture_output": True, "text": True, "timeout": 30}
    done = subprocess.run([*start, "sh", "-c", "echo ${LD_PRELOAD-none}; cat /dev/null; sh -c true"], **more)
    assert (done.returncode, done.stdout) == (0, "none\n")
    assert done.stderr.count("liboverlap.so") == 1 and f"the library {library} {words}" in done.stderr
    assert subprocess.run([*start, "--strict", "true"], **more).returncode == 125
