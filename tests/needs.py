"""What tests need that this tree does not have: such tests are slow, so `make test` leaves them to `make test-all`.

A row of NEEDS names a folder or a file below tests, a test (`FILE::FUNCTION`), one value of its parameters
(`FILE[VALUE]`) or a fixture (`fixture NAME`: every test that uses it). A test that fetches packages and has no row
fails in `make test`. Other slow tests are marked `@pytest.mark.slow`.

    python tests/needs.py      what `make test-all` downloads and installs
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent
# Everything that test runs keep: compiled programs, downloads, temporary files. `make clean` removes it.
KEPT = TESTS.parent / ".tests"
DOWNLOADS = KEPT / "downloads"
QUICK = "not slow"  # pytest -m: make test


class Need(NamedTuple):
    what: str
    downloads: int = 0  # MB, into DOWNLOADS
    installs: str = ""  # packages of the system


CONTAINERS = Need("container engines", 15, "bubblewrap charliecloud-runtime libslurm-dev")
SLURM = Need("a Slurm cluster", 0, "slurm-wlm munge openmpi-bin")
MPI = Need("Open MPI", 0, "openmpi-bin libopenmpi-dev")
MPICH = Need("MPICH", 14)
PYTORCH = Need("PyTorch for CPUs, accelerate, DeepSpeed", 350)
LIBCS = Need("other C libraries and processors", 90, "libcap2-bin")
REGISTER = Need("ROCm's register of profilers", 5)
MODULES = Need("Lmod and Environment Modules", 1, "lua5.3 lua-posix lua-filesystem lua-term lua-json tcl")
BROWSER = Need("a browser", 0, "chromium")
PRELOADS = Need("libraries that others preload", 6)
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
    "fixture mpich": MPICH,
    "fixture torch": PYTORCH,
    "launchers/test_deepspeed.py": PYTORCH,
    "report/test_job.py::test_torchrun_is_the_ranks_and_not_their_agent": PYTORCH,
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
    "interpose/test_profilers.py::test_under_gperftools": PRELOADS,
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
    "doctor/test_driver.py::test_nvidias_numbers_are_those_of_its_header": CLIENTS,
    "launchers/test_children.py::test_ptxas": CLIENTS,
    "fixture cross": CROSS,
}


def allow(*packages: str) -> None:
    """Fail a test of `make test` that needs packages, also where they happen to be there."""
    if os.environ.get("OVERLAP_TESTS") == QUICK:
        raise AssertionError(f"a test of `make test` asked for {', '.join(packages)}: give it a row in {__file__}")


def needed(path: Path, function: str, fixtures: Iterable[str], values: Iterable[str]) -> bool:
    """Return whether a case of a test needs what `make test` does not have."""
    file = _name(path)
    keys = [*_names(path), f"{file}::{function}", *(f"fixture {one}" for one in fixtures)]
    return any(key in NEEDS for key in (*keys, *(f"{file}[{value}]" for value in values)))


def wholly(path: Path) -> bool:
    """Return whether every test of a folder or file needs that."""
    return any(name in NEEDS for name in _names(path))


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if TESTS in path.parents else path.name


@cache
def _names(path: Path) -> list[str]:
    return [_name(one) for one in (path, *path.parents) if TESTS in one.parents]


def main() -> None:
    needs = sorted(set(NEEDS.values()))
    print(f"test-all: downloads once, into {DOWNLOADS} (make clean removes it), from the machine's package sources:")
    for one in needs:
        if one.downloads:
            print(f"  {one.downloads:4} MB  {one.what}")
    print("test-all: installs once, into .venv, on the disk 1.7 GB of clients and 0.5 GB of lint, release and docs")
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
