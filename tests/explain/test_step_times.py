"""Where the time of a step goes, why communication is exposed, and why the GPU is idle."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.explain.steps import LENGTH, WAVE, Step, trace


def shares(found: dict[str, Any]) -> dict[str, float]:
    return {name.removesuffix("_us"): value for name, value in found["process"]["shares"].items()}


def idle(found: dict[str, Any]) -> dict[str, float]:
    return {name.removesuffix("_us"): value for name, value in found["process"]["idle"].items()}


def causes(found: dict[str, Any], name: str) -> dict[str, float]:
    (one,) = (one for one in found["process"]["collectives"] if one["name"] == name)
    return dict(one["causes"])


# ---- shares ----


def test_each_moment_is_of_one_kind(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("gemm", 0, 300)
        one.collective("AllReduce", 200, 300)
        one.copy(100, 500)
        one.copy(650, 50)

    assert shares(of_steps(step)) == pytest.approx(
        {"computation": 200, "hidden": 100, "exposed": 200, "communication": 300, "copies": 150, "idle": 350}
    )


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_those_of_a_count_of_moments(explained: Any, tmp_path: Path, seed: int) -> None:
    """Against what a loop over whole microseconds counts, for work that begins and ends anywhere."""
    chance = random.Random(seed)
    work = [(chance.choice("cxm"), start := chance.randrange(900), chance.randrange(1, 990 - start)) for _ in range(12)]

    def step(one: Step) -> None:
        for index, (kind, start, length) in enumerate(work):
            if kind == "c":
                one.kernel("gemm", start, length, stream=30 + index)
            elif kind == "x":
                one.collective("AllReduce", start, length, stream=60 + index)
            else:
                one.copy(start, length, stream=90 + index)

    counted = dict.fromkeys(("computation", "hidden", "exposed", "copies", "idle"), 0)
    for moment in range(int(LENGTH)):
        runs = {kind for kind, start, length in work if start <= moment < start + length}
        kind = "hidden" if {"c", "x"} <= runs else "computation" if "c" in runs else "exposed" if "x" in runs else ""
        counted[kind or ("copies" if runs else "idle")] += 1
    (process,) = explained(trace(tmp_path / "t.json", step))["processes"]
    assert {name: process["shares"][f"{name}_us"] for name in counted} == pytest.approx(counted)


def test_a_trace_without_steps_is_answered_as_a_whole(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel(f"k{one.at}", 0, 700, stream=7)

    found = of_steps(step, marks=False)
    assert found["process"]["steps"] is None and found["process"]["span_us"] == pytest.approx(4 * LENGTH + 700)
    assert "of the trace" in found["verdicts"][0]["text"]


def test_ranges_inside_steps_are_no_steps(explained: Any, tmp_path: Path) -> None:
    def step(one: Step) -> None:
        one.kernel("gemm", 0, 900)
        for part in range(3):
            one.range(f"layer {part}", 300 * part, 290)

    (process,) = explained(trace(tmp_path / "t.json", step))["processes"]
    assert (process["steps"], process["span_us"]) == ("ProfilerStep#", pytest.approx(LENGTH))


# ---- idle ----


def test_the_host_is_late_from_the_start_of_the_gap_to_that_of_the_work(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("first", 0, 400)
        one.kernel("second", 700, 300, called=690)

    assert idle(of_steps(step))["host"] == pytest.approx(300)


def test_what_was_launched_ahead_begins_after_a_short_gap(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("first", 0, 490)
        one.kernel("second", 500, 500)

    found = idle(of_steps(step))
    assert (found["start"], found["host"]) == (pytest.approx(10), 0)


def test_the_host_that_waited_for_the_gpu(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("first", 0, 400)
        one.call("cudaStreamSynchronize", 10, 395)
        one.kernel("second", 700, 300, called=690)

    found = of_steps(step)
    assert idle(found)["after_wait"] == pytest.approx(300)
    assert found["next"].startswith("the host waits for the GPU and only then launches more")


def test_the_longest_gap_has_the_name_of_what_the_host_did(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("first", 0, 400)
        one.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 300, 380)
        one.kernel("second", 700, 300, called=690)

    found = of_steps(step)
    assert found["process"]["idle"]["longest_in"].startswith("enumerate(DataLoader)")
    assert "prefetch_factor" in found["next"]


def test_many_short_gaps_are_launches(of_steps: Any) -> None:
    def step(one: Step) -> None:
        for number in range(20):
            one.kernel("small", 50 * number + 40, 10, called=50 * number + 36)

    assert "are launches: a CUDA graph" in of_steps(step)["next"]


def test_an_idle_gpu_without_calls_is_not_known(of_steps: Any) -> None:
    found = of_steps(lambda one: one.kernel("gemm", 0, 600, called=None))
    assert found["verdict"] == "not known" and idle(found)["unknown"] == pytest.approx(400)


# ---- exposed communication ----


def test_the_host_that_had_not_launched_the_computation(of_steps: Any) -> None:
    """The next product is launched 200 us after the collective began; then it begins beside it."""

    def step(one: Step) -> None:
        one.kernel("gemm", 0, 300)
        one.collective("AllReduce", 302, 400)
        one.kernel("gemm", 510, 490, called=500)

    found = causes(of_steps(step), "all-reduce")
    assert found == {"the host is late": pytest.approx(200), "started only when needed": pytest.approx(8)}


def test_a_collective_behind_its_predecessor(of_steps: Any) -> None:
    """It was ready behind the first one for 49 us, in which computation ran; the rest is exposed anyway."""

    def step(one: Step) -> None:
        one.kernel("gemm", 0, 400, called=1)
        one.collective("AllReduce", 5, 300, called=3)
        one.collective("AllGather", 306, 300, called=255)
        one.wait(7, 260)
        one.kernel("gemm", 610, 390, called=262)

    found = of_steps(step)
    assert causes(found, "all-gather") == {
        "too much communication": pytest.approx(49 + 157),
    }


def test_a_collective_behind_a_kernel_of_one_wave(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("persistent", 5, 400, blocks=WAVE)
        one.collective("AllReduce", 400, 300, called=100)
        one.wait(7, 110)
        one.kernel("gemm", 715, 280, called=112)

    found = causes(of_steps(step), "all-reduce")
    assert found["behind one wave"] == pytest.approx(300, abs=10) and set(found) <= {
        "behind one wave",
        "started only when needed",
    }


def test_collectives_of_two_groups_that_overlap_count_once(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.collective("AllReduce", 0, 400, stream=20)
        one.collective("AllGather", 200, 400, stream=21)
        one.kernel("gemm", 600, 400)

    found = {one["name"]: one["exposed_us"] for one in of_steps(step)["process"]["collectives"]}
    assert found == {"all-reduce": pytest.approx(400), "all-gather": pytest.approx(200)}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "all-reduce"),
        ("ncclKernel_ReduceScatter_RING_LL128_Sum_int8_t(x)", "reduce-scatter"),
        ("ncclDevKernel_AllGather_RING_LL(x)", "all-gather"),
        ("ncclDevKernel_SendRecv(x)", "send and receive"),
        ("ncclDevKernel_Generic_1(x)", "collective"),
        ("ncclDevKernel_Broadcast_RING_LL(x)", "broadcast"),
        ("void vllm::cross_device_reduce_1stage<bf16, 4>(x)", "all-reduce"),
    ],
)
def test_the_usual_name_of_a_collective(of_steps: Any, kernel: str, name: str) -> None:
    def step(one: Step) -> None:
        one.kernel("gemm", 0, 500)
        one.kernel(kernel, 500, 500, stream=20, blocks=16)

    (found,) = of_steps(step)["process"]["collectives"]
    assert (found["name"], found["count"]) == (name, 1)
