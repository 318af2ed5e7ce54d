"""Real cubins of this repository against what `ptxas -v` said of them, and files made by hand."""

from __future__ import annotations

import importlib.util
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from footprint_files import (
    GEMM,
    RCCL,
    bundle,
    code_object,
    compressed,
    cubin,
    elf,
    fatbin,
    with_segments,
)

from pyshim.footprints.footprint import Footprint, Unreadable, Wanted
from pyshim.footprints.read import read, read_bytes

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "simgpu" / "data"
DEMO = ROOT / "tools" / "demo"
SM_90 = (DATA / "kernels.sm_90.cubin").read_bytes()
SM_80 = (DATA / "kernels.sm_80.cubin").read_bytes()
SM_8X: Wanted = frozenset({"sm_80", "sm_86"}).__contains__


def test_kernels_of_a_cubin() -> None:
    assert list(read(DATA / "kernels.sm_80.cubin")) == [
        Footprint("_Z5empty1SPi", "sm_80", 10, 0, barriers=0),
        Footprint("bounded", "sm_80", 10, 0, max_threads=128, barriers=1),
        Footprint("saxpy", "sm_80", 10, 1024, barriers=1),
    ]


def test_static_size_on_sm_90_is_what_the_driver_reports() -> None:
    """The sections say 1,024, 1,024 and 2,048."""
    assert [kernel.static_shared_memory for kernel in read(DATA / "kernels.sm_90.cubin")] == [0, 0, 1024]


@pytest.mark.parametrize(
    ("file", "shared"),
    [pytest.param("demo_sm80.cubin", 14144, id="sm_80"), pytest.param("demo_sm90.cubin", 36800, id="sm_90")],
)
def test_cubins_of_an_older_compiler(file: str, shared: int) -> None:
    """ptxas 12.9: the architecture is in another byte, barriers are flags of the text. The sizes are those of
    tools/demo/build_cubins.py."""
    found = {kernel.kernel: kernel for kernel in read(DEMO / file)}
    architecture = f"sm_{file[7:9]}"
    collective = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    assert found == {
        "optimizer_step": Footprint("optimizer_step", architecture, 32, 0, max_threads=256, barriers=0),
        "sgemm_128x64_nn": Footprint("sgemm_128x64_nn", architecture, 80, 24576, max_threads=256, barriers=1),
        collective: Footprint(collective, architecture, 96, shared, max_threads=640, barriers=1),
    }


@pytest.mark.parametrize(
    "file", [*sorted(DATA.glob("*.cubin")), *sorted(DEMO.glob("*.cubin"))], ids=lambda file: file.name
)
def test_cuobjdump_says_the_same(file: Path) -> None:
    spec = importlib.util.find_spec("triton")
    inside = Path(str(spec.origin)).parent / "backends" / "nvidia" / "bin" / "cuobjdump" if spec else None
    tool = str(inside) if inside and inside.exists() else shutil.which("cuobjdump")
    if not tool:
        pytest.skip("no cuobjdump: neither Triton nor a CUDA toolkit is installed")
    out = subprocess.run([tool, "-res-usage", str(file)], stdout=subprocess.PIPE, text=True, check=True).stdout
    theirs = {
        name: (int(reg), int(shared))
        for name, reg, shared in re.findall(r"Function (\S+):\n\s+REG:(\d+) .*?SHARED:(\d+)", out)
    }
    reserved = 1024 if "90" in file.name else 0
    assert theirs == {k.kernel: (k.registers, k.static_shared_memory + reserved) for k in read(file)}


@pytest.mark.parametrize(
    ("architecture", "section", "static"),
    [
        pytest.param(80, ".more", 4096, id="sm_80"),
        pytest.param(90, ".more", 3072, id="sm_90"),
        pytest.param(80, ".nv.shared.reserved.0", 3072, id="a section says that some is reserved"),
    ],
)
def test_what_is_reserved_of_shared_memory(architecture: int, section: str, static: int) -> None:
    (kernel,) = read_bytes(cubin(4096, architecture=architecture, more=section))
    assert (kernel.registers, kernel.static_shared_memory) == (32, static)


def test_required_threads_and_clusters() -> None:
    attributes = ((0x10, (32, 4, 2)), (0x3D, (2, 2, 1)))
    notes = b"".join(struct.pack("<BBHIII", 4, kind, 12, *sides) for kind, sides in attributes)
    assert list(read_bytes(cubin(0, notes))) == [Footprint("k", "sm_90", 32, 0, None, 256, 0, 4)]
    with pytest.raises(Unreadable, match=r".nv.info.k ends inside an attribute"):
        list(read_bytes(cubin(0, notes[:-4])))


