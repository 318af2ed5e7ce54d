"""What raising saves where the GPU is full all the same: kernels that fill it take their time, in whatever order."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_waits import Program, boundary, copy, interior, steps

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


@pytest.mark.parametrize("blocks", [RESIDENT, None])
@pytest.mark.parametrize("more", [boundary, copy])
def test_what_else_the_stream_in_front_has_comes_one_after_the_other(more, blocks, tmp_path):
    """50 us that fill the GPU and 40 us behind them on that stream: 10 us of 100 are left, whatever is raised."""

    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.launch(more(at + 55, 40, 15), at + 2)
        program.synchronize(15, at + 57, at + 96)

    assert found(step, tmp_path, blocks).saves_us == pytest.approx(10, abs=1.1)


def test_another_stream_whose_blocks_fill_the_gpu_exactly_is_not_beside_it(tmp_path):
    """As persistent kernels are: 40 us of them behind the front."""

    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.record(3, 15, at + 2.2)
        program.wait(16, 3, at + 2.4)
        program.launch(boundary(at + 55, 40, 16)._replace(grid=(RESIDENT, 1, 1)), at + 2.6)
        program.synchronize(16, at + 57, at + 96)

    assert found(step, tmp_path).saves_us == pytest.approx(10, abs=1.1)


def test_a_front_that_leaves_less_than_5_us_saves_that(tmp_path):
    def step(program: Program, at: float) -> None:
        front(program, at, 91.2)

    assert found(step, tmp_path).saves_us == pytest.approx(8.8, abs=0.1)
    assert found(lambda program, at: front(program, at, 95.8), tmp_path).saves_us == pytest.approx(4.2, abs=0.1)


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
    assert process.as_before_us == pytest.approx(28, abs=2)


def test_of_an_unknown_gpu_the_streams_in_front_are_taken_for_full(tmp_path):
    """As in the first test, and the kernel of the raised stream may be small."""

    def step(program: Program, at: float) -> None:
        front(program, at, 50)
        program.launch(large(at + 62, 20, 20), at + 57)
        program.synchronize(20, at + 58, at + 84)

    process = found(step, tmp_path, None)
    assert process.saves_at_most and process.saves_us == pytest.approx(42, abs=0.1)
