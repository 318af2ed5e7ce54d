"""NCCL and RCCL: which files, which version, what a block takes, and what variables and files change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

import pytest
from doctoring import Compile, Lines, Look, states

Nccl = Callable[..., Path]


@pytest.fixture
def nccl(compiled: Compile, tmp_path: Path) -> Nccl:
    """A library with such a text among its constants, at a place below the root."""

    def made(place: str, text: str = "", more: str = "") -> Path:
        source = f'const char *text(void) {{ return "{text}"; }} {more}'
        flags = ("-shared", "-fPIC", f"-Wl,-soname,{os.path.basename(place)}")
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compiled(path.name, source, *flags).read_bytes())
        return path

    return made


NEW = "NCCL version 2.28.9 compiled with CUDA 13.0"


def test_none_is_told(look: Look) -> None:
    assert look("nccl") == [("ok", "no NCCL or RCCL is found here; a program may bring its own", "")]


@pytest.mark.parametrize(
    ("place", "environment", "packages"),
    [
        ("site/nvidia/nccl/lib/libnccl.so.2", {}, ("site",)),
        ("site/torch/lib/libnccl.so.2", {}, ("site",)),
        ("mine/libnccl.so.2", {"LD_LIBRARY_PATH": "ROOT/mine"}, ()),
        ("mine/libnccl.so.2", {"LD_PRELOAD": "ROOT/mine/libnccl.so.2"}, ()),
        ("mine/libmy.so", {"VLLM_NCCL_SO_PATH": "ROOT/mine/libmy.so"}, ()),
        ("usr/lib64/libnccl.so.2", {}, ()),
    ],
)
def test_places(look: Look, nccl: Nccl, place: str, environment: dict[str, str], packages: tuple[str, ...]) -> None:
    path = nccl(place, NEW)
    assert look("nccl", packages=packages, **environment) == [("ok", f"NCCL 2.28.9 ({path})", "")]


def test_that_of_the_program_comes_first(look: Look, nccl: Nccl, compiled: Compile) -> None:
    own = nccl("own/libnccl.so.2", NEW)
    nccl("mine/libnccl.so.2", "NCCL version 2.21.5+cuda12.4")
    source = "const char *text(void); int main(void) { return text()[0]; }"
    command = [str(compiled("program", source, str(own), "-Wl,--disable-new-dtags", f"-Wl,-rpath,{own.parent}"))]
    ((state, sentence, _),) = look("nccl", machine={"command": command}, LD_LIBRARY_PATH="ROOT/mine")
    assert state == "warn" and sentence.startswith(f"NCCL in several versions: 2.28.9 in {own}; 2.21.5 in ")
    assert look("nccl", machine={"command": command}) == [("ok", f"NCCL 2.28.9 ({own})", "")]


def test_several_versions(look: Look, nccl: Nccl) -> None:
    nccl("site/nvidia/nccl/lib/libnccl.so.2", NEW)
    nccl("mine/libnccl.so.2", "NCCL version 2.21.5+cuda12.4")
    ((state, sentence, hint),) = look("nccl", packages=("site",), LD_LIBRARY_PATH="ROOT/mine")
    assert (
        state == "warn" and sentence.startswith("NCCL in several versions: 2.28.9 in ") and "; 2.21.5 in " in sentence
    )
    assert "all ranks must load the same one" in hint
    nccl("mine/libnccl.so.2", NEW)
    assert states(look("nccl", packages=("site",), LD_LIBRARY_PATH="ROOT/mine")) == ["ok", "ok"]


def test_a_file_that_does_not_say_its_version_is_asked(look: Look, nccl: Nccl) -> None:
    path = nccl("mine/libnccl.so.2", "", "int ncclGetVersion(int *v) { *v = 22705; return 0; }")
    assert look("nccl", LD_LIBRARY_PATH="ROOT/mine") == [("ok", f"NCCL 2.27.5 ({path})", "")]
    path = nccl("mine/libnccl.so.2", "", "int ncclGetVersion(int *v) { for (;;) *v = 1; }")
    lines = look("nccl", LD_LIBRARY_PATH="ROOT/mine", machine={"patience": 0.5})
    assert lines == [("ok", f"NCCL of an unknown version ({path})", "")]


def footprint(look: Look, stub: Callable[..., str], **more: str) -> Lines:
    return look("nccl", LD_LIBRARY_PATH=f"{stub()}:ROOT/mine", **more)


def test_what_a_block_takes_on_the_gpu_that_is_here(look: Look, nccl: Nccl, stub: Callable[..., str]) -> None:
    nccl("mine/libnccl.so.2", NEW)
    lines = footprint(look, stub)
    assert states(lines) == ["ok", "ok"]
    assert lines[1][1].startswith("a block of NCCL 2.28.9 takes 544 threads of 96 registers and 89,344 bytes of ")
    assert "on sm_80; of cuBLASLt 13.10.0.20's GEMM kernels none can have a block beside it" in lines[1][1]
    nccl("mine/libnccl.so.2", "NCCL version 2.29.1+cuda13.0")
    assert "(counted as NCCL 2.28.9, the nearest that is known)" in footprint(look, stub)[1][1]


def test_rccl_on_amd(look: Look, nccl: Nccl) -> None:
    from pyshim.launch import plan, simulate

    text = 'RCCL version 2.27.7 compiled with ROCm \\"7.2.4.0-9999-unknown\\"'
    nccl("opt/rocm/lib/librccl.so.1", text)
    settings = {"SIMGPU": "mi250x:hold,1", "LD_LIBRARY_PATH": ":".join(
        [*(str(Path(path).parent) for path in plan.SIMULATED_RUNTIMES), str(Path(plan.SIMULATED_DRIVER).parent)]
    )}  # fmt: skip
    lines = look("nccl", machine={"simulated": simulate.parse("mi250x")}, **settings)
    assert lines[0][1].startswith("RCCL 2.27.7 (")
    assert "takes 256 threads of" in lines[1][1] and "counted as" not in lines[1][1]
    assert "of rocBLAS 7.2.4's GEMM kernels " in lines[1][1] and "% at most can have a block beside it" in lines[1][1]


@pytest.mark.parametrize(
    ("environment", "expected", "words"),
    [
        ({}, ["ok"], "no variable or file of NCCL"),
        ({"NCCL_DEBUG": "INFO"}, ["ok"], "no variable or file of NCCL"),
        ({"NCCL_ALGO": "Ring", "NCCL_NTHREADS": "256"}, ["ok"], "NCCL_ALGO=Ring, NCCL_NTHREADS=256: changes what"),
        ({"NCCL_NTHREADS": "256"}, ["ok", "warn"], "acts on rings only"),
        ({"NCCL_LAUNCH_ORDER_IMPLICIT": "1"}, ["warn"], "wait for each other in the order"),
        ({"TORCH_NCCL_HIGH_PRIORITY": "1"}, ["ok", "ok"], "no variable or file of NCCL"),
        ({"NCCL_CGA_CLUSTER_SIZE": "0"}, ["ok"], "must be equal on all ranks"),
        *(
            (
                {"NCCL_ALGO": "Ring", "NCCL_NTHREADS": value},
                ["ok", "warn"],
                f"NCCL_NTHREADS={value}: NCCL takes 64 to 512",
            )
            for value in ("999", "32", "100", "544", "many")
        ),
        *(({"NCCL_ALGO": "Ring", "NCCL_NTHREADS": value}, ["ok"], "changes what") for value in ("64", "0x100", "512")),
    ],
)
def test_variables(look: Look, environment: dict[str, str], expected: list[str], words: str) -> None:
    lines = look("nccl-settings", HOME="ROOT", **environment)
    assert states(lines) == expected and words in lines[-1][1]


def test_files_that_set_variables(look: Look, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nccl.conf").write_text("# ours\nNCCL_ALGO=Ring\nNCCL_DEBUG=WARN\n")
    lines = look("nccl-settings", HOME="ROOT", NCCL_NTHREADS="128")
    path = tmp_path / "etc/nccl.conf"
    assert states(lines) == ["ok", "ok"]
    assert lines[0][1].startswith(f"NCCL_NTHREADS=128, NCCL_ALGO by {path}: ")
    assert lines[1][1] == f"{path} sets NCCL_DEBUG"
