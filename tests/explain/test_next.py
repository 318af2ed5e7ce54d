"""What to do next: commands that fit the program of the trace, and no option of a framework that is not in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pyshim.profiles.chrome import KinetoTrace
from tests.explain.steps import LARGE, LENGTH, Step, trace
from tests.explain.test_verdicts import CASES, nothing_known, one_wave, raised, too_long, waited_at_once

ROOT = Path(__file__).resolve().parents[2]
FRAMEWORKS = re.compile(r"DDP|FSDP|HSDP|Megatron|TorchRec|bucket_cap|DataLoader|torch|\.item\(\)")


def of_torch(step: Any) -> Any:
    """Return the same step of a program of PyTorch."""

    def more(one: Step) -> None:
        step(one)
        one._add("cpu_op", "aten::mm", 1.0, 1.0, 90, 90)

    return more


@pytest.mark.parametrize("step", [step for step, _, _ in CASES])
def test_no_framework_is_named_that_is_not_in_the_trace(of_steps: Any, step: Any) -> None:
    found = of_steps(step, marks=False)["next"]
    assert not FRAMEWORKS.search(found.replace("torch.profiler", "")), found
    torch = of_steps(of_torch(step))["next"]
    assert not re.search("DDP|FSDP|HSDP|Megatron|TorchRec|bucket_cap|DataLoader", torch), torch


@pytest.mark.parametrize("kind", ["FSDP::all_gather", "FullyShardedDataParallel.forward"])
def test_the_framework_of_the_trace_is_named(of_steps: Any, kind: str) -> None:
    def step(one: Step) -> None:
        waited_at_once(one)
        one.range(kind, 10.0, 5.0)

    assert "FSDP" in of_steps(step)["next"]


@pytest.mark.parametrize(("thousandths", "said"), [(0.6, "0.1 %"), (0.4, "less than 0.1 %"), (12, "1.2 %")], ids=str)
def test_how_much_it_carries(of_steps: Any, thousandths: float, said: str) -> None:
    def step(one: Step) -> None:
        one.kernel("interior", 5, 700, stream=15)
        one.kernel("boundary", 700, 20, stream=20, blocks=round(LARGE / 1000 * thousandths), called=3)
        one.collective("SendRecv", 721, 200, called=5)
        one.wait(15, 7)

    assert f"(this stream carries {said} of the computation; the limit is 50 %)" in of_steps(step)["next"]


def idle(one: Step) -> None:
    """All that a trace can tell is there, and does not say why the GPU is idle; nothing communicates."""
    one.kernel("gemm", 0, 1, called=-20)
    number = one.call("cudaStreamSynchronize", 25, 900)
    one._add("cuda_sync", "Stream Sync", 26, 898, 0, 7, stream=7, correlation=number, device=0)
    one.kernel("late", 900, 1, stream=20, called=-15)


def test_commands_are_those_of_the_launcher(of_steps: Any, explained: Any, tmp_path: Path) -> None:
    def by_mpi(one: Step) -> None:
        raised(one)
        one.range("MPI_Waitall", 10.0, 5.0)

    assert of_steps(raised, marks=False)["next"].startswith("overlap-run PROGRAM does it by default ")
    assert of_steps(by_mpi, marks=False)["next"].startswith("mpirun ... overlap-run ./program does it by default ")
    assert of_steps(of_torch(raised))["next"].startswith("overlap-run torchrun ... train.py does it by default ")
    assert "overlap tune --set nccl -- torchrun ... train.py tries" in of_steps(of_torch(too_long))["next"]
    for rank, start in ((None, "python"), (1, "torchrun ...")):
        assert f": overlap tune -- {start} train.py measures " in of_steps(of_torch(idle), rank=rank)["next"]
    job = tmp_path / "job"
    job.mkdir()
    for rank in (0, 1):
        path = trace(job / f"rank{rank}.json", raised, marks=False, rank=rank)
        path.write_text(path.read_text().replace('"backend": "nccl"', '"backends": 0'))  # of torch.distributed
    assert explained(job)["next"].startswith("mpirun ... overlap-run ./program does it by default ")


def test_the_kernel_that_fills_the_gpu_is_filled_in(of_steps: Any, overlap: Any, tmp_path: Path) -> None:
    """A command that can be pasted: the answer names the GPU, and the block of the kernel in front."""
    found = of_steps(one_wave)
    assert found["process"]["one_wave_kernel"]
    command = re.search(r"overlap (policy room --gpu h200 --kernel 256:128) says what fits beside (\w+)", found["next"])
    assert command and command[2] == found["process"]["one_wave_kernel"], found["next"]
    assert overlap(*command[1].split()).returncode == 0


def test_one_big_gap_is_told_as_one(of_steps: Any) -> None:
    """A checkpoint in one step is no gap of a part of it in each."""
    number = 0

    def late(one: Step) -> None:
        nonlocal number
        number += 1
        one.kernel("gemm", 0, 200 if number == 3 else 980, called=-20)

    found = of_steps(late)
    assert found["verdict"] == "no: the host is late", found["verdicts"]
    text = found["verdicts"][0]["text"]
    assert re.search(r", most of it in one gap of 0\.\d+ ms in 4 steps$", text), text
    assert found["next"].startswith("one gap makes up most of the idle time (0."), found["next"]


def test_even_gaps_are_not_told_as_one(of_steps: Any) -> None:
    def step(one: Step) -> None:
        one.kernel("gemm", 0, 500)
        one.kernel("norm", 900, 100, called=880)

    found = of_steps(step)
    assert "one gap" not in found["verdicts"][0]["text"]


def test_the_advice_to_record_is_that_of_the_documentation(overlap: Any, library: Any, tmp_path: Path) -> None:
    """The call of CUPTI, too: without it a trace from CUDA 12.9 on has no waits again."""
    path = trace(tmp_path / "trace.json", nothing_known)
    said = overlap("explain", str(path)).stdout
    page = (ROOT / "docs/how-to/training.md").read_text(encoding="utf-8")
    snippet = page.partition("## Record a trace")[2].partition("```python")[2].partition("```")[0]
    assert "cuptiActivityEnable(36)" in snippet and "enable_cuda_sync_events=True" in snippet
    for line in KinetoTrace.records_code:
        assert line in said and line.strip() in snippet
    assert "12.9" in " ".join(said.split()).partition("next record again")[2]


def test_gain_and_ceiling_are_of_one_unit(of_steps: Any) -> None:
    found = of_steps(raised)
    process, text = found["process"], found["verdicts"][0]["text"]
    number = re.match(
        r"raise stream 20, about ([\d.]+) % of a step, of the (?:at least )?([\d.]+) % that it waits \(", text
    )
    assert number, text
    assert float(number[1]) == pytest.approx(100 * process["saves_us"] / LENGTH, abs=0.6)
    assert float(number[2]) == pytest.approx(100 * process["waited_us"] / LENGTH, abs=0.6)


@pytest.mark.parametrize("events", ["told", "untold"])
def test_what_the_trace_has_is_not_to_be_recorded_again(
    overlap: Any, library: Any, tmp_path: Path, events: str
) -> None:
    """Waits are in it: at most the call that tells for which events is missing."""

    def step(one: Step) -> None:
        idle(one)
        if events == "untold":
            one.wait(20, 300)

    done = overlap("explain", str(trace(tmp_path / "trace.json", step)))
    said = " ".join(done.stdout.split())
    assert said.startswith("not known: "), said
    assert "enable_cuda_sync_events" not in said
    assert ("cuptiActivityEnable(36)" in said) == (events == "untold")
    assert ("this is all that a trace of torch.profiler can say: overlap tune -- " in said) == (events == "told")


def test_clocks_that_differ_are_no_missing_calls(overlap: Any, library: Any, tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.json", lambda one: one.kernel("gemm", -5e6, 900, called=1.0), marks=False)
    said = " ".join(overlap("explain", str(path)).stdout.split())
    assert "ProfilerActivity" not in said and "the trace has no calls" not in said, said


PINNED, PAGEABLE, OF_GPU = (
    f"Memcpy {how}" for how in ("(Pinned -> Device)", "(Pageable -> Device)", "(Device -> Device)")
)
KERNELS_TOO, BEGIN_EARLIER, OWN_STREAM, ALONE = (
    "the memory is pinned, but the streams run kernels, too: ",
    "memory is pinned, and the streams are their own: begin copies earlier",
    "copy from pinned memory (cudaMallocHost) by cudaMemcpyAsync on a stream of its own",
    "they are of GPUs alone: ",
)


@pytest.mark.parametrize(
    ("copies", "advice"),
    [
        ([(PAGEABLE, 600, 21)], f"100 % of that is of memory that is not pinned: {OWN_STREAM}"),
        ([(PAGEABLE, 100, 21), (PINNED, 500, 22)], f"17 % of that is of memory that is not pinned: {OWN_STREAM}"),
        ([(PAGEABLE, 30, 21), (PINNED, 570, 7)], KERNELS_TOO),
        ([(PINNED, 600, 7)], KERNELS_TOO),
        ([(PINNED, 200, 7), (PINNED, 400, 22)], BEGIN_EARLIER),
        ([(OF_GPU, 400, 7), (PINNED, 200, 22)], ALONE),
        ([("Memcpy PtoP (Device -> Device)", 600, 7)], ALONE),
        ([("Memset (Device)", 600, 7)], ALONE),
        ([("copy", 600, 21)], OWN_STREAM),
    ],
)
def test_what_helps_copies_is_by_what_they_are(of_steps: Any, copies: list[Any], advice: str) -> None:
    """Others run beside kernels, and do not count."""

    def step(one: Step) -> None:
        at = 0.0
        for name, length, stream in copies:
            one.copy(at, length, stream, name=name)
            at += length
        one.wait(7, 2)
        one.kernel("gemm", 602, 398)
        for start in range(610, 615):
            one.copy(start, 300, start, name=PAGEABLE)

    found = of_steps(step)
    assert found["verdict"] == "no: copies" and found["next"].startswith(advice)
    times = {
        "pageable_us": sum(length for name, length, _ in copies if name == PAGEABLE),
        "pinned_us": sum(length for name, length, _ in copies if name == PINNED),
        "device_us": sum(length for name, length, _ in copies if "(Device" in name),
        "apart_us": sum(length for name, length, stream in copies if name in (PINNED, PAGEABLE) and stream != 7),
    }
    assert found["process"]["copies"] == pytest.approx(times, rel=0.02)


def test_copies_beside_which_no_kernel_could_run(of_steps: Any) -> None:
    assert of_steps(lambda step: step.copy(0, 600))["next"] == "no kernel ran beside which they could: copy less"
    found = of_steps(lambda step: step.copy(0, 600, name=PAGEABLE))
    assert found["next"].endswith("copy less, or pin the host's memory, which is faster")


def test_copies_of_two_gpus_count_by_their_mean(of_steps: Any) -> None:
    def step(one: Step) -> None:
        for device, name in enumerate((PAGEABLE, PINNED)):
            one.copy(0, 600, 21, device=device, name=name)
            one.kernel("gemm", 602, 398, device=device)

    assert of_steps(step, marks=False)["next"].startswith("50 % of that is of memory that is not pinned: ")
