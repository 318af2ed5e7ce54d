"""Modules: what loading one costs under the library, and which registers of its kernels can be relied on."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from hip_interposing import BLOCKS, Hip, World, code_object, runtime
from interposing import same

TWO = 'streams: {raise: off}\ncompute: [{match: {kernel: "*"}, shape: {blocks_per_sm: 2}, when: always}]'
LAUNCH = f"launch=k,{BLOCKS},256"
FAULTS, KIBIBYTES = 2, 64  # one more or less from run to run: where the stack and the heap begin is random

# As rocBLAS' assembly kernels: a wave takes 256 registers, the metadata say 128. Two blocks fit, and not four.
HAND_WRITTEN = code_object.Kernel("k", vgprs=128, agprs=128, said=128, arguments=[8, 4])
COMPILED = code_object.Kernel("k", vgprs=256, agprs=64, arguments=[8, 4])  # one block fits


def compressed(image: bytes) -> bytes:
    bundled = code_object.bundle({"gfx90a:sramecc+:xnack-": image})
    return code_object.compressed(zstandard.compress(bundled), len(bundled))


@pytest.mark.parametrize("how", ["file", "data"])
@pytest.mark.plain("a sanitizer takes memory, too", sanitized=True)
def test_a_compressed_module_costs_what_it_costs_bare(how: str, world: World, hip: Hip, tmp_path: Path) -> None:
    """The library neither unpacks nor maps it: 32 MiB would be 8,192 page faults."""
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(code_object.code_object([HAND_WRITTEN]))
    large.write_bytes(compressed(code_object.code_object([HAND_WRITTEN], variables={"v": bytes(32 << 20)})))
    program = world.build("hip_load_cost", "hip_load_cost.c", link=[runtime("7")])
    words = [small, large, *(["data"] if how == "data" else [])]
    bare, done = hip(words, program=program), hip(words, TWO, program=program)
    assert (bare.status, done.status) == (0, 0), done.stderr
    (faults, memory), (faults_bare, memory_bare) = ([int(n) for n in one.stdout.split()] for one in (done, bare))
    assert faults <= faults_bare + FAULTS
    assert memory <= memory_bare + KIBIBYTES


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_registers_that_the_metadata_may_leave_out(version: str, hip: Hip, tmp_path: Path) -> None:
    """By its metadata four blocks of the kernel fit and a size would be sought that makes them two. The descriptor
    cannot be read without unpacking it, so the kernel is left alone."""
    (tmp_path / "code").write_bytes(compressed(code_object.code_object([HAND_WRITTEN])))
    words = [f"code={tmp_path / 'code'}", "function=k", LAUNCH]
    bare, done = hip(words, version=version), hip(words, TWO, version=version)
    same(done, bare)
    assert done.sizes == [0]
    assert done.reasons == {"unknown_footprint": 1}


def test_registers_that_cannot_be_too_few(hip: Hip, tmp_path: Path) -> None:
    """No kernel has more than 256 vector registers besides accumulation registers: a larger number counts both."""
    (tmp_path / "code").write_bytes(compressed(code_object.code_object([COMPILED])))
    done = hip([f"code={tmp_path / 'code'}", "function=k", LAUNCH], TWO)
    assert done.reasons == {"room_already": 1}


@pytest.mark.parametrize(
    ("way", "version"), [*(("symbol", version) for version in "567"), ("dlsym", "5"), ("dlsym", "7")]
)
def test_an_unload_that_is_refused_changes_nothing(way: str, version: str, hip: Hip, tmp_path: Path) -> None:
    """In a capture (hip_module.cpp: CHECK_STREAM_CAPTURE_SUPPORTED). By the descriptor two blocks fit."""
    (tmp_path / "code").write_bytes(code_object.code_object([HAND_WRITTEN]))
    words = [f"code={tmp_path / 'code'}", "function=k", LAUNCH, "stream=0", "begin=1", "unload", "end=1"]
    words += [LAUNCH, f"launch=k,{BLOCKS},256,512", LAUNCH, "function=k", LAUNCH]
    words += [f"launch=k,{BLOCKS},256,1024"]  # decided anew, by what the module says
    bare, done = hip(words, version=version, way=way), hip(words, TWO, version=version, way=way)
    assert "unload: 900" in bare.stdout, bare.stdout
    same(done, bare)
    assert done.reasons == {"room_already": 6}
