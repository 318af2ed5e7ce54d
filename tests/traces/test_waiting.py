"""Priority inversions in traces: what waited, behind what, for whom, and the most that raising could save."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made import K
from made_waits import (
    LONG,
    PLAIN,
    SHORT,
    UNRESOLVED,
    WHOLE,
    Program,
    boundary,
    by_host,
    by_nccl,
    collective,
    copy,
    interior,
    steps,
)

from pyshim.diagnosis.find import find
from pyshim.diagnosis.result import ProcessResult, TraceResult
from pyshim.profiles.record import TracedGpu, TracedLaunch

RESIDENT = 1056  # blocks of the kernels here on 132 multiprocessors
FORMS: list[Callable[[Program, Path], Path]] = [
    lambda program, folder: program.kineto(folder / "trace.json"),
    lambda program, folder: program.nsys(folder / "export.sqlite"),
    lambda program, folder: program.nsys(folder / "export.sqlite", types=False),
]


def resident(gpu: TracedGpu) -> Callable[[TracedLaunch], int]:
    return lambda kernel: RESIDENT


def look(program: Program, path: Path, told: str = WHOLE, **more: Any) -> TraceResult:
    return find(str(program.kineto(path / "trace.json", told, **more)), resident)


def only(found: TraceResult) -> ProcessResult:
    (process,) = found.processes
    return process


@pytest.mark.parametrize("form", FORMS)
def test_a_boundary_in_front_of_a_collective(form, tmp_path):
    found = find(str(form(steps(Program(), by_nccl), tmp_path)), resident)
    assert found.untold == ()
    process = only(found)
    assert (process.devices, process.count, process.span_us) == ((0,), 3, pytest.approx(100))
    (inversion,) = process.inversions
    assert (inversion.kernel, inversion.streams, inversion.behind_streams) == (SHORT, ("20",), ("7",))
    assert (inversion.behind, inversion.count, inversion.at_least) == (LONG, 1.0, False)
    assert inversion.waiters == ("communication", "stream 7")
    assert inversion.waited_us == process.waited_us == pytest.approx(64, abs=0.01)
    # The copy that waits for the collective could begin behind the interior, 15 us earlier.
    assert (process.saves_us, process.moved_us) == (pytest.approx(15), 0)
    assert (process.major, process.one_wave_us, process.unclaimed_us) == ((), 0, 0)
    assert process.idle_us == pytest.approx(8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["stream", "event", "poll", "copy"])
def test_the_host_waits(form, how, tmp_path):
    program = steps(Program(), lambda program, at: by_host(program, at, how=how))
    process = only(find(str(form(program, tmp_path)), resident))
    (inversion,) = process.inversions
    assert (inversion.kernel, inversion.waiters) == (SHORT, ("the host",))
    assert process.waited_us == pytest.approx(64, abs=0.01)
    assert (process.saves_us, process.moved_us) == (pytest.approx(32), pytest.approx(32, abs=1))


def test_a_gpu_that_waits_for_the_host_makes_the_bound_doubtful(tmp_path):
    """From 75 to 76, and from 85 until the next interior: the profiler may have slowed the host."""
    assert only(look(steps(Program(), by_host), tmp_path)).idle_us == pytest.approx(20)


def test_no_more_is_saved_than_the_waiter_waited(tmp_path):
    """The host comes at 65, for what ends at 85: it cannot be more than 20 us earlier."""
    process = only(look(steps(Program(), lambda program, at: by_host(program, at, begin=65)), tmp_path))
    assert (process.waited_us, process.saves_us) == (pytest.approx(64, abs=0.01), pytest.approx(20))


def test_a_host_that_comes_late_waits_for_nothing(tmp_path):
    """What stood behind the interior had ended when the host asked."""
    process = only(look(steps(Program(), lambda program, at: by_host(program, at, begin=85.5)), tmp_path))
    assert (process.inversions, process.saves_us) == ((), 0)
    assert process.unclaimed_us == pytest.approx(64, abs=0.01)


def test_one_wait_of_the_host_is_shared_by_all_that_delayed_it(tmp_path):
    """Two boundaries wait 30 and 27 us; the host comes 20 us before the second one ends."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 36), at + 1)
        program.launch(boundary(at + 36, 3), at + 3)
        program.launch(interior(at + 42, 34), at + 5)
        program.launch(boundary(at + 70, 5), at + 40)
        program.synchronize(20, at + 55, at + 76)

    process = only(look(steps(Program(), step), tmp_path))
    assert (process.waited_us, process.unclaimed_us) == (pytest.approx(27, abs=0.01), pytest.approx(30, abs=0.01))
    assert process.saves_us == pytest.approx(20)


