"""Code as nvcc packs it: Zstandard since 13, LZ4 before. What cannot be unpacked is one line, and an error."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from interposing import Build, Runner
from nvcc_programs import END, EXPECTED, FATBIN, LAUNCHES, Nvcc, nvcc, stub

__all__ = ["nvcc"]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUNTIME = ROOT / "tools" / "simgpu" / "runtime"
PACKED = HERE / "data" / "packed.fatbin"  # of tests/simgpu/data/kernels.cu, by nvcc 13.0 -compress-mode=size
HEADER, ENTRY = "<IHHQ", "<HHIQIIHHIIIQQQ"
LZ4, ZSTD = 0x2000, 0x8000
USAGE = 2  # of unpack_check
ONE_LINE = "simgpu: this fat binary is compressed"


def entries(fatbin: bytes) -> Iterator[tuple[int, int, int]]:
    """(place, bytes of its head, bytes behind that) of each entry."""
    at = 16
    while at < len(fatbin):
        head, stored = struct.unpack_from("<IQ", fatbin, at + 4)
        yield at, head, stored
        at += head + stored


def lz4(data: bytes) -> bytes:
    """One block: a copy where four bytes have been seen before, literals else."""
    out, pending, at, seen = b"", b"", 0, dict[bytes, int]()

    def more(length: int) -> bytes:
        return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])

    while at < len(data):
        before, key = seen.get(data[at : at + 4]), data[at : at + 4]
        seen[key] = at
        if before is None or at - before > 65535 or at > len(data) - 12:  # the end is always literals
            pending += data[at : at + 1]
            at += 1
            continue
        length = 4
        while at + length < len(data) - 5 and data[before + length] == data[at + length]:
            length += 1
        token = bytes([min(len(pending), 15) << 4 | min(length - 4, 15)])
        out += token + more(len(pending)) + pending + struct.pack("<H", at - before) + more(length - 4)
        pending, at = b"", at + length
    return out + bytes([min(len(pending), 15) << 4]) + more(len(pending)) + pending


def packed_by_lz4(fatbin: bytes) -> bytes:
    """The same fat binary as nvcc 12 would have packed it."""
    body = b""
    for at, head, stored in entries(fatbin):
        plain = fatbin[at + head : at + head + stored]
        packed = lz4(plain)
        made = bytearray(fatbin[at : at + head])
        struct.pack_into("<Q", made, 8, len(packed) + -len(packed) % 8)
        struct.pack_into("<I", made, 16, len(packed))
        struct.pack_into("<Q", made, 40, struct.unpack_from("<Q", made, 40)[0] | LZ4)
        struct.pack_into("<Q", made, 56, len(plain))
        body += bytes(made) + packed + b"\0" * (-len(packed) % 8)
    return fatbin[:8] + struct.pack("<Q", len(body)) + body


@pytest.mark.parametrize("kind", ["nvcc12", "nvcc13"])
@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_a_program_with_packed_code_runs_to_its_end(kind: str, gpu: str, build: Build, bare: Runner) -> None:
    assert all(
        struct.unpack_from("<Q", PACKED.read_bytes(), at + 40)[0] & ZSTD for at, _, _ in entries(PACKED.read_bytes())
    )
    done = bare(program=stub(build, kind, PACKED), env={"SIMGPU": gpu})
    assert (done.status, done.stderr) == (END, "")
    if gpu == "h100":
        assert done.stdout == EXPECTED.format(version=kind[-2:])


def test_a_program_with_code_packed_by_lz4_runs_to_its_end(build: Build, bare: Runner, tmp_path: Path) -> None:
    (tmp_path / "older.fatbin").write_bytes(packed_by_lz4(FATBIN.read_bytes()))
    done = bare(program=stub(build, "nvcc12", tmp_path / "older.fatbin"))
    assert (done.status, done.stdout, done.stderr) == (END, EXPECTED.format(version=12), "")


def test_what_cannot_be_unpacked_is_one_line_and_an_error(build: Build, bare: Runner, tmp_path: Path) -> None:
    broken = bytearray(PACKED.read_bytes())
    for at, head, _ in entries(bytes(broken)):
        broken[at + head] ^= 0xFF  # no Zstandard frame begins so
    (tmp_path / "broken.fatbin").write_bytes(broken)
    done = bare(program=stub(build, "nvcc13", tmp_path / "broken.fatbin"))
    assert done.status == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(ONE_LINE)
    assert "allowed: cudaErrorNoKernelImageForDevice\n" in done.stdout


@pytest.mark.parametrize("flags", [(), ("-arch=sm_75",), ("-Xfatbin", "-compress-all", "-arch=sm_90")])
def test_what_nvcc_packs_by_default(flags: tuple[str, ...], nvcc: Nvcc, preloaded: Runner) -> None:
    """Without -arch there is code for an old GPU, and PTX for all others, which is packed."""
    done = preloaded(program=nvcc(*flags), env={"OVERLAP_QUIET": "1"})
    assert ONE_LINE not in done.stderr
    assert "allowed: cudaSuccess\n" in done.stdout
    assert done.totals["launches"] == LAUNCHES


@pytest.fixture(scope="session")
def unpack(build: Build) -> Path:
    """With sanitizers, where the compiler has them: a read or a write outside is a crash then."""
    link = [
        f"-I{ROOT / 'shim'}",
        RUNTIME / "unpack.c",
        *(ROOT / "tools/simgpu/zstd" / name for name in ("zstd.c", "entropy.c")),
    ]
    source = str(HERE / "runtime" / "unpack_check.c")
    try:
        made = build(
            "unpack_check-sanitized", source, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", link=link
        )
        if not subprocess.run([str(made)], capture_output=True, check=False).returncode == USAGE:
            raise OSError
    except (subprocess.CalledProcessError, OSError):
        made = build("unpack_check", source, link=link)
    return made


@pytest.mark.parametrize("level", ["1", "6", "19"])
@pytest.mark.parametrize(
    "what", ["README.md", "tools/simgpu/api.def", "noise", "zeros", "tests/simgpu/data/kernels.fatbin"]
)
def test_what_zstd_packs(what: str, level: str, unpack: Path, tmp_path: Path) -> None:
    zstd = shutil.which("zstd")
    if not zstd:
        pytest.skip("needs the command zstd")
    made = {"noise": random.Random(1).randbytes(300000), "zeros": bytes(300000)}
    plain = made.get(what) or (ROOT / what).read_bytes()
    packed = tmp_path / "packed"
    packed.write_bytes(
        subprocess.run([zstd, f"-{level}", "-q", "-c"], input=plain, capture_output=True, check=True).stdout
    )
    done = run(unpack, "zstd", packed, len(plain))
    assert (done.returncode, done.stdout == plain) == (0, True)


@pytest.mark.parametrize("way", ["zstd", "lz4"])
def test_broken_data_is_refused_and_read_no_further(way: str, unpack: Path, tmp_path: Path) -> None:
    number, broken = random.Random(1), tmp_path / "broken"
    plain = FATBIN.read_bytes()
    samples = [(lz4(plain), len(plain))]
    if way == "zstd":
        whole = PACKED.read_bytes()
        samples = [(whole[at + head : at + head + n], plain_bytes(whole, at)) for at, head, n in entries(whole)]
    for packed, room in samples:
        for _ in range(40):
            made = bytearray(packed[: number.randrange(4, len(packed))] if number.random() < 0.3 else packed)
            for _ in range(number.randrange(1, 4)):
                made[number.randrange(min(4, len(made) - 1), len(made))] = number.randrange(256)
            broken.write_bytes(made)
            assert run(unpack, way, broken, room).returncode in (0, 1)
    broken.write_bytes(samples[0][0])
    for room in (samples[0][1] - 1, samples[0][1] + 1, 1):  # not what comes out
        assert run(unpack, way, broken, room).returncode == 1


@pytest.mark.parametrize(
    "block",
    [
        b"\x4fabcd\x04\x00\xff\xff\x00",  # a copy that is longer than there is room
        b"\x40abcd\x05\x00",  # from before the beginning
        b"\x40abcd\x00\x00",  # from nowhere
        b"\xf0\xff\xff\x00abcd",  # more literals than there are
        b"\xf0",  # nothing behind it
    ],
)
def test_broken_lz4(block: bytes, unpack: Path, tmp_path: Path) -> None:
    (tmp_path / "block").write_bytes(block)
    assert run(unpack, "lz4", tmp_path / "block", 20).returncode == 1


def plain_bytes(fatbin: bytes, at: int) -> int:
    return int(struct.unpack_from("<Q", fatbin, at + 56)[0])


def run(unpack: Path, way: str, packed: Path, room: int) -> subprocess.CompletedProcess[bytes]:
    # A sanitizer's own exit status is 1, which is our answer for broken data.
    env = {**os.environ, "ASAN_OPTIONS": "exitcode=99", "UBSAN_OPTIONS": "exitcode=99"}
    command = [str(unpack), way, str(packed), str(room)]
    return subprocess.run(command, env=env, capture_output=True, timeout=300, check=False)
