"""Registers of AMD kernels, read from their descriptors: core/codeobject.c."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tools.simgpu.hip.code_object import Kernel, bundle, code_object, compressed

READER = ("core/codeobject.c",)
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# A GEMM as its assembler describes it, the AGPRs left out; a kernel of RCCL; one of less than one step; one that takes
# all.
KERNELS = [
    Kernel("Cijk_MT256x128x16", vgprs=128, agprs=128, said=128),
    Kernel("_Z23ncclDevKernel_Generic_1v", vgprs=248, agprs=32),
    Kernel("tiny", vgprs=3),
    Kernel("greatest", vgprs=256, agprs=256),
]
FOUND = {"Cijk_MT256x128x16": 256, "_Z23ncclDevKernel_Generic_1v": 280, "tiny": 8, "greatest": 512}

KNOWN, UNKNOWN = ((),), (("whole",),)  # how long the image is

Run = Callable[..., str]
Kernels = Callable[..., dict[str, int]]
Ways = tuple[tuple[str, ...], ...]


@pytest.fixture(scope="module")
def kernels(compile_c: Any, run_program: Run, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """kernels(image, architecture) -> registers by name, the same whether or not anybody says how long the image is."""
    program = compile_c("code_kernels.c", *READER, flags=SANITIZED)
    file = tmp_path_factory.mktemp("images") / "image"

    def read(image: bytes, architecture: str = "gfx90a", ways: Ways = (*KNOWN, *UNKNOWN)) -> dict[str, int]:
        file.write_bytes(image)
        said, *others = (run_program(program, architecture, file, *way) for way in ways)
        assert all(other == said for other in others)
        return {name: int(registers) for name, registers in (line.split() for line in said.splitlines())}

    return read


@pytest.mark.parametrize("architecture", ["gfx90a", "gfx942", "gfx950"])
def test_a_code_object(kernels: Kernels, architecture: str) -> None:
    assert kernels(code_object(KERNELS, architecture), architecture) == FOUND


def test_of_a_bundle_the_code_object_for_this_gpu(kernels: Kernels) -> None:
    image = bundle(
        {
            "gfx1100": code_object([Kernel("other")], "gfx1100"),
            "gfx942": code_object([Kernel("k", vgprs=64)], "gfx942"),
            "gfx90a:sramecc+:xnack-": code_object([Kernel("k", vgprs=128)]),
        }
    )
    assert kernels(image) == {"k": 128}
    assert kernels(image, "gfx942") == {"k": 64}
    assert kernels(image, "gfx950") == {}


@pytest.mark.parametrize("modes", [(":xnack+", ":xnack-"), (":xnack-", ":xnack+"), (":xnack+", "")])
def test_the_usual_mode_comes_first(kernels: Kernels, modes: tuple[str, str]) -> None:
    image = bundle({f"gfx90a{mode}": code_object([Kernel("k", vgprs=136 if "+" in mode else 128)]) for mode in modes})
    assert kernels(image) == {"k": 128}
    assert kernels(bundle({"gfx90a:xnack+": code_object([Kernel("k", vgprs=136)])})) == {"k": 136}


def test_a_longer_name_is_another_architecture(kernels: Kernels) -> None:
    assert kernels(bundle({"gfx90a1": code_object(KERNELS)})) == {}
    assert kernels(bundle({"gfx90": code_object(KERNELS)})) == {}


def test_an_architecture_with_other_descriptors(kernels: Kernels) -> None:
    assert kernels(code_object(KERNELS, "gfx1100"), "gfx1100") == {}
    assert kernels(code_object(KERNELS, "gfx942")) == {}, "of another GPU"


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"CCOB" + bytes(100), bytes(4096), b"__CLANG_OFFLOAD_BUNDLE__"])
def test_what_is_no_code_object(kernels: Kernels, image: bytes) -> None:
    assert kernels(image, ways=KNOWN) == {}


def test_what_is_for_another_machine(kernels: Kernels) -> None:
    image = bytearray(code_object(KERNELS))
    struct.pack_into("<H", image, 18, 62)
    assert kernels(bytes(image)) == {}


def sections(image: bytes) -> list[int]:
    """Where the headers of the sections are."""
    (at,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    return [at + size * index for index in range(count)]


ABSURD = [2**64 - 1, 2**64 - 64, 2**63, 2**32, 0xFFFFFFFF]


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize("field", [16, 24, 32], ids=["address", "offset", "size"])
def test_absurd_sections(kernels: Kernels, field: int, value: int) -> None:
    """Of every section: nothing outside of the image is read."""
    for header in sections(code_object(KERNELS))[1:]:
        image = bytearray(code_object(KERNELS))
        struct.pack_into("<Q", image, header + field, value)
        assert set(kernels(bytes(image), ways=KNOWN).items()) <= set(FOUND.items())


@pytest.mark.parametrize("value", ABSURD)
def test_an_absurd_place_of_the_sections(kernels: Kernels, value: int) -> None:
    image = bytearray(code_object(KERNELS))
    struct.pack_into("<Q", image, 40, value)
    assert kernels(bytes(image), ways=KNOWN) == {}
    image = bytearray(code_object(KERNELS))
    struct.pack_into("<Q", image, 40, 2**64 - 64)
    assert kernels(bytes(image)) == {}, "nor does it wrap around, where nobody says how long the image is"


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize("field", [24, 32, 40, 48], ids=["count", "offset", "size", "name"])
def test_absurd_bundles(kernels: Kernels, field: int, value: int) -> None:
    image = bytearray(bundle({"gfx90a": code_object(KERNELS)}))
    struct.pack_into("<Q", image, field, value)
    assert kernels(bytes(image), ways=KNOWN) in ({}, FOUND)
    wrong = bytearray(bundle({"gfx90a": code_object(KERNELS)}))
    second = 32 + 24 + len("host-x86_64-unknown-linux-gnu-")
    if field in (32, 40):
        struct.pack_into("<Q", wrong, second + field - 32, value)
        assert kernels(bytes(wrong), ways=KNOWN) == {}


BUNDLE = bundle({"gfx942": code_object([Kernel("k", vgprs=64)], "gfx942"), "gfx90a": code_object(KERNELS)})


@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundles_are_not_read(kernels: Kernels, version: int) -> None:
    """Unpacking one would take the program's time and memory; vendor/hip/hip_ops.c leaves such kernels alone."""
    assert kernels(BUNDLE) == FOUND
    assert kernels(compressed(zstandard.compress(BUNDLE), len(BUNDLE), version)) == {}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("seeds")
    one = code_object(KERNELS[:2])
    several = bundle({"gfx942": code_object(KERNELS[:1], "gfx942"), "gfx90a": one})
    images = {"code_object": one, "bundle": several}
    for name, image in images.items():
        (folder / name).write_bytes(image)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def fuzz(compile_c: Any) -> Path:
    return compile_c("../fuzz/code_fuzz.c", *READER, flags=SANITIZED)


