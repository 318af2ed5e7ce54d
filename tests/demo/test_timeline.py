"""From the lines of a timeline file to a step: order, readiness, waits."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from pyshim.demo.timeline import Span, arrange, read, read_stencil

GEMM, REDUCE, UPDATE = "sgemm", "ncclDevKernel_AllReduce", "update"


def span(kernel: str, start: float, end: float) -> Span:
    return Span(kernel, kernel == REDUCE, start, end, 10, 256, 0)


SPANS = [
    span(UPDATE, 500, 510),
    span(REDUCE, 250, 320),
    span(GEMM, 200, 300),
    span(GEMM, 100, 200),
    span(REDUCE, 320, 400),
]


def test_it_begins_at_zero_and_is_in_order_of_execution() -> None:
    step = arrange(SPANS, GEMM, layers=2, buckets=2)
    assert [one.start_us for one in step.computation] == [0, 100]
    assert [one.start_us for one in step.waited_for] == [150, 220]
    assert [one.kernel for one in step.optimizer] == [UPDATE]
    assert step.end_us == 410


def test_a_bucket_is_ready_when_its_layers_and_the_bucket_before_are_done() -> None:
    step = arrange(SPANS, GEMM, layers=2, buckets=2)
    assert step.ready_us == (100, 220)
    assert step.waits_us == (50, 0)


def test_a_bucket_of_two_layers_waits_for_the_second() -> None:
    assert arrange([one for one in SPANS if one.start_us != 320], GEMM, layers=2, buckets=1).ready_us == (200,)


def test_hidden_is_the_part_of_communication_beside_a_gemm() -> None:
    assert arrange(SPANS, GEMM, layers=2, buckets=2).hidden == pytest.approx(50 / 150)


def test_a_file_of_the_simulated_gpu_is_read(tmp_path: Path) -> None:
    path = tmp_path / "timeline"
    rows = [
        {
            "kernel": one.kernel,
            "communication": one.communication,
            "start_us": one.start_us,
            "end_us": one.end_us,
            "blocks": one.blocks,
            "threads": one.threads,
            "dynamic_shared": one.dynamic_shared,
            "stream": "0x1",
            "something": "else",
        }
        for one in SPANS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read(path, GEMM, 2, 2) == arrange(SPANS, GEMM, 2, 2)


def test_of_several_steps_the_last_counts() -> None:
    before = [span(GEMM, 0, 10), span(REDUCE, 10, 20), span(UPDATE, 20, 30)]
    assert arrange([*before, *SPANS], GEMM, 2, 2) == arrange(SPANS, GEMM, 2, 2)


def stencil(iterations: int) -> list[Span]:
    """Boundaries of two planes that wait 40 us for an interior of 50 us."""
    found = []
    for at in range(0, 100 * iterations, 100):
        found += [
            Span("stencil_interior", False, at, at + 50, 10, 512, 0),
            Span("stencil_boundary", False, at + 40, at + 44, 10, 512, 0),
            Span("stencil_boundary", False, at + 44, at + 50, 10, 512, 0),
            Span("ncclDevKernel_SendRecv", True, at + 52, at + 100, 8, 640, 0),
        ]
    return found


def test_the_last_iterations_of_a_stencil(tmp_path: Path) -> None:
    path = tmp_path / "timeline"
    path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in stencil(4)), encoding="utf-8")
    step = read_stencil(path, one_stream=False)
    assert [(one.start_us, one.end_us) for one in step.computation] == [(0, 50), (100, 150)]
    assert [(one.start_us, one.end_us) for one in step.waited_for] == [(40, 50), (52, 100), (140, 150), (152, 200)]
    assert step.ready_us == (0, 50, 100, 150)
    assert step.waits_us == (40, 2, 40, 2)
    assert step.marks == "bx"
    assert read_stencil(path, one_stream=True).waits_us == (0, 0, 0, 0)
