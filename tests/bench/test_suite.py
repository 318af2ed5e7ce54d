"""The suite: its rows are right, it can see harm, it says the same twice. A few programs on one GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyshim.policy.gpus import known
from tools.bench.suites.__main__ import policies_of, verdict
from tools.bench.suites.arms import Bench
from tools.bench.suites.programs import PROGRAMS, SHAPES
from tools.bench.suites.rows import Row, harmed

Suite = Callable[..., "subprocess.CompletedProcess[str]"]
CHOSEN = ("no-communication/gemm", "one-long-kernel/wide", "data-parallel/gemm", "captured/gemm")
ASKED = ("--gpu", "h100", *(word for name in CHOSEN for word in ("--program", name)))
SELECTED = (*ASKED, "--rule", "hold", "--rule", "backfill", "--policy", "h100", "--policy", "observe")
KEYS = {"gpu", "rule", "policy", "program", "change", "first", "priority", "launches", "shaped", "raised"}
BAD = """policy: 1
name: bad
streams: {raise: auto}
compute:
  - match: {kernel: "*"}
    shape: {blocks_per_sm: 1}
    when: always
"""


@pytest.fixture(scope="session")
def rows(suite: Suite) -> list[dict[str, Any]]:
    return _rows(suite(*SELECTED, "--json"))


def _rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_row_for_each_program_gpu_rule_and_policy(rows: list[dict[str, Any]]) -> None:
    found = [(row["program"], row["gpu"], row["rule"], row["policy"]) for row in rows]
    rules, policies = ("hold", "backfill"), ("h100", "observe")
    expected = [(program, "h100", rule, policy) for program in CHOSEN for rule in rules for policy in policies]
    assert sorted(found) == sorted(expected)
    assert all(set(row) == KEYS and row["launches"] > 0 for row in rows)


def test_what_each_arm_does_is_in_its_row(rows: list[dict[str, Any]]) -> None:
    by = {(row["program"], row["rule"], row["policy"]): row for row in rows}
    assert all(row["change"] == row["raised"] == row["shaped"] == 0 for row in rows if row["policy"] == "observe")
    layers = by["data-parallel/gemm", "hold", "h100"]
    assert layers["change"] < -5 and layers["priority"] < -5 and layers["raised"] > 0
    # Clusters of four find no room while freed places are refilled: priority alone gains nothing.
    assert by["data-parallel/gemm", "backfill", "h100"]["priority"] == pytest.approx(0, abs=0.5)


def test_the_same_row_twice(suite: Suite, rows: list[dict[str, Any]]) -> None:
    assert _rows(suite(*SELECTED, "--json")) == rows


def test_it_sees_harm(suite: Suite, tmp_path: Path) -> None:
    policy = tmp_path / "bad.yaml"
    policy.write_text(BAD)
    (row,) = _rows(suite("--json", "--gpu", "h100", "--policy", str(policy), "--program", CHOSEN[0]))
    assert row["change"] > 10 and row["shaped"] == row["launches"], row


def test_a_default_policy_that_harms_is_named(rows: list[dict[str, Any]]) -> None:
    made = [Row(**row) for row in rows]
    assert harmed(made) == []
    worse = [replace(row, change=1.5) for row in made]
    assert harmed(worse) == [row for row in worse if row.default]
    assert any("h100, hold, data-parallel/gemm: +1.5 %" in line for line in verdict(worse))


def test_the_table_has_a_line_for_each_policy(suite: Suite) -> None:
    done = suite("--gpu", "a40", "--rule", "backfill", "--program", "one-long-kernel", "--check")
    assert done.returncode == 0, done.stdout
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("a40 ")]
    assert [line[:3] for line in lines] == [["a40", "backfill", "a40"], ["a40", "backfill", "a40-paper"]]
    best, median, worst = (float(value.rstrip("%")) for value in lines[0][3:6])
    assert best <= median <= worst and lines[0][6] == "0" and lines[0][7].startswith("one-long-kernel/")
    assert done.stdout.startswith("Simulated change") and "no default policy loses more than 1 %" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--gpu", "h10"), "invalid choice: 'h10'"),
        (("--gpu", "mi250x"), "invalid choice: 'mi250x'"),
        (("--rule", "fair"), "invalid choice: 'fair'"),
        (("--program", "one-long-kernel/nothing"), "invalid choice: 'one-long-kernel/nothing'"),
        (("--policy", "h100-papr"), "no policy is called 'h100-papr'"),
        (("--policy", "observe", "--check"), "--check looks at default policies, and none is among these"),
    ],
)
def test_unknown_names_are_refused(suite: Suite, words: tuple[str, ...], says: str) -> None:
    done = suite(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr and "Traceback" not in done.stderr


def test_every_gpu_has_its_default_and_paper_policies() -> None:
    for key in ("a40", "a100", "h100", "h200"):
        assert policies_of(key) == (key, f"{key}-paper")
    assert policies_of("b200") == ("b200",)
    assert policies_of("h100", ["h100", "a100-paper", "observe"]) == ("h100", "observe")


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
    from pyshim.launch.environment import Settings, environment

    settings = Settings(simulated_driver=str(_native.SIMULATED_DRIVER.parent), simulated_gpu="h100:hold,1")
    launches = tmp_path / "launches"
    names = {**environment(bench.base, settings), **variables, "SIMGPU_LAUNCHES": str(launches)}
    command = [str(bench.folder / "suite-program"), str(bench.folder / "h100.cubin"), "plain", "1", "stream", word]
    subprocess.run(command, env=names, check=True, capture_output=True)
    (launch,) = [json.loads(line) for line in launches.read_text().splitlines()]
    assert (launch["threads"], launch["dynamic_shared"]) == (threads, 82240)
    assert max(1, launch["cluster"]) == cluster
