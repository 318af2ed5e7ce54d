"""What users of other libraries that override dlsym saw, by what they saw; test_dlsym.py has the rest of dlsym."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from interposing import Build, Runner, same
from peers import third_party

from pyshim.start import plan


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


@pytest.mark.parametrize("name", ["strlen", "dlopen", "cuLaunchKernel", "cuNobodyHasThis"])
def test_the_second_search_for_the_next_definition_answers_null(
    name: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    program = build("dlsym-cases-linked", "dlsym_cases.c", link=["-Wl,--no-as-needed", plan.SIMULATED_DRIVER])
    without = bare(["next", name], program=program)
    assert without.stdout == ("next 8, 8 of 8 alike\n" if name != "cuNobodyHasThis" else "next 0, 8 of 8 alike\n")
    same(preloaded(["next", name], program=program), without)


@pytest.mark.parametrize("switch", [{}, {"OVERLAP_RUN": "off"}], ids=["on", "off"])
def test_the_first_convolution_crashes_in_cudnn_create(
    switch: dict[str, str], build: Build, bare: Runner, preloaded: Runner
) -> None:
    inner = build.library("libcudnn_graph.so.9", "dlsym_base.c", "-DVALUE=9")
    doorway = build.library("libcudnn.so.9", "cudnn.c", f'-DINNER="{inner}"')
    program = build("dlsym-cases", "dlsym_cases.c")
    words = ["handle", str(doorway), "handle", str(inner), "handle", str(doorway)]
    without = bare(words, program=program)
    assert [line for line in without.stdout.splitlines() if line.startswith("handle")] == [
        "handle 1009 -1",
        "handle 9 9",
        "handle 1009 -1",
    ]
    same(preloaded(words, program=program, env=switch), without)


def test_on_a_newer_glibc_dl_sym_is_undefined(simulated: Mapping[str, str]) -> None:
    """Nothing that is only glibc's own is asked for, and every symbol is there when all are bound at the start."""
    data = Path(plan.LIBRARY).read_bytes()
    assert b"dlsym\0" in data
    for private in (b"GLIBC_PRIVATE", b"_dl_sym\0", b"_dl_vsym\0", b"__libc_dlsym\0", b"__libc_dlopen_mode\0"):
        assert private not in data
    env = {**simulated, "LD_PRELOAD": plan.LIBRARY, "LD_BIND_NOW": "1"}
    done = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