def test_what_the_host_was_late_for_is_not_what_it_waits_for_later(tmp_path):
    """In every second step it comes late."""
    program = steps(Program(), lambda program, at: by_host(program, at, begin=8 if at % 200 else 85.5), count=6)
    process = only(look(program, tmp_path))
    (inversion,) = process.inversions
    assert (inversion.count, process.unclaimed_us) == (0.5, pytest.approx(32, abs=0.01))


def test_waiting_for_the_whole_device_is_no_sign(tmp_path):
    """Raising one stream does not end the work of all of them sooner."""
    process = only(look(steps(Program(), lambda program, at: by_host(program, at, how="device")), tmp_path))
    assert (process.inversions, process.saves_us) == ((), 0)


def test_nothing_waits_where_all_begins_at_once(tmp_path):
    process = only(look(steps(Program(), lambda program, at: by_nccl(program, at, start=7.0)), tmp_path))
    assert (process.inversions, process.waited_us, process.saves_us, process.unclaimed_us) == ((), 0, 0, 0)


def test_one_stream_for_all(tmp_path):
    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 70), at + 1)
        program.launch(boundary(at + 75, 5, stream=7), at + 3)
        program.launch(collective(at + 81, 10, stream=7), at + 5)
        program.synchronize(7, at + 8, at + 92)

    process = only(look(steps(Program(), step), tmp_path))
    assert (process.inversions, process.waited_us, process.unclaimed_us) == ((), 0, 0)


def test_a_stream_that_waits_by_an_event_is_not_ready(tmp_path):
    """The boundary begins right after the interior, because it waits for it."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 60), at + 1)
        program.record(3, 7, at + 2)
        program.launch(interior(at + 65, 20), at + 3)
        program.wait(20, 3, at + 4)
        program.launch(boundary(at + 67, 5), at + 5)
        program.launch(collective(at + 73, 10), at + 6)

    process = only(look(steps(Program(), step), tmp_path))
    assert (process.inversions, process.waited_us, process.unclaimed_us) == ((), 0, 0)


def test_it_waits_behind_a_kernel_from_when_that_begins(tmp_path):
    """The boundary could have begun at 6, and the interior did at 10: what kept both is not known."""

    def step(program: Program, at: float) -> None:
        program.launch(boundary(at + 70, 5), at + 3)
        program.launch(interior(at + 10, 70), at + 7)
        program.launch(collective(at + 76, 15), at + 9)

    assert only(look(steps(Program(), step), tmp_path)).waited_us == pytest.approx(60, abs=0.01)


def test_behind_communication_and_copies_nothing_is_claimed(tmp_path):
    """A collective has few blocks, and a copy waits for its engine."""

    def step(program: Program, at: float) -> None:
        program.launch(collective(at + 4, 76, stream=30), at + 1)
        program.launch(boundary(at + 70, 5), at + 3)
        program.synchronize(20, at + 4, at + 76)

    process = only(look(steps(Program(), step), tmp_path))
    assert (process.inversions, process.unclaimed_us, process.one_wave_us) == ((), 0, 0)

    def copies(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 80), at + 1)
        program.launch(copy(at + 5, 70, stream=21), at + 2)
        program.launch(copy(at + 72, 5), at + 4)
        program.synchronize(20, at + 6, at + 78)

    process = only(look(steps(Program(), copies), tmp_path))
    assert (process.inversions, process.unclaimed_us) == ((), 0)


def test_of_the_legacy_stream_nothing_is_claimed(tmp_path):
    """It orders by itself: what begins after it has ended may have waited for that, and no row says so."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 60), at + 1)
        program.launch(boundary(at + 65, 5), at + 3)
        program.launch(collective(at + 71, 10), at + 5)

    process = only(look(steps(Program(), step), tmp_path))
    assert (process.inversions, process.unclaimed_us) == ((), 0)


