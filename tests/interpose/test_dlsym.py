"""dlsym behaves as if nobody stood in front of it: order of start, other overriders; words/names.txt has the rest."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from interposing import BLOCKS, Build, Runner, glibc, same
from peers import third_party

from pyshim.start import plan

OLD_NODE = {"x86_64": ("GLIBC_2.2.5",), "aarch64": ("GLIBC_2.17",)}.get(platform.machine(), ())
NODES = [
    *OLD_NODE,
    pytest.param(
        "GLIBC_2.34",
        marks=pytest.mark.skipif(glibc() < (2, 34), reason="needs glibc 2.34, the first with this version of dlsym"),
    ),
]
WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"


@pytest.fixture
def cases(build: Build) -> str:
    return str(build("dlsym-cases", "dlsym_cases.c"))


@pytest.mark.parametrize("node", NODES)
def test_a_program_that_asks_for_dlsym_by_its_version_gets_one_that_works(
    node: str, cases: str, bare: Runner, preloaded: Runner
) -> None:
    same(preloaded(["real", node], program=cases), bare(["real", node], program=cases))


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("order", ["{other}:{{}}", "{{}}:{other}"])
def test_beside_another_overrider_launches_are_seen(
    node: str, order: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Before us it finds us, by the version node; after us we find it."""
    other = build.library(f"liboverrider-{node}.so", "overrider.c", f'-DNODE="{node}"', "-fno-builtin")
    env = {"OVERRIDER_SAYS": "1"}
    without = bare(WORDS, "dlsym", env={**env, "LD_PRELOAD": str(other)})
    assert "overrider was asked" in without.stdout
    done = preloaded(WORDS, way="dlsym", env=env, preload=order.format(other=other))
    same(done, without)
    assert done.totals["launches"] == 3


@pytest.mark.parametrize("count", [0, 16])
@pytest.mark.parametrize("way", ["DLSYM", "PROC2"])
def test_launches_from_a_constructor_before_ours_are_seen(
    count: int, way: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """A library that the program needs starts before preloaded ones; with 16 threads that race there."""
    library = build.library(
        f"libearly-{way}-{count}.so", "early.c", "-DLIBRARY", f"-DWAY_{way}", f"-DCOUNT={count}", "-DQUIET"
    )
    program = build(f"early-{way}-{count}", "early_main.c", link=[library])
    without = bare(program=program)
    assert f"launched early: {count or 1}\n" in without.stdout
    done = preloaded(program=program)
    same(done, without)
    assert done.totals["launches"] == (count or 1)


@pytest.mark.plain("no sanitizer has started by then", sanitized=True)
@pytest.mark.parametrize("way", ["DLSYM", "LINKED"])
def test_launches_from_preinit_are_made_but_not_counted(
    way: str, build: Build, bare: Runner, preloaded: Runner, simulated: dict[str, str]
) -> None:
    link = [f"{simulated['LD_LIBRARY_PATH'].split(':')[0]}/libcuda.so.1"] if way == "LINKED" else []
    program = build(f"preinit-{way}", "early.c", "-DPREINIT", f"-DWAY_{way}", "-DCOUNT=0", link=link)
    without = bare(program=program)
    if without.status < 0 and glibc() < (2, 34):
        pytest.skip("needs glibc 2.34: before, libpthread is not ready yet, and the simulated driver cannot start")
    assert "launched early: 1\n" in without.stdout
    done = preloaded(program=program)
    same(done, without)
    # There is no environment yet, so they cannot be counted; but it is not kept quiet that there was a GPU. A program
    # that calls dlopen there loses its environment for good (glibc), and our settings with it.
    assert [process["opened_gpu"] for process in done.report["processes"]] == ([True] if way == "LINKED" else [])


# ---- What users of other libraries that override dlsym saw ----


@pytest.fixture
def openmp(build: Build) -> tuple[Path, dict[str, str]]:
    """A program of LLVM's OpenMP, and where its library is."""
    library = third_party("libomp5-14", "libomp.so.5")
    return build("openmp", "openmp.c", link=[library]), {"LD_LIBRARY_PATH": str(library.parent)}


@pytest.mark.parametrize("switch", [{}, {"OVERLAP_RUN": "off"}], ids=["on", "off"])
def test_import_torch_spins_forever_in_ompt_start_tool(
    switch: dict[str, str], openmp: tuple[Path, dict[str, str]], bare: Runner, preloaded: Runner
) -> None:
    program, env = openmp
    without = bare(program=program, env=env)
    assert without.stdout == "threads 4, entered 16\n"
    same(preloaded(program=program, env={**env, **switch}, timeout=300), without)


def test_on_a_newer_glibc_dl_sym_is_undefined(simulated: Mapping[str, str]) -> None:
    """Nothing that is only glibc's own is asked for, and every symbol is there when all are bound at the start."""
    data = Path(plan.LIBRARY).read_bytes()
    assert b"dlsym\0" in data
    for private in (b"GLIBC_PRIVATE", b"_dl_sym\0", b"_dl_vsym\0", b"__libc_dlsym\0", b"__libc_dlopen_mode\0"):
        assert private not in data
    env = {**simulated, "LD_PRELOAD": plan.LIBRARY, "LD_BIND_NOW": "1"}
    done = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
