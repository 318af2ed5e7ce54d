"""The suite: its rows are right, it can see harm, it says the same twice. A few programs on one GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyshim.policy.gpus import known
from tools.bench.suites.arms import Bench
from tools.bench.suites.programs import PROGRAMS, SHAPES
from tools.bench.suites.rows import GPUS, Row, measured, policies_of

CHOSEN = ("no-communication/gemm", "one-long-kernel/wide", "data-parallel/gemm", "captured/gemm")
BAD = """policy: 1
name: bad
streams: {raise: auto}
compute:
  - match: {kernel: "*"}
    shape: {blocks_per_sm: 1}
    when: always
"""


def run(*policies: str, names: tuple[str, ...] = CHOSEN) -> list[Row]:
    return measured(["h100"], [program for program in PROGRAMS if program.name in names], policies)


@pytest.fixture(scope="module")
def rows(built: None) -> list[Row]:
    return run("h100", "observe")


def test_what_each_arm_does_is_in_its_row(rows: list[Row]) -> None:
    arms = [(name, policy) for name in CHOSEN for policy in ("h100", "observe")]
    assert sorted((row.program, row.policy) for row in rows) == sorted(arms)
    by = {(row.program, row.policy): row for row in rows}
    assert all(row.change == row.shaped == 0 < row.launches for row in rows if row.policy == "observe")
    layers = by["data-parallel/gemm", "h100"]
    assert layers.change < -5 and layers.priority < -5 and layers.raised > 0 and layers.default


def test_the_same_row_twice(rows: list[Row]) -> None:
    assert run("h100", "observe") == rows


def test_it_sees_harm(built: None, tmp_path: Path) -> None:
    policy = tmp_path / "bad.yaml"
    policy.write_text(BAD)
    (row,) = run(str(policy), names=CHOSEN[:1])
    assert row.change > 10 and row.shaped == row.launches, row


def test_every_gpu_has_its_default_and_paper_policies() -> None:
    for key in ("a40", "a100", "h100", "h200"):
        assert policies_of(key) == (key, f"{key}-paper")
    assert set(GPUS) == {"a40", "a100", "h100", "h200"}


def test_ten_shapes_of_three_programs_or_more() -> None:
    assert len(SHAPES) >= 10
    assert all(len(shape.steps) >= 3 for shape in SHAPES)
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 30


@pytest.fixture(scope="session")
def bench(built: None, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = Bench(tmp_path_factory.mktemp("bench"), os.environ)
    made.prepare(next(gpu for gpu in known() if gpu.key == "h100"))
    return made


def test_a_plain_program_runs_once_because_no_rule_acts_in_it(bench: Bench) -> None:
    gpu = next(gpu for gpu in known() if gpu.key == "h100")
    program = next(program for program in PROGRAMS if program.name == "data-parallel/attention")
    assert bench.bare(program, gpu, "hold", "plain") == bench.bare(program, gpu, "backfill", "plain")


RING = "c:ncclDevKernel_AllReduce_Sum_bf16_RING_LL:24:544:82240"
TREE = RING.replace("_RING_", "_TREE_").replace(":544:", ":640:")
SENDS = "c:ncclDevKernel_SendRecv:24:640:82240"


@pytest.mark.parametrize(
    ("word", "variables", "threads", "cluster"),
    [
        (RING, {}, 544, 4),
        (RING, {"NCCL_CGA_CLUSTER_SIZE": "0"}, 544, 1),
        (RING, {"NCCL_CGA_CLUSTER_SIZE": "1", "NCCL_NTHREADS": "256"}, 288, 1),
        (RING.replace(":24:", ":23:"), {}, 544, 1),
        (TREE, {"NCCL_NTHREADS": "256"}, 640, 4),
        (TREE, {"NCCL_NTHREADS": "256", "NCCL_ALGO": "Ring"}, 288, 4),
        (SENDS, {"NCCL_NTHREADS": "256", "NCCL_ALGO": "Ring"}, 640, 4),
    ],
)
def test_variables_of_nccl_act_as_in_nccl(
    bench: Bench, tmp_path: Path, word: str, variables: Mapping[str, str], threads: int, cluster: int
) -> None:
    from pyshim import _native
    from pyshim.start.environment import Settings, environment

    settings = Settings(simulated_driver=str(_native.SIMULATED_DRIVER.parent), simulated_gpu="h100:hold,1")
    launches = tmp_path / "launches"
    names = {**environment(bench.base, settings), **variables, "SIMGPU_LAUNCHES": str(launches)}
    command = [str(bench.folder / "suite-program"), str(bench.folder / "h100.cubin"), "plain", "1", "stream", word]
    subprocess.run(command, env=names, check=True, capture_output=True)
    (launch,) = [json.loads(line) for line in launches.read_text().splitlines()]
    assert (launch["threads"], launch["dynamic_shared"]) == (threads, 82240)
    assert max(1, launch["cluster"]) == cluster
