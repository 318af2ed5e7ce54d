"""program.c of the stand-in suite: what a sample launches, and how; and its cubin."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.gpu.overlap.cells import KINDS

from .conftest import ROOT, SUITE, Program

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
BYTES = "bytes=1048576 warm=0"


def test_the_cubins_are_those_of_the_sources(tmp_path: Path) -> None:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    command = [sys.executable, "-m", "tools.gpu.overlap.build_cubin", "--output", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    for name in ("overlap_sm90.cubin", "simt_sm90.cubin"):
        assert (tmp_path / name).read_bytes() == (SUITE / name).read_bytes()


def test_resident_blocks_are_those_of_the_kinds(program: Program, tmp_path: Path) -> None:
    answers, _, _ = program(tmp_path, *(f"describe {kind}" for kind in (*KINDS, "copy")))
    assert [answer["resident_blocks"] for answer in answers] == [2, 5, 3, 8, 16, 8, 1, 1, 1]
    assert [list(map(int, answer["sizes"])) for answer in answers[:2]] == [[1], [4, 3, 2, 1]]
    copy = answers[-1]
    assert (copy["threads"], copy["registers"], copy["static"] + copy["dynamic"]) == (544, 96, 103808)


@pytest.mark.parametrize(("dynamic", "resident"), [(0, 5), (46593, 4), (115713, 1)])
def test_a_shape_leaves_so_many_blocks_on_a_multiprocessor(
    program: Program, tmp_path: Path, dynamic: int, resident: int
) -> None:
    words = f"dynamic={dynamic} carveout={100 if dynamic else -1} communication=0 warm=0"
    _, _, ran = program(tmp_path, f"sample tensor64 {words}")
    assert [row["resident_peak"] for row in ran if row["kernel"] == "hgemm_tensor64"] == [resident]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("", (24, 544, 4, 0), id="as NCCL launches it"),
        pytest.param("priority=1", (24, 544, 4, -5), id="priority"),
        pytest.param("cluster=1", (24, 544, 1, 0), id="no clusters"),
        pytest.param("blocks=8", (8, 544, 4, 0), id="fewer blocks"),
        pytest.param("threads=288", (24, 288, 4, 0), id="fewer threads"),
    ],
)
def test_communication_is_launched_as_the_arm_says(
    program: Program, tmp_path: Path, words: str, expected: tuple[int, int, int, int]
) -> None:
    _, launches, _ = program(tmp_path, f"sample simt {BYTES} {words}")
    (row,) = [row for row in launches if row["kernel"] == NCCL]
    assert (row["blocks"], row["threads"], row["cluster"], row["priority"]) == expected


def order_of(launches: list[dict[str, object]]) -> str:
    letters = {"sgemm_128x64_nn": "k", NCCL: "c"}
    return "".join(letters[str(row["kernel"])] for row in launches if row["kernel"] in letters)


@pytest.mark.parametrize(
    ("words", "order"),
    [
        pytest.param("", "kc", id="computation first"),
        pytest.param("first=1", "ck", id="communication first"),
        pytest.param("warm=2", "kckckc", id="warm"),
        pytest.param("communication=0", "k", id="computation alone"),
        pytest.param("computation=0", "c", id="communication alone"),
        pytest.param("engine=1", "k", id="a copy engine"),
        pytest.param("count=3 loop=1", "kckckc", id="a loop"),
    ],
)
def test_the_host_launches_in_the_order_of_the_arm(program: Program, tmp_path: Path, words: str, order: str) -> None:
    _, launches, _ = program(tmp_path, f"sample simt {BYTES} {words}")
    assert order_of(launches) == order


def test_pairs_and_loops_wait_for_what_they_need(program: Program, tmp_path: Path) -> None:
    """A pair begins when both parts of the one before have ended; in a loop only collectives wait for kernels."""
    for pattern in ("loop=0", "loop=1"):
        (tmp_path / pattern).mkdir()
        _, _, ran = program(tmp_path / pattern, f"sample simt {BYTES} count=2 priority=1 {pattern}")
        kernels = [(row["start_us"], row["end_us"]) for row in ran if row["kernel"] == "sgemm_128x64_nn"]
        collectives = [(row["start_us"], row["end_us"]) for row in ran if row["kernel"] == NCCL]
        if pattern == "loop=1":
            assert collectives[0][0] >= kernels[0][1]
            assert kernels[1][0] <= collectives[0][0]
        else:
            assert collectives[0][0] < kernels[0][1]
            assert kernels[1][0] >= max(kernels[0][1], collectives[0][1])


def test_parts_are_timed_apart(program: Program, tmp_path: Path) -> None:
    (together, alone), _, _ = program(tmp_path, f"sample simt {BYTES} priority=1", f"sample simt {BYTES} computation=0")
    assert together["ms"] >= together["computation_ms"] > together["communication_ms"] > 0
    assert alone["computation_ms"] < 0.005
    assert "first_us" not in together  # kernels are not executed, so nothing is claimed


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        pytest.param("sample none", "no kernel is called none", id="kernel"),
        pytest.param("sample simt speed=3", "a sample has no speed", id="key"),
        pytest.param("sample simt count=99", "1 to 16 rounds", id="number"),
        pytest.param("dance simt", "no request is called dance", id="verb"),
    ],
)
def test_wrong_requests_end_it_with_one_line(program: Program, tmp_path: Path, request_: str, said: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(said)):
        program(tmp_path, request_)
