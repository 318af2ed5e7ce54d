"""What `make test` leaves to `make test-all`, and why.

`make test` needs no package of the system, no download and no root. A test that does has a row in NEEDS, which names a
folder or a file below tests, a test (`FILE::FUNCTION`), one value of its parameters (`FILE[VALUE]`) or a fixture
(`fixture NAME`: every test that uses it). A test that fetches packages and has no row fails in `make test`.

`make test` takes minutes on two cores, because a test function gets BUDGET seconds there: of one with more cases as
many as fit, and of one whose single case takes twice that, none. SECONDS holds what functions take, as measured.

    python tests/rest.py               what `make test-all` downloads and installs
    python tests/rest.py REPORT.xml    write SECONDS, from `pytest --part all --junitxml REPORT.xml`
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import xml.etree.ElementTree
import zlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent
# Everything that test runs keep: compiled programs, downloads, temporary files. `make clean` removes it.
KEPT = TESTS.parent / ".tests"
DOWNLOADS = KEPT / "downloads"
SECONDS = TESTS / "seconds.json"  # by function: of the median case, and how many cases there were
BUDGET = 0.6


class Need(NamedTuple):
    what: str
    downloads: int = 0  # MB, into DOWNLOADS
    installs: str = ""  # packages of the system


CONTAINERS = Need("container engines", 15, "bubblewrap charliecloud-runtime libslurm-dev")
SLURM = Need("a Slurm cluster", 0, "slurm-wlm munge openmpi-bin")
MPI = Need("Open MPI", 0, "openmpi-bin libopenmpi-dev")
PYTORCH = Need("PyTorch for CPUs, accelerate, DeepSpeed", 350)
LIBCS = Need("other C libraries and processors", 90, "libcap2-bin")
REGISTER = Need("ROCm's register of profilers", 5)
MODULES = Need("Lmod and Environment Modules", 1, "lua5.3 lua-posix lua-filesystem lua-term lua-json tcl")
BROWSER = Need("a browser", 0, "chromium")
PRELOADS = Need("libraries that others preload", 5)
COMMANDS = Need("commands that not every machine has", 0, "sudo ninja-build busybox libc6-i386 strace")
VALGRIND = Need("valgrind", 0, "valgrind libc6-dbg")
WHEELS = Need("wheels, which are built")
CLIENTS = Need("numba-cuda, Triton and cuda-bindings, into .venv")
DOCS = Need("the site of docs/, which is built")
CROSS = Need("the library for glibc 2.17 on both processors, which is compiled")

NEEDS = {
    "containers": CONTAINERS,
    "fixture start_cluster": SLURM,
    "fixture slurm": SLURM,
    "fixture mpirun": SLURM,
    "fixture mpi": MPI,
    "fixture torch": PYTORCH,
    "libcs": LIBCS,
    "structure/test_aarch64_unbound.py": LIBCS,
    "interpose/hip/test_hip_register.py": REGISTER,
    "modulefiles": MODULES,
    "slurm/test_readers.py[lmod]": MODULES,
    "slurm/test_readers.py[tcl]": MODULES,
    "fixture browser": BROWSER,
    "fixture openmp": PRELOADS,
    "interpose/test_real_preloads.py[jemalloc]": PRELOADS,
    "interpose/test_real_preloads.py[tcmalloc]": PRELOADS,
    "interpose/test_real_preloads.py[libfaketime]": PRELOADS,
    "interpose/test_real_preloads.py[libfaketime, stopped]": PRELOADS,
    "interpose/test_real_preloads.py[libeatmydata]": PRELOADS,
    "interpose/test_real_preloads.py::test_sixteen_threads_beside_an_allocator": PRELOADS,
    "launchers/test_here.py::test_sudo": COMMANDS,
    "launchers/test_children.py::test_ninja": COMMANDS,
    "launchers/test_children.py::test_a_32_bit_program_runs_after_one_line_of_the_loader": COMMANDS,
    "slurm/test_script.py[busybox]": COMMANDS,
    "interpose/test_off.py::test_the_kernel_is_asked_for_what_an_empty_library_asks": COMMANDS,
    "interpose/test_off.py::test_set_up_the_kernel_is_asked_two_questions_more": COMMANDS,
    "interpose/test_memcheck.py": VALGRIND,
    "bench/test_step.py": VALGRIND,
    "release": WHEELS,
    "fixture wheel": WHEELS,
    "docs/test_site.py": DOCS,
    "clients/test_clients.py[bindings]": CLIENTS,
    "clients/test_clients.py[numba]": CLIENTS,
    "clients/test_clients.py[triton]": CLIENTS,
    "clients/test_clients.py::test_the_first_compilation_of_triton_dies_in_ptxas": CLIENTS,
    "clients/test_clients.py::test_clients_run_on_other_gpus": CLIENTS,
    "clients/test_triton_amd.py": CLIENTS,
    "doctor/test_driver.py::test_nvidias_numbers_are_those_of_its_header": CLIENTS,
    "launchers/test_children.py::test_ptxas": CLIENTS,
    "fixture cross": CROSS,
}


def allow(*packages: str) -> None:
    """Fail a test of `make test` that needs packages, also where they happen to be there."""
    if os.environ.get("OVERLAP_TEST_PART") == "quick":
        raise AssertionError(f"a test of `make test` asked for {', '.join(packages)}: give it a row in {__file__}")


def need(path: Path, function: str, fixtures: Iterable[str], values: Iterable[str]) -> Need | None:
    """Return what a case of a test needs that `make test` does not have, or None."""
    file = _name(path)
    keys = [*_names(path), f"{file}::{function}", *(f"fixture {one}" for one in fixtures)]
    keys += [f"{file}[{value}]" for value in values]
    return next((NEEDS[key] for key in keys if key in NEEDS), None)


def wholly(path: Path) -> bool:
    """Return whether nothing of a folder or file is for `make test`."""
    return any(name in NEEDS for name in _names(path))


def within_budget(path: Path, function: str, cases: Iterable[str]) -> set[str]:
    """Return the cases of a function that `make test` runs: the same each time, and from all over its parameters."""
    named = sorted(cases, key=lambda case: zlib.crc32(case.encode()))
    seconds = _seconds().get(f"{_name(path)}::{function}", (0.0, 0))[0]
    if seconds * len(named) <= BUDGET:
        return set(named)
    return set(named[: max(1, int(BUDGET / seconds))]) if seconds <= 2 * BUDGET else set()


def seconds_of(path: Path) -> float:
    """Return what a file takes, all cases of it, as far as they matter."""
    return sum(one * cases for name, (one, cases) in _seconds().items() if name.startswith(f"{_name(path)}::"))


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if TESTS in path.parents else path.name


@cache
def _names(path: Path) -> list[str]:
    return [_name(one) for one in (path, *path.parents) if TESTS in one.parents]


@cache
def _seconds() -> dict[str, tuple[float, int]]:
    found: dict[str, tuple[float, int]] = json.loads(SECONDS.read_text(encoding="utf-8"))
    return found


def measured(report: Path) -> dict[str, tuple[float, int]]:
    """Read a report of pytest's. The median, because the first case also pays for what the others share."""
    found = defaultdict(list)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        file = f"{str(case.get('classname')).partition('.')[2].replace('.', '/')}.py"
        function = str(case.get("name")).partition("[")[0]
        found[f"{file}::{function}"].append(float(case.get("time", 0)))
    medians = {name: (round(statistics.median(times), 3), len(times)) for name, times in sorted(found.items())}
    return {name: row for name, row in medians.items() if row[0] * row[1] >= BUDGET}


def main() -> None:
    if sys.argv[1:]:
        rows = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in measured(Path(sys.argv[1])).items())
        SECONDS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
        return
    needs = sorted(set(NEEDS.values()))
    print(f"test-all: downloads once, into {DOWNLOADS} (make clean removes it), from the machine's package sources:")
    for one in needs:
        if one.downloads:
            print(f"  {one.downloads:4} MB  {one.what}")
    packages = " ".join(sorted({name for one in needs for name in one.installs.split()}))
    if os.environ.get("SYSTEM") == "1":
        print(f"test-all: installs, where missing, packages of the system (as root, by apt-get):\n  {packages}")
    else:
        print(
            "test-all: installs nothing. Tests whose packages are missing are skipped: make test-all SYSTEM=1, or\n"
            f"  apt-get install {packages}"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
