"""Modules: which registers of their kernels can be relied on, and what an unload that is refused changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hip_interposing import BLOCKS, ONE, Hip, World
from interposing import same

from tools.simgpu.hip.image import Kernel, image

TWO = ONE.replace("blocks_per_sm: 1", "blocks_per_sm: 2")
LAUNCH = f"launch=k,{BLOCKS},64"

# As rocBLAS' assembly kernels: a wave takes 512 registers, the metadata say 256. Four blocks fit, and not eight.
HAND_WRITTEN = Kernel("k", vgprs=256, agprs=256, said=256, arguments=[8, 4])
COMPILED = Kernel("k", vgprs=256, agprs=8, arguments=[8, 4])  # four blocks


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_registers_that_the_metadata_may_leave_out(version: str, hip: Hip, tmp_path: Path) -> None:
    """By its metadata eight blocks of the kernel fit, and a size would be sought that makes them four."""
    (tmp_path / "code").write_bytes(image([HAND_WRITTEN]))
    words = [f"code={tmp_path / 'code'}", "function=k", LAUNCH]
    bare, done = hip(words, version=version), hip(words, ONE.replace(": 1", ": 4"), version=version)
    same(done, bare)
    assert done.sizes == [0]
    assert done.reasons == {"unknown_footprint": 1}


def test_a_function_of_the_programs_own_kernel_has_its_registers(world: World, hip: Hip) -> None:
    """The compiler counts all registers of such a kernel, by whichever handle it is launched."""
    done = hip([*world.hosts("k"), "alias=k", LAUNCH], ONE)
    assert done.reasons == {"shaped": 1}


def test_registers_that_cannot_be_too_few(hip: Hip, tmp_path: Path) -> None:
    """No kernel has more than 256 vector registers besides accumulation registers: a larger number counts both."""
    (tmp_path / "code").write_bytes(image([COMPILED]))
    head = [f"code={tmp_path / 'code'}", "function=k"]
    assert hip([*head, LAUNCH, f"launch=k,{BLOCKS},128"], TWO).reasons == {"shaped": 1, "room_already": 1}


@pytest.mark.parametrize(
    ("way", "version"), [*(("symbol", version) for version in "567"), ("dlsym", "5"), ("dlsym", "7")]
)
def test_an_unload_that_is_refused_changes_nothing(way: str, version: str, world: World, hip: Hip) -> None:
    """In a capture (hip_module.cpp: CHECK_STREAM_CAPTURE_SUPPORTED)."""
    words = [*world.words("k"), "ask=k,64,0", LAUNCH, "stream=0", "begin=1", "unload", "end=1"]
    words += [LAUNCH, f"launch=k,{BLOCKS},64,512", LAUNCH]
    bare, done = hip(words, version=version, way=way), hip(words, TWO, version=version, way=way)
    assert "unload: 900" in bare.stdout, bare.stdout
    same(done, bare)
    assert done.reasons == {"occupancy_asked": 4}, "it is still known that the program asked about it"
