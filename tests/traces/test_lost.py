"""What a waiter loses in the less simple cases: several events, streams between, and waits that are not told."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_waits import PLAIN, UNRESOLVED, WHOLE, Program, boundary, collective, copy, interior, steps

from pyshim.diagnosis.find import find
from pyshim.diagnosis.result import ProcessResult, TraceResult


def read(trace: Path) -> TraceResult:
    return find(str(trace), lambda gpu: lambda kernel: 1056)


def look(program: Program, folder: Path, told: str = WHOLE) -> ProcessResult:
    (process,) = read(program.kineto(folder / "trace.json", told)).processes
    return process


def exchange(program: Program, at: float, until: float = 91.0) -> None:
    """A collective behind the interior, ready long before; event 1 comes when it ends."""
    program.launch(interior(at + 4, 76), at + 1)
    program.launch(collective(at + 75, until - 75), at + 5)
    program.record(1, 20, at + 7)


@pytest.mark.parametrize("first", [True, False])
def test_a_stream_that_waits_for_many_has_lost_by_each(first, tmp_path):
    """Forty other streams end early, whether they are waited for before or behind the collective."""

    def step(program: Program, at: float) -> None:
        for stream in range(100, 140):
            program.launch(copy(at + 1, 0.5, stream=stream), at - 2)
            program.record(stream, stream, at - 1)
        exchange(program, at)
        for event in [1, *range(100, 140)] if first else [*range(100, 140), 1]:
            program.wait(7, event, at + 8)
        program.launch(copy(at + 91, 1, stream=7), at + 9)

    process = look(steps(Program(), step), tmp_path)
    assert process.saves_us == pytest.approx(11, abs=0.5)


@pytest.mark.parametrize(("busy", "saves"), [(0, True), (95, False)])
def test_who_waits_for_a_stream_between_loses_nothing_while_it_has_work(busy, saves, tmp_path):
    """Stream 31 waits for stream 30, which waits for the collective until 91."""

    def step(program: Program, at: float) -> None:
        if busy:
            program.launch(copy(at + 1, busy, stream=31), at)
        exchange(program, at)
        program.wait(30, 1, at + 8)
        program.record(2, 30, at + 9)
        program.wait(31, 2, at + 10)
        program.launch(copy(at + max(91, 1 + busy), 1, stream=31), at + 11)

    program = Program()
    for stream in (30, 31):
        program.launch(copy(990, 1, stream=stream), 980)
    process = look(steps(program, step), tmp_path)
    assert (process.saves_us > 5) is saves, process.saves_us


def test_a_stream_between_may_have_no_work_at_all(tmp_path):
    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.wait(30, 1, at + 8)
        program.record(2, 30, at + 9)
        program.wait(7, 2, at + 10)
        program.launch(copy(at + 91, 1, stream=7), at + 11)

    program = steps(Program(), step)
    for trace in (program.kineto(tmp_path / "trace.json"), program.nsys(tmp_path / "export.sqlite")):
        found = read(trace)
        (process,) = found.processes
        (inversion,) = process.inversions
        assert found.untold == ()
        assert inversion.waiters == ("communication", "stream 30")
        assert process.saves_us == pytest.approx(11, abs=0.5)


@pytest.mark.parametrize("host", [True, False])
def test_what_ended_long_before_an_event_that_its_stream_waits_for_delays_nobody(host, tmp_path):
    """Boundary: behind the interior until 60. Its stream then waits for a copy of 95 us, and is waited for."""

    def step(program: Program, at: float) -> None:
        program.launch(copy(at + 1, 95, stream=40), at)
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(boundary(at + 60, 5), at + 3)
        program.record(4, 40, at + 4)
        program.wait(20, 4, at + 5)
        if host:
            program.synchronize(20, at + 8, at + 97)
        else:
            program.record(5, 20, at + 6)
            program.wait(41, 5, at + 7)
            program.launch(copy(at + 96, 1, stream=41), at + 8)

    program = Program()
    program.launch(copy(990, 1, stream=41), 980)
    process = look(steps(program, step), tmp_path)
    assert process.saves_us == 0


def test_work_behind_communication_that_waits_for_something_else_as_well(tmp_path):
    """A second collective is launched ahead, but ready only at 88; the first ends at 91."""

    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.launch(copy(at + 1, 87, stream=40), at + 7.5)
        program.record(4, 40, at + 8)
        program.wait(20, 4, at + 8.5)
        program.launch(collective(at + 92, 5), at + 9)

    process = look(steps(Program(), step), tmp_path)
    assert process.saves_us <= 3.5


@pytest.mark.parametrize("told", [PLAIN, UNRESOLVED])
def test_work_behind_communication_is_no_limit_where_others_may_have_waited(told, tmp_path):
    """It is launched 1 us before the collective ends, but stream 7 has waited for that, as no row says."""

    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.wait(7, 1, at + 8)
        program.launch(copy(at + 91, 1, stream=7), at + 9)
        program.launch(copy(at + 91, 1), at + 89)

    process = look(steps(Program(), step), tmp_path, told)
    assert process.saves_us > 5


def test_a_host_that_comes_late_has_lost_nothing_in_a_program_without_events(tmp_path):
    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.synchronize(20, at + 95, at + 96)

    assert look(steps(Program(), step), tmp_path).saves_us == 0


@pytest.mark.parametrize("count", [5, 1])
def test_a_larger_collective_takes_longer(count, tmp_path):
    """Nobody waits for the first, small one, and the second takes 20 us each time, as long as it must."""

    def step(program: Program, at: float) -> None:
        exchange(program, at, until=78)
        program.wait(7, 1, at + 8)
        program.launch(copy(at + 97, 1, stream=7), at + 96)
        program.launch(collective(at + 78.5, 18)._replace(grid=(24, 1, 1)), at + 78.2)

    if count > 1:
        assert look(steps(Program(), step, count), tmp_path).saves_us == 0
    else:
        program = Program()
        step(program, 1000.0)
        assert look(program, tmp_path).saves_us > 5, "how long it must take is not known"


@pytest.mark.parametrize("name", ["cudaLaunchHostFunc", "cudaStreamAddCallback"])
def test_a_function_of_the_host_may_wait(name, tmp_path):
    """Stream 30 waits for the collective and then calls it, which lets another thread go on."""

    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.wait(30, 1, at + 8)
        program._call(name, at + 9, 1)

    assert look(steps(Program(), step), tmp_path).saves_us == pytest.approx(24, abs=0.5)


@pytest.mark.parametrize("name", ["cudaEventQuery", "cudaStreamQuery"])
@pytest.mark.parametrize(("first", "every", "saves"), [(10, 2, True), (10, 60, False), (50, 40, False)])
def test_the_host_asks_again_and_again_and_no_row_says_for_what(first, every, saves, name, tmp_path):
    """It launches what waits for the collective when it has got the answer; an allocator asks now and then."""

    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.wait(7, 1, at + 8)
        for begin in range(first, 92, every):
            program._call(name, at + begin, 0.5)
        program.launch(copy(at + 95, 1, stream=7), at + 93)

    assert (look(steps(Program(), step), tmp_path).saves_us > 5) is saves


def test_a_wait_for_a_device_is_none_for_what_ends_after_it(tmp_path):
    """It is for the other GPU of the process; the copy behind the collective is launched later."""

    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.wait(7, 1, at + 8)
        program.device_synchronize(at + 10, at + 30)
        program.launch(copy(at + 98, 1, stream=7), at + 97)

    assert look(steps(Program(), step), tmp_path).saves_us == 0
