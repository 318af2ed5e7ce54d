"""A broken or foreign file is one sentence, never a traceback."""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path

import pytest
from footprint_files import GEMM, RCCL, bundle, code_object, compressed, elf, messagepack, note, with_segments

from pyshim.footprints.footprint import Unreadable
from pyshim.footprints.read import read, read_bytes

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "simgpu" / "data"
CUBIN = (DATA / "kernels.sm_90.cubin").read_bytes()
FATBIN = (DATA / "kernels.fatbin").read_bytes()
AMD = code_object([RCCL, GEMM])
DEVICE = "hipv4-amdgcn-amd-amdhsa--gfx90a"
PACKED = compressed(bundle({DEVICE: AMD}))
_FIRST_SIZE = 32 + 8  # in a bundle: behind its magic, the number of entries and the first place


def announcing(size: int) -> bytes:
    data = bundle({DEVICE: AMD})
    return compressed(data[:_FIRST_SIZE] + struct.pack("<Q", size) + data[_FIRST_SIZE + 8 :])


def backwards() -> bytes:
    """Two images at one place."""
    data = bytearray(bundle({DEVICE: AMD, DEVICE + ":xnack-": AMD}))
    at = 32 + 24 + len(DEVICE)
    data[at : at + 8] = data[32:40]
    return compressed(bytes(data))


