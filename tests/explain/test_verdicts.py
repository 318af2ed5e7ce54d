"""The verdict: one of a fixed list, with its number, whatever a trace holds; never one that the trace refutes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pyshim.diagnosis.verdict import VERDICTS
from tests.explain.steps import GPU, SMALL, WAVE, Step, trace


def one_stream(step: Step) -> None:
    step.kernel("gemm", 0, 600)
    step.kernel("norm", 600, 400)


def late_host(step: Step) -> None:
    step.kernel("gemm", 0, 500)
    step.kernel("norm", 900, 100, called=880)


def waited_at_once(step: Step) -> None:
    """An all-gather begins when the product before it has ended, and the next product waits for it."""
    step.kernel("gemm", 0, 400)
    step.wait(20, 2)
    step.collective("AllGather", 402, 300)
    step.wait(7, 4)
    step.kernel("gemm", 704, 296)


def same_stream(step: Step) -> None:
    step.kernel("gemm", 0, 400)
    step.collective("AllReduce", 402, 300, stream=7)
    step.kernel("gemm", 704, 296)


def one_wave(step: Step) -> None:
    """The host waits for small work behind a kernel whose blocks all run at once."""
    step.kernel("persistent", 5, 900, blocks=WAVE)
    step.kernel("small", 900, 20, stream=30, blocks=SMALL, called=3)
    step.copy(935, 10, stream=30, called=5)
    step._add(
        "cuda_sync", "Stream Sync", 8, 940, 0, 30, stream=30, correlation=step.call("cudaStreamSynchronize", 8, 940)
    )


def copies(step: Step) -> None:
    step.copy(0, 600)
    step.wait(7, 2)
    step.kernel("gemm", 602, 398)


def too_long(step: Step) -> None:
    """A reduce-scatter begins beside computation, and lasts longer."""
    step.kernel("gemm", 0, 300)
    step.collective("ReduceScatter", 100, 600, called=97)
    step.wait(7, 4)
    step.kernel("optimizer", 704, 296)


def nothing_known(step: Step) -> None:
    """Work is queued, and no wait of any kind is recorded."""
    step.kernel("long", 5, 600)
    step.kernel("short", 595, 9, stream=30, blocks=SMALL, called=3)
    step.kernel("next", 606, 394, called=4)


def raised(step: Step) -> None:
    """What communicates stands behind a long kernel, and another stream waits for it."""
    step.kernel("interior", 5, 700, stream=15)
    step.kernel("boundary", 700, 20, stream=20, blocks=SMALL, called=3)
    step.collective("SendRecv", 721, 200, called=5)
    step.wait(15, 7)


def computes(step: Step) -> None:
    step.kernel("gemm", 0, 1000)
    step.collective("AllReduce", 100, 300)


CASES = [
    (one_stream, "no: one stream", "100 % of the work is on stream 7"),
    (late_host, "no: the host is late", "the GPU is idle 40 % of a step"),
    (waited_at_once, "no: waited for at once", "0.300 of 0.300 ms of all-gathers"),
    (same_stream, "no: the same stream", "0.300 of 0.300 ms of all-reduces"),
    (one_wave, "no: one wave", "for 89 % of a step work is queued, ready to run, behind kernels of one wave (all "),
    (copies, "no: copies", "they take 60 % of a step"),
    (too_long, "no: too much communication", "0.400 of 0.600 ms of reduce-scatters"),
    (
        nothing_known,
        "not known",
        "for 59 % of a step work is queued, ready to run, behind other work, and the trace records no ",
    ),
    (raised, "yes", "raise stream 20, about 30 % of a step"),
    (computes, "no: computation", "it fills 100 % of a step"),
]


@pytest.mark.parametrize(("step", "verdict", "number"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_holds_a_step_up(of_steps: Any, step: Any, verdict: str, number: str) -> None:
    found = of_steps(step)
    assert found["verdict"] == verdict and verdict in VERDICTS, found["verdicts"]
    assert number in found["verdicts"][0]["text"]
    assert found["next"]


def test_every_verdict_has_its_case() -> None:
    assert {verdict for _, verdict, _ in CASES} | {"no: late ranks"} == set(VERDICTS), "late ranks: test_ranks.py"


def test_the_reference_lists_every_verdict() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference.md").read_text(encoding="utf-8")
    table = page.partition("## Answers of overlap explain")[2].partition("Then follow")[0]
    assert tuple(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == VERDICTS


def test_what_costs_most_leads_and_the_others_follow(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.copy(0, 100)
        one.wait(7, 2)
        one.kernel("gemm", 102, 298)
        one.kernel("norm", 900, 100, called=880)

    found = of_steps(step)
    assert [one["kind"] for one in found["verdicts"]][:2] == ["no: the host is late", "no: copies"]
    assert [round(one["cost_us"]) for one in found["verdicts"]][:2] == [500, 100]


def test_where_raising_helps_nothing_denies_it(of_steps: Any) -> None:
    """Although the host costs more."""

    def step(one: Step) -> None:
        raised(one)
        one.kernel("late", 2900, 100, stream=15, called=2890)

    found = of_steps(step, length=3000.0)
    kinds = [one["kind"] for one in found["verdicts"]]
    assert kinds[0] == "yes" and kinds[1] == "no: the host is late"
    assert found["verdicts"][1]["cost_us"] > found["verdicts"][0]["cost_us"]


@pytest.mark.parametrize("told", ["none", "calls", "rows"])
def test_an_idle_gpu_refutes_that_work_was_ready(of_steps: Any, told: str) -> None:
    """The collective seems ready once the last product but one has ended; then the GPU is idle, and does not begin."""

    def step(one: Step) -> None:
        for number in range(4):
            one.kernel("gemm", 100 + 260 * number, 200, called=1 + 2 * number)
        if told == "calls":
            one.call("cudaStreamWaitEvent", 10)
        elif told == "rows":
            one.wait(20, 10)
        one.collective("AllReduce", 1050, 600, called=12)

    found = of_steps(step, length=2000.0)
    kinds = [one["kind"] for one in found["verdicts"]]
    assert "yes" not in kinds and found["process"]["saves_us"] == 0
    assert "not known" in kinds and found["process"]["refuted_us"] > 100


def test_a_gpu_that_begins_slowly_refutes_nothing(of_steps: Any) -> None:
    """It is idle when work is launched, and takes 80 us to begin with any of it."""

    def step(one: Step) -> None:
        one.kernel("long", 100, 600, called=10)
        one.kernel("short", 690, 9, stream=30, blocks=SMALL, called=20)

    found = of_steps(step)
    assert found["process"]["refuted_us"] == 0 and found["process"]["unclaimed_us"] == pytest.approx(590, abs=80)


def test_work_behind_one_wave_is_no_reason_to_record_again(of_steps: Any) -> None:
    """Whatever waits for it, no priority shortens it."""

    def step(one: Step) -> None:
        one.call("cudaEventQuery", 0.5)
        one.kernel("persistent", 5, 900, blocks=WAVE)
        one.kernel("small", 900, 50, stream=30, blocks=SMALL, called=100)

    found = of_steps(step)
    assert found["verdict"] == "no: one wave"
    assert found["verdicts"][0]["cost_us"] == pytest.approx(800, abs=10)


# ---- hostile traces ----


def test_one_kernel(of_steps: Any) -> None:
    found = of_steps(lambda step: step.kernel("alone", 0, 5, called=None), count=1, marks=False)
    assert found["verdict"] == "no: one stream" and found["process"]["span_us"] == 5


def test_only_copies(of_steps: Any) -> None:
    found = of_steps(lambda step: step.copy(0, 700))
    assert found["verdict"] == "no: copies" and found["process"]["shares"]["copies_us"] == pytest.approx(700)


def test_only_communication(of_steps: Any) -> None:
    found = of_steps(lambda step: step.collective("AllReduce", 0, 700, called=None))
    assert found["process"]["shares"]["exposed_us"] == pytest.approx(700) and found["verdict"] == "not known"


@pytest.mark.parametrize("length", [0.0, 1e-9])
def test_work_of_no_length(of_steps: Any, length: float) -> None:
    found = of_steps(lambda step: step.kernel("empty", 3, length), count=1, marks=False)
    assert found["verdict"] in VERDICTS


def test_steps_of_no_length(explained: Any, tmp_path: Any) -> None:
    found = explained(trace(tmp_path / "t.json", lambda step: step.kernel("k", 0, 10), length=0.0))
    assert found["verdict"] in VERDICTS


def test_kernels_that_run_beside_themselves(of_steps: Any) -> None:
    """Records that overlap on one stream, the later one inside the earlier."""

    def step(one: Step) -> None:
        one.kernel("outer", 0, 900)
        one.kernel("inner", 100, 100)
        one.collective("AllReduce", 50, 900)
        one.collective("AllGather", 60, 30)

    shares = of_steps(step)["process"]["shares"]
    assert (shares["computation_us"], shares["hidden_us"]) == (pytest.approx(50), pytest.approx(850))
    assert shares["exposed_us"] == pytest.approx(50)


def test_two_gpus_of_which_one_does_nothing_but_copy(explained: Any, tmp_path: Any) -> None:
    """It is no GPU whose idle time counts."""

    def step(one: Step) -> None:
        one.kernel("gemm", 0, 1000)
        one.copy(10, 5, device=1)

    (process,) = explained(trace(tmp_path / "t.json", step, devices=[GPU, {**GPU, "id": 1}]))["processes"]
    assert process["devices"] == [0] and process["shares"]["idle_us"] == pytest.approx(0)


def test_a_stream_that_may_be_a_default_one(of_steps: Any) -> None:
    """torch.profiler does not say which are: 7 is that of the first GPU, of another one it has the smallest number."""

    def step(one: Step) -> None:
        one.kernel("long", 5, 800, stream=30, device=1)
        one.kernel("short", 780, 10, stream=15, blocks=SMALL, called=3, device=1)
        one.collective("SendRecv", 806, 100, stream=15, called=5, device=1)

    found = of_steps(step, devices=[GPU, {**GPU, "id": 1}])
    assert found["verdict"] == "yes" and found["next"].startswith(
        "if 15 is the default stream of GPU 1, put this work on"
    )