@pytest.mark.parametrize(
    ("name", "start", "stream", "claimed"),
    [
        ("cudaMemcpy", 76, 7, True),
        ("cuMemcpyDtoH_v2", 76, 7, True),
        ("cudaMemcpyAsync", 76, 7, False),  # one that blocks waits for its own stream only
        ("cudaMemcpy", 76, 13, False),
        ("cudaMemcpy", 90, 7, False),  # so late that it has waited for something else
        ("cudaMemcpy", 74, 7, False),  # it did not wait for the boundary
    ],
)
def test_a_blocking_copy_waits_for_blocking_streams(name, start, stream, claimed, tmp_path):
    """No row says so: it begins just behind their work, and the host is in the call meanwhile."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 68)._replace(stream=15), at + 1)
        program.launch(boundary(at + 70, 5), at + 3)
        program.launch(copy(at + start, 8)._replace(stream=stream), at + 5, start + 4)
        program.calls[-1] = (name, *program.calls[-1][1:])

    process = only(look(steps(Program(), step), tmp_path))
    assert [inversion.waiters for inversion in process.inversions] == [("the host",)] * claimed
    assert process.saves_us == pytest.approx(32 if claimed else 0)
    assert process.unclaimed_us == pytest.approx(0 if claimed else 64, abs=0.01)


def test_a_stream_with_most_of_the_work_gains_nothing(tmp_path):
    """More blocks than the interior: more than half of the computation is on the stream that waits."""
    program = steps(Program(), lambda program, at: by_nccl(program, at, size=220))
    process = only(look(program, tmp_path))
    assert (process.inversions, process.saves_us) == ((), 0)
    (major,) = process.major
    assert (major.stream, round(major.share, 2), major.waited_us) == ("20", 0.51, pytest.approx(64, abs=0.01))


@pytest.mark.parametrize(
    ("size", "registers", "share"),
    [(220, 31, 0.494), (220, 64, 0.806), (110, 45, 0.507), (110, 44, 0.496), (5, 255, 0.601), (220, 0, 0.51)],
    ids=str,
)
@pytest.mark.parametrize("form", FORMS[:2])
def test_work_is_threads_and_registers(size, registers, share, form, tmp_path):
    """As the default counts it: the interior's kernel has 105,600 blocks, and 32 registers as one that says none."""

    def step(program: Program, at: float) -> None:
        by_nccl(program, at, size=size)
        at_boundary = next(i for i in reversed(range(len(program.kernels))) if program.kernels[i].name == SHORT)
        program.kernels[at_boundary] = program.kernels[at_boundary]._replace(registers=registers)

    process = only(find(str(form(steps(Program(), step), tmp_path)), resident))
    found = process.minor if share <= 0.5 else process.major
    assert [(one.stream, one.share) for one in found] == [("20", pytest.approx(share, abs=0.001))]


def test_behind_a_kernel_of_one_wave_no_priority_helps(tmp_path):
    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76, waves=1), at + 1)
        program.launch(boundary(at + 70, 5)._replace(grid=(50, 1, 1)), at + 3)
        program.launch(collective(at + 76, 10), at + 5)

    process = only(look(steps(Program(), step), tmp_path))
    assert (process.inversions, process.saves_us, process.one_wave_us) == ((), 0, pytest.approx(64, abs=0.01))


