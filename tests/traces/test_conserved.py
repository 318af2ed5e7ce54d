"""What raising saves where the GPU is full all the same: kernels that fill it take their time, in whatever order."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_waits import Program, boundary, interior, steps

from pyshim.diagnosis.find import find
from pyshim.diagnosis.result import ProcessResult

RESIDENT = 1056


def found(step, tmp_path: Path, blocks: int | None = RESIDENT) -> ProcessResult:
    """Steps of 100 us."""
    trace = str(steps(Program(), step).kineto(tmp_path / "trace.json"))
    (process,) = find(trace, lambda gpu: lambda kernel: blocks).processes
    return process


def front(program: Program, at: float, length: float) -> None:
    """A boundary waits behind an interior, and the host for it."""
    program.launch(interior(at + 4, length, stream=15), at + 1)
    program.launch(boundary(at + length, 5), at + 3)
    program.synchronize(20, at + 8, at + length + 6)


def large(at: float, length: float, stream: int):
    """More blocks than the GPU holds, and still a small part of the step's computation."""
    return boundary(at, length, stream)._replace(grid=(2 * RESIDENT, 1, 1))


def test_what_follows_on_the_raised_stream_and_fills_the_gpu_is_not_saved(tmp_path):
    """The front ends at 54; 20 us of 50 behind it are a kernel of many blocks."""

    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.launch(large(at + 62, 20, 20), at + 57)
        program.synchronize(20, at + 58, at + 84)

    process = found(step, tmp_path)
    assert process.waited_us == pytest.approx(42, abs=0.1)
    assert process.saves_us == pytest.approx(30, abs=0.1)
    assert process.saves_us + process.moved_us == pytest.approx(42, abs=0.5)


def test_what_is_won_ends_where_the_next_kernel_in_front_begins(tmp_path):
    """Behind the first front are 10 us, behind another kernel of its stream 20: nothing waited behind that."""

    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.launch(interior(at + 64, 20, stream=15), at + 62)

    assert found(step, tmp_path).saves_us == pytest.approx(10, abs=0.1)


def test_kernels_of_one_stream_with_next_to_nothing_between_are_one_front(tmp_path):
    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.launch(interior(at + 56, 24, stream=15), at + 2)

    assert found(step, tmp_path).saves_us == pytest.approx(24, abs=0.1)


def test_a_raised_stream_behind_a_raised_one_waits_as_before(tmp_path):
    """Stream 20 waits behind 15 and stream 21 behind 20; with both raised, only the first comes earlier."""

    def step(program: Program, at: float) -> None:
        front(program, at, 30)
        program.launch(large(at + 40, 30, 20), at + 37)
        program.launch(boundary(at + 68, 5, stream=21), at + 38)
        program.synchronize(21, at + 42, at + 74)

    process = found(step, tmp_path)
    assert {(one.streams, one.behind_streams) for one in process.inversions} == {(("20",), ("15",)), (("21",), ("20",))}
    assert process.saves_us + process.moved_us == pytest.approx(24, abs=0.6)


def test_of_an_unknown_gpu_the_streams_in_front_are_taken_for_full(tmp_path):
    """As in the first test, and the kernel of the raised stream may be small."""

    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.launch(large(at + 62, 20, 20), at + 57)
        program.synchronize(20, at + 58, at + 84)

    process = found(step, tmp_path, None)
    assert process.saves_at_most and process.saves_us == pytest.approx(42, abs=0.1)