def test_a_fat_binary() -> None:
    """The PTX in it has no footprint."""
    assert list(read(DATA / "kernels.fatbin")) == [*read_bytes(SM_80), *read_bytes(SM_90)]


def test_only_the_architectures_that_are_wanted() -> None:
    assert {kernel.architecture for kernel in read(DATA / "kernels.fatbin", SM_8X)} == {"sm_80"}
    assert list(read(DATA / "kernels.sm_90.cubin", SM_8X)) == []


def test_a_shared_object() -> None:
    """Containers one after the other; objects from before linking are not loaded, so not read."""
    chain = fatbin([(2, 80, 0x11, SM_80, 0)]) + b"\0" * 8 + fatbin([(1, 90, 0x11, b"ptx", 0), (2, 90, 0x11, SM_90, 0)])
    file = elf([("__nv_relfatbin", 1, fatbin([(2, 75, 0, SM_80, 0)]), 0, 0), (".nv_fatbin", 1, chain, 0, 0)])
    assert list(read_bytes(file)) == [*read_bytes(SM_80), *read_bytes(SM_90)]


def test_a_section_with_other_data_between_containers() -> None:
    mixed = fatbin([(2, 80, 0x11, SM_80, 0)]) + b"metadata" * 5 + fatbin([(2, 90, 0x11, SM_90, 0)]) + b"rest"
    assert len(list(read_bytes(elf([(".cask_resource", 1, mixed, 0, 0)])))) == 6
    with pytest.raises(Unreadable, match="no container at byte"):
        list(read_bytes(elf([(".nv_fatbin", 1, mixed, 0, 0)])))


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        pytest.param(0x11, "sm_90", id="any chip of the major number"),
        pytest.param(0x100011, "sm_90a", id="this chip only"),
        pytest.param(0x200011, "sm_90f", id="this family only"),
    ],
)
def test_the_container_says_for_which_chips(flags: int, name: str) -> None:
    assert {kernel.architecture for kernel in read_bytes(fatbin([(2, 90, flags, SM_90, 0)]))} == {name}


def test_lz4() -> None:
    block = pytest.importorskip("lz4.block", reason="the package lz4 is not installed")
    packed = block.compress(SM_90, store_size=False)
    assert list(read_bytes(fatbin([(2, 90, 0x2011, packed, len(SM_90))]))) == list(read_bytes(SM_90))
    with pytest.raises(Unreadable, match="broken compressed image"):
        list(read_bytes(fatbin([(2, 90, 0x2011, packed[:99], len(SM_90))])))


def test_zstd() -> None:
    zstandard = pytest.importorskip("zstandard", reason="the package zstandard is not installed")
    packed = zstandard.ZstdCompressor().compress(SM_90)
    assert list(read_bytes(fatbin([(2, 90, 0x8011, packed, len(SM_90))]))) == list(read_bytes(SM_90))
    with pytest.raises(Unreadable, match="broken compressed image"):
        list(read_bytes(fatbin([(2, 90, 0x8011, packed[:99], len(SM_90))])))


@pytest.mark.parametrize(
    ("flags", "package", "module"), [(0x2011, "lz4", "lz4.block"), (0x8011, "zstandard", "zstandard")]
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, flags: int, package: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unreadable, match=f"pip install {package}$"):
        list(read_bytes(fatbin([(2, 90, flags, b"packed", 100)])))


AMD = [
    Footprint(RCCL[0], "gfx90a", 280, 19808, 256, accumulators=32, scalars=106),
    Footprint(GEMM[0], "gfx90a", 256, 19808, 256, 256, accumulators=128, scalars=106),
]


def test_registers_of_amd_are_those_of_the_descriptor() -> None:
    assert list(read_bytes(code_object([RCCL, GEMM]))) == AMD


def test_a_note_for_each_kernel() -> None:
    """As in rocBLAS' and hipBLASLt's code objects, which are linked from objects of one kernel."""
    apart = code_object([RCCL, GEMM], apart=True)
    assert apart.count(b"AMDGPU\0\0") == 2
    assert list(read_bytes(apart)) == AMD
    assert list(read_bytes(with_segments(apart))) == AMD
    assert list(read_bytes(bundle({"hipv4-amdgcn-amd-amdhsa--gfx90a": apart}))) == AMD