def test_waits_that_overlap_count_once(tmp_path):
    """Two streams wait from 6 and 7 to 70 and 71, and the host for both: 65 us, not 128."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 70), at + 1)
        program.launch(boundary(at + 70, 2, stream=20), at + 3)
        program.launch(boundary(at + 71, 2, stream=21), at + 4)
        program.synchronize(20, at + 5.5, at + 73)
        program.synchronize(21, at + 73.2, at + 74)
        program.launch(interior(at + 78, 3), at + 75)

    process = only(look(steps(Program(), step), tmp_path))
    assert sum(inversion.waited_us for inversion in process.inversions) == pytest.approx(64, abs=0.01)
    (inversion,) = process.inversions
    assert (inversion.streams, inversion.count) == (("20",), 1.0), "the host did not wait for stream 21"

    def both(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 70), at + 1)
        for index, stream in enumerate((20, 21)):
            program.launch(boundary(at + 70 + index, 2, stream=stream), at + 3 + index)
            program.launch(collective(at + 73 + index, 3, stream=stream), at + 5 + index)

    process = only(look(steps(Program(), both), tmp_path))
    assert sum(inversion.waited_us for inversion in process.inversions) == pytest.approx(128, abs=0.01)
    assert process.waited_us == pytest.approx(65, abs=0.01)
    assert process.saves_us == pytest.approx(30)


def test_what_feeds_a_stream_that_is_waited_for(tmp_path):
    """Stream 21 hands over to stream 20 by an event, and the host waits for that."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(boundary(at + 70, 5, stream=21), at + 3)
        program.record(4, 21, at + 4)
        program.wait(20, 4, at + 5)
        program.launch(copy(at + 76, 5), at + 6)
        program.synchronize(20, at + 8, at + 82)

    process = only(look(steps(Program(), step), tmp_path))
    (inversion,) = process.inversions
    assert (inversion.streams, inversion.waiters) == (("21",), ("stream 20",))


def test_an_event_that_is_recorded_again_and_again(tmp_path):
    """Two buffers that share an event: each wait is for the record before it."""

    def step(program: Program, at: float) -> None:
        program.record(5, 7, at)
        program.wait(20, 5, at + 0.5)
        by_nccl(program, at + 1)
        program.record(5, 7, at + 9.5)

    for form in FORMS:
        for path in tmp_path.iterdir():
            path.unlink()
        process = only(find(str(form(steps(Program(), step), tmp_path)), resident))
        assert process.waited_us == pytest.approx(64, abs=0.01)


def test_streams_that_swap_their_roles_are_one_row(tmp_path):
    def step(program: Program, at: float) -> None:
        number = int(at / 100) % 2
        program.launch(interior(at + 4, 76, stream=20 + number), at + 1)
        program.launch(boundary(at + 70, 5, stream=21 - number), at + 3)
        program.launch(collective(at + 76, 10, stream=21 - number), at + 5)

    process = only(look(steps(Program(), step, count=6), tmp_path))
    (inversion,) = process.inversions
    assert (inversion.streams, inversion.behind_streams, inversion.count) == (("20", "21"), ("20", "21"), 1.0)
    assert process.major == (), "each has half of the computation"


# ---- what a trace does not say ----


@pytest.mark.parametrize("told", [PLAIN, UNRESOLVED])
def test_where_no_row_says_what_a_stream_waited_for(told, tmp_path):
    """It waited at least since the last work that had ended by then; what its wait was for may have been that."""

    def step(program: Program, at: float) -> None:
        program.launch(boundary(at - 3, 31, stream=22), at - 6)
        program.record(6, 22, at - 5)
        program.wait(20, 6, at - 4)
        by_nccl(program, at, late=True)
        program.launch(boundary(at + 40, 10, stream=23), at + 9)  # launched later: it cannot be what was waited for

    process = only(look(steps(Program(), step), tmp_path))
    assert process.waited_us == pytest.approx(40), "from 28 and a launch to 70, as the rows say"
    found = look(steps(Program(), step), tmp_path, told)
    assert len(found.untold) == 1 and "waits of streams for events do not say for which work" in found.untold[0]
    (inversion,) = only(found).inversions
    assert (inversion.waiters, inversion.at_least) == (("communication",), True)
    assert inversion.waited_us == pytest.approx(40)


@pytest.mark.parametrize("told", [WHOLE, PLAIN])
def test_raising_saves_no_time_in_which_the_program_does_nothing(told, tmp_path):
    """Without ranges of steps, between two exchanges ten milliseconds apart."""
    program = Program()
    by_nccl(program, 1000.0)
    by_nccl(program, 11000.0)
    process = only(look(program, tmp_path, told))
    assert process.steps is None and process.inversions[0].at_least
    assert 0 < process.saves_us <= process.waited_us < 200