@pytest.mark.parametrize("how", ["corrupt", "truncate"])
def test_nothing_is_read_outside_of_the_bytes(fuzz: Path, seeds: list[Path], run_program: Run, how: str) -> None:
    tried, found = map(int, run_program(fuzz, how, *seeds).split())
    total = sum(seed.stat().st_size for seed in seeds)
    assert tried == (total * 10 if how == "corrupt" else total)
    # The headers of the sections come last, so no part of a code object is one; of a bundle another one may be whole.
    assert 0 < found < tried


def test_random_changes(fuzz: Path, seeds: list[Path], run_program: Run) -> None:
    tried, found = map(int, run_program(fuzz, "mutate", 2, *seeds).split())
    assert tried > 1000 and found > 50


@pytest.mark.parametrize(("sanitizer", "modules"), [("address,undefined", 200), ("thread", 10)])
def test_modules_that_come_and_go(
    compile_c: Any, run_program: Run, tmp_path: Path, sanitizer: str, modules: int
) -> None:
    """The table in front of the reader: full, emptied, and used by several threads."""
    count, room = 1000, 1 << 17
    image = code_object([Kernel(f"k{i}", vgprs=128, agprs=64) for i in range(count)])
    (tmp_path / "image").write_bytes(image)
    flags = (f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
    sources = ("code_table.c", "../../shim/vendor/hip/code.c", "core/slots.c", *READER)
    program = compile_c(*sources, flags=flags, name="code_table" + ("_tsan" if sanitizer == "thread" else ""))
    said = run_program(program, tmp_path / "image", count, 192, modules).splitlines()
    assert said[:2] == ["before: 0", f"one by one: {count}"]
    together = int(said[2].split()[-1])
    assert min(modules * count, 0.9 * room) <= together <= min(modules * count, room)
    assert said[3:] == [f"thread: {count}"] * 4