def test_a_kernel_that_two_notes_describe_counts_once() -> None:
    """And one note that a section and a segment name is one."""
    twice = code_object([RCCL, RCCL, GEMM], apart=True)
    assert list(read_bytes(twice)) == AMD
    both = bytearray(with_segments(twice))
    (sections,) = struct.unpack_from("<Q", both, 40)
    struct.pack_into("<I", both, sections + 64 + 4, 7)
    assert list(read_bytes(bytes(both))) == AMD


def test_the_target_of_the_metadata() -> None:
    (kernel,) = read_bytes(code_object([RCCL], flags=0, target="gfx942:xnack-"))
    assert kernel.architecture == "gfx942"
    assert list(read_bytes(code_object([RCCL], flags=0, target="gfx1100"))) == []


@pytest.mark.parametrize(
    ("target", "flags", "architecture"),
    [
        pytest.param("amdgpu9.0a-amd-amdhsa-unknown-gfx90a", 0, "gfx90a", id="another form of the triple"),
        pytest.param("amdgcn-amd-amdhsa-unknown-gfx942:sramecc+:xnack+", 0, "gfx942:xnack+", id="and a mode"),
        pytest.param("amdgcn-amd-amdhsa--", 0x53F, "gfx90a", id="a triple without a chip"),
        pytest.param("", 0x54C, "gfx942", id="no target"),
        pytest.param("", 0x33F, "gfx90a:xnack+", id="no target, the flags say the mode"),
        pytest.param("", 0x23F, "gfx90a", id="no target, the mode is off"),
    ],
)
def test_the_architecture(target: str, flags: int, architecture: str) -> None:
    for apart in (False, True):
        found = list(read_bytes(code_object([RCCL, GEMM], flags=flags, target=target, apart=apart)))
        assert [kernel.architecture for kernel in found] == [architecture] * 2


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_compressed_bundle(version: int) -> None:
    host, device = "host-x86_64-unknown-linux--", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"
    file = compressed(bundle({host: b"", device: code_object([RCCL, GEMM])}), version)
    assert list(read_bytes(file)) == AMD
    assert list(read_bytes(elf([(".hip_fatbin", 1, file, 0, 0)]))) == AMD
    assert list(read_bytes(file, frozenset({"gfx942"}).__contains__)) == []


def test_images_are_taken_out_of_what_is_larger_than_one_piece() -> None:
    """Noise before, between and behind, which does not compress, and an image that nobody wants."""
    seeded = random.Random(3)
    images: dict[str, bytes] = {}
    for index, architecture in enumerate(("gfx1100", "gfx90a", "gfx908", "gfx942", "gfx950")):
        images[f"host-{index}"] = seeded.randbytes(900_000 + index)
        image = code_object([RCCL], target=architecture) + seeded.randbytes(1_300_000)
        images[f"hipv4-amdgcn-amd-amdhsa--{architecture}"] = image
    asked: list[str] = []

    def wanted(architecture: str) -> bool:
        asked.append(architecture)
        return architecture != "gfx942"

    found = list(read_bytes(compressed(bundle(images)), wanted))
    assert [(kernel.architecture, kernel.registers) for kernel in found] == [("gfx90a", 280), ("gfx950", 280)]
    assert asked == ["gfx1100", "gfx90a", "gfx908", "gfx942", "gfx950"]


def test_bundles_one_after_the_other() -> None:
    """As a linker leaves them, at the beginning of pages. Version 1 does not say where it ends, so comes last."""
    device = "hipv4-amdgcn-amd-amdhsa--gfx90a"
    parts = [
        compressed(bundle({device: code_object([RCCL])}), 3),
        bundle({"host-x86_64-unknown-linux--": b"", device: code_object([GEMM])}),
        compressed(bundle({device: code_object([RCCL, GEMM])}), 1),
    ]
    chain = b"".join(part + b"\0" * (-len(part) % 4096) for part in parts)
    found = list(read_bytes(elf([(".hip_fatbin", 1, chain, 0, 0)])))
    assert found == [*AMD, *AMD]


def test_images_for_another_mode_are_told_apart() -> None:
    device = "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+"
    both = bundle({f"{device}:xnack-": code_object([RCCL]), f"{device}:xnack+": code_object([RCCL])})
    assert [kernel.architecture for kernel in read_bytes(both)] == ["gfx90a", "gfx90a:xnack+"]
    (alone,) = read_bytes(code_object([RCCL], target="gfx90a:xnack+"))
    assert alone.architecture == "gfx90a:xnack+"