@pytest.mark.parametrize(("how", "call"), [("stream", "Synchronize"), ("poll", "Query")])
def test_where_no_row_says_what_the_host_waited_for(how, call, tmp_path):
    found = look(steps(Program(), lambda program, at: by_host(program, at, how=how)), tmp_path, PLAIN)
    assert any("waits of the host do not say for which stream" in sentence for sentence in found.untold), call
    process = only(found)
    assert (process.inversions, process.saves_us) == ((), 0)
    assert process.unclaimed_us == pytest.approx(64, abs=0.01)


def test_without_calls_nothing_is_told(tmp_path):
    found = look(steps(Program(), by_nccl), tmp_path, calls=False)
    assert found.untold == ("the trace has no calls of the host that launched its kernels",)
    assert (only(found).told, only(found).inversions, only(found).unclaimed_us) == (False, (), 0)


def test_kernels_of_a_graph_have_an_order_that_no_row_says(tmp_path):
    """They waited at least since the last of them that had ended."""

    def step(program: Program, at: float) -> None:
        for stream in (7, 20):
            program.launch(boundary(at, 0.5, stream=stream), at - 3)
        kernels: list[K] = [interior(at + 4, 76), boundary(at + 6, 10, stream=22)]
        kernels += [boundary(at + 70, 5), collective(at + 76, 10)]
        program.graph(kernels, at + 1)

    (inversion,) = only(look(steps(Program(), step), tmp_path)).inversions
    assert (inversion.kernel, inversion.at_least) == (SHORT, True)
    assert inversion.waited_us == pytest.approx(54, abs=5)


def packs(program: Program, at: float, by_graph: bool, how: str) -> None:
    """Two streams pack with two kernels each, which stand behind the interior's blocks from 6 and 8 us on, until 60 and
    66 us; their copies run until 85. The host waits for both from 12 us on."""
    program.launch(interior(at + 4, 70), at + 1)
    for number, start in enumerate((60, 66)):
        stream, called = 20 + number, at + 3 + 2 * number
        kernels = [boundary(at + start, 3, stream), boundary(at + start + 3, 2, stream)]
        if by_graph:
            program.graph([kernel._replace(graph_node=one + 1) for one, kernel in enumerate(kernels)], called)
        else:
            program.launch(kernels[0], called)
            program.launch(kernels[1], called, 1.0)
        program.launch(copy(at + 76, 9, stream), at + 8 + number)
        program.record(number, stream, at + 10 + number / 2)
    for number in range(2):
        if how == "stream":
            program.synchronize(20 + number, at + 12 + number, at + 86 + number)
        else:
            program.poll(number, at + 12, at + 86)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["stream", "poll"])
def test_kernels_of_graphs_on_one_stream_each_wait_as_if_launched_one_by_one(form, how, tmp_path):
    found = []
    for by_graph in (False, True):
        folder = tmp_path / str(by_graph)
        folder.mkdir()
        program = steps(Program(), lambda program, at, by_graph=by_graph: packs(program, at, by_graph, how))
        found.append(only(find(str(form(program, folder)), resident)))
    alone, graphs = found
    assert alone.saves_us == pytest.approx(30, abs=0.1) and [one.at_least for one in alone.inversions] == [False]
    assert (graphs.inversions, graphs.saves_us) == (alone.inversions, pytest.approx(alone.saves_us))


def test_nodes_of_a_graph_beside_each_other_on_one_stream_have_an_order_that_no_row_says(tmp_path):
    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 70), at + 1)
        program.graph([boundary(at + 60, 10), boundary(at + 62, 3), boundary(at + 66, 3)], at + 3)
        program.synchronize(20, at + 12, at + 76)

    assert {one.at_least for one in only(look(steps(Program(), step), tmp_path)).inversions} == {True}


