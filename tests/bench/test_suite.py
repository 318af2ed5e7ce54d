"""The suite: its rows are right, it can see harm, it says the same twice. A few programs on one GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Suite = Callable[..., "subprocess.CompletedProcess[str]"]
COMMAND = Path(__file__).resolve().parents[2] / "tools" / "bench" / "suite"
PROGRAMS = ("no-communication/gemm", "one-long-kernel/wide", "data-parallel/gemm", "captured/gemm")
SELECTED = ("--gpu", "h100", "--program", ",".join(PROGRAMS), "--policy", "h100,observe")
KEYS = {
    *(
        "program",
        "step",
        "gpu",
        "rule",
        "policy",
        "change_percent",
        "first_change_percent",
        "shaped_share",
        "ideal_share",
    ),
    *("policy_ms", "plain_ms", "priority_ms", "sequential_ms", "ideal_ms", "priority_change_percent"),
    *("sequential_change_percent", "launches", "shaped", "raised", "reasons", "default", "simulated"),
}
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
    assert sorted(found) == sorted(
        (program, "h100", rule, policy)
        for program in PROGRAMS
        for rule in ("hold", "backfill")
        for policy in ("h100", "observe")
    )
    for row in rows:
        assert set(row) == KEYS
        assert row["simulated"] is True
        assert row["default"] is (row["policy"] == "h100")
        assert 0 <= row["shaped_share"] <= 1
        assert 0 < row["ideal_share"] <= 1.01
        assert row["launches"] == sum(row["reasons"].values())
        change = 100 * (row["policy_ms"] - row["plain_ms"]) / row["plain_ms"]
        assert row["change_percent"] == pytest.approx(change, abs=0.01)
        assert 0 < row["ideal_ms"] <= row["sequential_ms"] * 1.001


def test_observing_changes_nothing(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["policy"] == "observe":
            assert (row["change_percent"], row["shaped"], row["raised"]) == (0, 0, 0), row


def test_arms_differ_where_they_should(rows: list[dict[str, Any]]) -> None:
    by = {(row["program"], row["rule"], row["policy"]): row for row in rows}
    alone = by["no-communication/gemm", "hold", "observe"]
    assert alone["sequential_ms"] == alone["plain_ms"] == alone["ideal_ms"]
    layers = by["data-parallel/gemm", "hold", "h100"]
    assert layers["ideal_ms"] < layers["priority_ms"] < layers["plain_ms"] < layers["sequential_ms"]
    # Clusters of four find no room while freed places are refilled: priority alone gains nothing.
    assert by["data-parallel/gemm", "backfill", "h100"]["priority_change_percent"] == pytest.approx(0, abs=0.5)


def test_the_same_row_twice(suite: Suite, rows: list[dict[str, Any]]) -> None:
    assert _rows(suite(*SELECTED, "--json", "--jobs", "1")) == rows


def test_it_sees_harm(suite: Suite, tmp_path: Path) -> None:
    policy = tmp_path / "bad.yaml"
    policy.write_text(BAD)
    found = _rows(suite("--json", "--gpu", "h100", "--policy", str(policy), "--program", "no-communication/gemm"))
    assert {row["rule"] for row in found} == {"hold", "backfill"}
    for row in found:
        assert row["change_percent"] > 10, row
        assert row["shaped_share"] == 1


def test_a_policy_for_another_gpu_only_observes(suite: Suite) -> None:
    asked = ("--gpu", "a100", "--policy", "h100-paper", "--program", "data-parallel/gemm", "--rule", "hold")
    (row,) = _rows(suite("--json", *asked))
    assert (row["policy"], row["gpu"], row["change_percent"]) == ("h100-paper", "a100", 0)
    assert (row["shaped"], row["raised"], row["default"]) == (0, 0, False)


def test_the_table_puts_policies_side_by_side(suite: Suite) -> None:
    done = suite("--gpu", "a40", "--rule", "backfill", "--program", "one-long-kernel/wide", "--check")
    assert done.returncode == 0, done.stdout
    head = next(line for line in done.stdout.splitlines() if line.startswith("program"))
    for name in ("plain ms", "ideal ms", "sequential", "priority", "a40", "a40-paper", "a40-paper-windows", "of ideal"):
        assert name in head
    assert "simulated a40, dispatch rule backfill" in done.stdout
    assert "no default policy loses more than 1 %" in done.stdout
    assert "all of it simulated" in done.stderr


def test_the_picture_has_a_bar_for_each_program_by_change(suite: Suite, tmp_path: Path) -> None:
    target = tmp_path / "suite.svg"
    found = _rows(suite(*SELECTED, "--json", "--rule", "hold", "--picture", str(target)))
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.parse(target).getroot()
    assert "imulated" in (root.findtext(f"{space}title") or "")
    panels = root.findall(f"{space}g")
    assert len(panels) == 2  # policies
    for panel, policy in zip(panels, ("h100", "observe")):
        bars = [bar for bar in panel.iter(f"{space}g") if bar.get("class") == "program"]
        changes = [float(bar.get("data-change", "nan")) for bar in bars]
        assert changes == sorted(row["change_percent"] for row in found if row["policy"] == policy)
        assert sorted(bar.get("data-program", "") for bar in bars) == sorted(PROGRAMS)


def test_a_trace_of_every_run(suite: Suite, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    asked = ("--gpu", "h100", "--rule", "hold", "--policy", "h100", "--program", "one-long-kernel/wide")
    assert suite(*asked, "--timeline", str(folder)).returncode == 0
    names = ("sequential", "plain", "compute", "communication", "priority", "h100")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"one-long-kernel-wide-h100-hold-{name}.json" for name in names
    )
    trace = json.loads((folder / "one-long-kernel-wide-h100-hold-plain.json").read_text())
    kernels = [event for event in trace if event["ph"] == "X"]
    assert {event["cat"] for event in kernels} == {"computation", "communication"}
    assert len({event["tid"] for event in kernels}) == 2
    assert all(event["dur"] > 0 for event in kernels)


@pytest.mark.parametrize(
    ("option", "word", "says"),
    [
        ("--gpu", "h10", "known: a40, l40s, a100"),
        ("--gpu", "mi250x", "known: a40"),
        ("--rule", "fair", "known: hold, drain, backfill"),
        ("--policy", "h100-papr", "did you mean h100-paper?"),
        ("--program", "one-long-kernel/nothing", "did you mean one-long-kernel/"),
        ("--jobs", "0", "a number from 1"),
        ("--invent", "0", "a number from 1"),
        *((option, "", f"{option} has an empty name") for option in ("--gpu", "--rule", "--policy", "--program")),
        ("--gpu", "h100,", "--gpu has an empty name"),
        ("--timeline", "", "--timeline has an empty name"),
        ("--seed", "3", "--invent 100 --seed 1"),
        ("--picture", "suite.png", "does not end in .svg"),
        ("--picture", "", "does not end in .svg"),
        ("--picture", "nowhere/suite.svg", "there is no folder nowhere"),
        ("--policy", "h100-paper-window", "did you mean h100-paper-windows?"),
    ],
)
def test_unknown_names_are_refused_with_a_next_step(suite: Suite, option: str, word: str, says: str) -> None:
    done = suite(option, word)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_ten_shapes_of_three_programs_or_more() -> None:
    from tools.bench.suites.programs import PROGRAMS, SHAPES

    assert len(SHAPES) >= 10
    assert all(len(shape.steps) >= 3 for shape in SHAPES)
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 30


def test_invented_programs_are_the_same_for_the_same_seed(suite: Suite) -> None:
    asked = ("--gpu", "a100", "--rule", "hold", "--policy", "observe", "--invent", "3", "--seed", "7", "--json")
    first = _rows(suite(*asked))
    assert [row["program"] for row in first] == ["invented/7-1", "invented/7-2", "invented/7-3"]
    assert len({row["step"] for row in first}) == 3
    assert _rows(suite(*asked)) == first


def test_a_default_policy_that_harms_is_named(rows: list[dict[str, Any]]) -> None:
    from tools.bench.suites.rows import Row, harmed
    from tools.bench.suites.text import verdict

    made = [Row(**row) for row in rows]
    assert harmed(made) == []
    worse = [replace(row, change_percent=1.5) for row in made]
    assert harmed(worse) == [row for row in worse if row.default]
    assert "h100, hold, data-parallel/gemm: +1.5%" in verdict(worse)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pyshim.policy.gpus import known
    from tools.bench.suites.arms import Bench

    made = Bench(tmp_path_factory.mktemp("bench"), os.environ)
    made.prepare(next(gpu for gpu in known() if gpu.key == "h100"))
    return made


def test_bare_arms_are_run_once_because_no_rule_acts_in_them(bench: Any) -> None:
    from pyshim.policy.gpus import known
    from tools.bench.suites.arms import BARE
    from tools.bench.suites.programs import PROGRAMS

    gpu = next(gpu for gpu in known() if gpu.key == "h100")
    program = next(program for program in PROGRAMS if program.name == "data-parallel/attention")
    for arm in BARE:
        assert bench.bare(program, gpu, "hold", arm) == bench.bare(program, gpu, "backfill", arm)


RING = "c:ncclDevKernel_AllReduce_Sum_bf16_RING_LL:24:544:82240"
SENDS = "c:ncclDevKernel_SendRecv:24:640:82240"


@pytest.mark.parametrize(
    ("word", "variables", "threads", "cluster"),
    [
        (RING, {}, 544, 4),
        (RING, {"NCCL_CGA_CLUSTER_SIZE": "0"}, 544, 1),
        (RING, {"NCCL_CGA_CLUSTER_SIZE": "1", "NCCL_NTHREADS": "256"}, 288, 1),
        (RING.replace(":24:", ":23:"), {}, 544, 1),
        (RING.replace("_RING_", "_TREE_").replace(":544:", ":640:"), {"NCCL_NTHREADS": "256"}, 640, 4),
        (
            RING.replace("_RING_", "_TREE_").replace(":544:", ":640:"),
            {"NCCL_NTHREADS": "256", "NCCL_ALGO": "Ring"},
            288,
            4,
        ),
        (SENDS, {"NCCL_NTHREADS": "256", "NCCL_ALGO": "Ring"}, 640, 4),
    ],
)
def test_variables_of_nccl_act_as_in_nccl(
    bench: Any, tmp_path: Path, word: str, variables: Mapping[str, str], threads: int, cluster: int
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


def test_it_starts_from_anywhere() -> None:
    """As a command of its own, with whatever Python comes first."""
    done = subprocess.run([str(COMMAND), "--help"], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--picture" in done.stdout