def noted(notes: bytes) -> bytes:
    return elf([(".note", 7, notes, 0, 0)], 224, flags=0x3F)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"nonsense", "neither an ELF file nor a fat binary nor a code object", id="not ELF"),
        pytest.param(b"", "cannot be read: cannot mmap an empty file", id="nothing"),
        pytest.param(elf([(".text", 1, b"x", 0, 0)]), "no GPU code in it", id="no fat binary"),
        pytest.param(elf([(".nv_fatbin", 8, FATBIN, 0, 0)]), "no GPU code in it", id="only the symbols of a library"),
        pytest.param(b"\x7fELF\x01\x01" + b"\0" * 60, "not one of 64 bits", id="32 bits"),
        pytest.param(elf([(".text", 1, b"x", 0, 0)])[:-70], "ends before its table of sections", id="a cut ELF file"),
        pytest.param(CUBIN[:7000], "a broken cubin: it ends before", id="a cut cubin"),
        pytest.param(FATBIN[:9000], "a broken fat binary: it ends inside a container", id="a cut fat binary"),
        pytest.param(FATBIN[:10], "a broken fat binary: it ends inside a header", id="a cut header"),
        pytest.param(AMD[:300], "a broken code object: it ends before", id="a cut code object"),
        pytest.param(bundle({DEVICE: AMD})[:-9], "a broken bundle: it ends inside", id="a cut bundle"),
        pytest.param(PACKED[:-9], "a broken compressed code object: it ends before", id="cut in compressed data"),
        pytest.param(compressed(AMD), "it holds no bundle", id="something else compressed"),
        pytest.param(PACKED + b"rest", "an image in it is not for AMD GPUs", id="something behind"),
        pytest.param(backwards(), "overlap", id="images that overlap"),
        pytest.param(announcing(1 << 40), "it announces 1099511627776 bytes for gfx90a", id="a size beyond all memory"),
        pytest.param(announcing(1 << 31), "it ends before what it announces", id="a size beyond the file"),
        pytest.param(
            b"CCOB\x09\0\0\0" + b"\0" * 30, "of version 9, which overlap-run does not know", id="a newer version"
        ),
        pytest.param(elf([(".text", 1, b"x", 0, 0)], 224), "without the note", id="a code object without metadata"),
        pytest.param(noted(note(b"")), "it ends before what it announces", id="an empty note"),
        pytest.param(noted(note(b"\x01")), "is no map", id="a note of a number"),
        pytest.param(noted(note(b"\x91" * 5000)), "it ends before what it announces", id="lists in lists"),
        pytest.param(noted(note(b"\0" * 90, 20)), "without the note", id="a note of something else"),
        pytest.param(noted(note(b"\x80", owner=b"OTHERS\0")), "without the note", id="a note of somebody else"),
        pytest.param(noted(note(b"\0" * 90)[:60]), "a note ends outside its place", id="a cut note"),
        pytest.param(with_segments(AMD, 99), "its notes overlap", id="many segments of the same notes"),
        pytest.param(noted(note(messagepack({"amdhsa.kernels": [{".name": "k"}]}))), "lacks '.symbol'", id="no symbol"),
    ],
)
def test_one_clear_error(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(Unreadable) as caught:
        list(read(path))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(Unreadable, match=r"^cannot be read: "):
            list(read(path))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(CUBIN, id="cubin"),
        pytest.param(FATBIN, id="fat binary"),
        pytest.param(AMD, id="code object"),
        pytest.param(with_segments(code_object([RCCL, GEMM], apart=True)), id="code object of several notes"),
        pytest.param(bundle({DEVICE: AMD}), id="bundle"),
        pytest.param(PACKED, id="compressed bundle"),
        pytest.param(elf([(".nv_fatbin", 1, FATBIN, 0, 0)]), id="shared object"),
    ],
)
def test_damage_is_an_error_or_goes_unseen(data: bytes) -> None:
    """Cut anywhere, or with some bytes changed."""
    seeded = random.Random(7)
    broken = [data[:size] for size in range(0, len(data), max(1, len(data) // 400))]
    for _ in range(800):
        changed = bytearray(data)
        for _ in range(seeded.choice((1, 2, 8))):
            changed[seeded.randrange(len(data))] = seeded.choice((0, 1, 0x7F, 0xFF, seeded.randrange(256)))
        broken.append(bytes(changed))
    errors = 0
    for candidate in broken:
        try:
            list(read_bytes(candidate))
        except Unreadable:
            errors += 1
    assert errors > 100


@pytest.mark.parametrize("machine", [62, 190, 224], ids=["host", "cubin", "code object"])
def test_hash_tables_that_overlap_do_not_keep_the_reader_busy(machine: int) -> None:
    size, count = 1 << 18, 500
    table = struct.pack("<IIII", size // 4 - 8, 1, 1, 0) + b"\1" * size
    sections = [(".dynsym", 2, b"\0" * 24, 2, 0), (".dynstr", 3, b"\0", 0, 0), (".gnu.hash", 0x6FFFFFF6, table, 1, 0)]
    data = bytearray(elf([*sections, *[(".gnu.hash", 0x6FFFFFF6, b"", 1, 0)] * count], machine))
    (headers,) = struct.unpack_from("<Q", data, 40)
    for index in range(4, 4 + count):
        place = headers + 64 * index + 24
        data[place : place + 16] = data[headers + 216 : headers + 232]
    before = time.process_time()
    with pytest.raises(Unreadable, match="a broken"):
        list(read_bytes(bytes(data)))
    assert time.process_time() - before < 8


def test_symbol_tables_that_overlap_do_not_keep_the_reader_busy() -> None:
    zeros, many = b"\0" * (24 << 15), 3000
    (headers,) = struct.unpack_from("<Q", AMD, 40)
    (count,) = struct.unpack_from("<H", AMD, 60)
    head = bytearray(AMD)
    struct.pack_into("<Q", head, 40, len(AMD) + len(zeros))
    struct.pack_into("<H", head, 60, count + many)
    table = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, len(AMD), len(zeros), count - 2, 0, 8, 24)
    before = time.process_time()
    with pytest.raises(Unreadable, match="lie over each other"):
        list(read_bytes(bytes(head) + zeros + AMD[headers : headers + 64 * count] + table * many))
    assert time.process_time() - before < 8


@pytest.mark.parametrize("data", [CUBIN, AMD], ids=["cubin", "code object"])
def test_a_number_of_sections_that_the_header_cannot_hold(data: bytes) -> None:
    broken = bytearray(data)
    (headers,) = struct.unpack_from("<Q", broken, 40)
    struct.pack_into("<Q", broken, headers + 32, struct.unpack_from("<H", broken, 60)[0])
    struct.pack_into("<H", broken, 60, 0)
    with pytest.raises(Unreadable, match="more sections or segments"):
        list(read_bytes(bytes(broken)))