def test_an_event_may_be_of_a_stream_that_waited_for_something_unknown(tmp_path):
    """Stream 21 waits for a stream that nothing ran on, and hands over."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(boundary(at - 3, 1, stream=21), at - 6)
        program.launch(boundary(at - 2, 1), at - 5)
        program.record(7, 99, at - 4)
        program.wait(21, 7, at - 3)
        program.record(8, 21, at - 2)
        program.wait(20, 8, at - 1)
        program.launch(boundary(at + 70, 5), at + 3)
        program.launch(collective(at + 76, 15), at + 5)

    (inversion,) = only(look(steps(Program(), step), tmp_path)).inversions
    assert inversion.at_least


def test_without_steps_it_is_of_the_whole_trace(tmp_path):
    program = Program()
    by_nccl(program, 1000.0)
    process = only(look(program, tmp_path))
    assert (process.steps, process.count) == (None, 1)
    assert process.span_us == pytest.approx(92)
    assert process.waited_us == pytest.approx(64, abs=3)


def test_numbers_that_are_none_are_left_out(tmp_path):
    """A damaged trace: waits for what was recorded later, streams that are not there, correlations of nothing."""
    program = steps(Program(), by_nccl)
    path = program.kineto(tmp_path / "trace.json")
    text = path.read_text()
    for old, new in (
        ('"wait_on_cuda_event_record_corr_id": ', '"wait_on_cuda_event_record_corr_id": 99'),
        ('"wait_on_stream": 20', '"wait_on_stream": 77'),
        ('"wait_on_stream": 20', '"wait_on_stream": "x"'),
        ('"correlation": ', '"correlation": -'),
        ('"correlation": 1', '"correlation": 1e300'),
        ('"correlation": ', '"correlation": [1], "x": '),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        find(str(path), resident)


# ---- what a waiter loses ----


def exchange(program: Program, at: float, takes: float = 10.0) -> None:
    """A collective behind the interior, ready long before; the copy behind it on stream 7 is launched at 97."""
    program.launch(interior(at + 4, 76), at + 1)
    program.launch(collective(at + 75, takes), at + 5)
    program.record(1, 20, at + 7)
    program.wait(7, 1, at + 8)
    program.launch(copy(at + 98, 1, stream=7), at + 97)


def test_who_is_launched_later_has_lost_nothing(tmp_path):
    """The host was late: were the collective earlier, the copy would not be."""
    process = only(look(steps(Program(), exchange), tmp_path))
    (inversion,) = process.inversions
    assert inversion.waiters == ("communication",) and inversion.waited_us > 60
    assert process.saves_us == process.unclaimed_us == 0


def test_work_behind_it_on_its_stream_that_is_launched_ahead_has_waited(tmp_path):
    def step(program: Program, at: float) -> None:
        exchange(program, at)
        program.launch(boundary(at + 86, 5), at + 9)

    assert only(look(steps(Program(), step), tmp_path)).saves_us > 5


def test_where_streams_wait_for_what_is_not_told_anybody_may_have_waited(tmp_path):
    """The host comes late, but what stream 7 waits for is not told."""

    def step(program: Program, at: float) -> None:
        by_nccl(program, at)
        program.synchronize(20, at + 96.5, at + 97)

    assert only(look(steps(Program(), step), tmp_path, UNRESOLVED)).saves_us > 5


def test_what_another_rank_loses_comes_back_with_the_next_communication(tmp_path):
    """Every other collective is 8 us longer than it must be: as much may be lost by the one in front of it."""
    program = steps(Program(), lambda program, at: exchange(program, at, 10 if int(at / 100) % 2 else 18), count=6)
    process = only(look(program, tmp_path))
    assert process.saves_us == pytest.approx(4, abs=0.7), "8 in every other step"


@pytest.mark.parametrize("how", ["stream", "host", "device", "nobody"])
def test_a_wait_is_handed_on_by_a_stream_without_work(how, tmp_path):
    """Stream 30 waits for the collective, and another stream, the host, or nobody waits for stream 30."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(collective(at + 75, 16), at + 5)
        program.record(1, 20, at + 7)
        program.wait(30, 1, at + 8)
        if how == "stream":
            program.record(2, 30, at + 9)
            program.wait(31, 2, at + 10)
            program.launch(copy(at + 91, 1, stream=31), at + 11)
        elif how == "host":
            program.synchronize(30, at + 12, at + 92)
        elif how == "device":
            program.device_synchronize(at + 12, at + 92)

    program = Program()
    for stream in (30, 31):
        program.launch(copy(990, 1, stream=stream), 980)
    process = only(look(steps(program, step), tmp_path))
    (inversion,) = process.inversions
    assert inversion.waiters == (("communication",) if how == "nobody" else ("communication", "stream 30"))
    assert (process.saves_us > 5) is (how != "nobody"), process.saves_us
