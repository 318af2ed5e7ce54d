"""How much of its wait raised work gains where blocks in front take long, and each kernel of a chain waits again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made import K
from made_waits import Program, boundary, chain, copy, interior, steps

from pyshim.diagnosis.find import find
from pyshim.diagnosis.result import ProcessResult


def look(program: Program, tmp_path: Path, waves: float | None = 1000) -> ProcessResult:
    """waves: of a kernel of 105,600 blocks."""
    blocks = round(1056 * 100 / waves) if waves else None
    (process,) = find(str(program.kineto(tmp_path / "trace.json")), lambda gpu: lambda kernel: blocks).processes
    return process


def played(tmp_path: Path, waves: float | None, parts: int, **more: bool) -> ProcessResult:
    program = Program()
    for number in range(5):
        at = 1000.0 + 1000 * number
        chain(program, at, parts, **more)
        if number:
            program.steps.append((number, at, 1000.0))
    return look(program, tmp_path, waves)


@pytest.mark.parametrize(("waves", "saves"), [(1000, 381.8), (100, 380), (10, 362), (2, 282)])
def test_raised_work_waits_for_half_of_a_wave(tmp_path, waves, saves):
    found = played(tmp_path, waves, parts=1)
    assert found.waited_us == pytest.approx(382, abs=0.1)
    assert found.saves_us == pytest.approx(saves, abs=0.3)
    assert found.saves_us + found.still_us == pytest.approx(382, abs=0.3)


def test_each_kernel_of_a_chain_that_the_host_drives_waits_again(tmp_path):
    """Waves of 40 us: the first of eight kernels begins 20 us later than it could, each further one 8 us."""
    saves = [played(tmp_path, 10, parts=parts).saves_us for parts in (1, 2, 4, 8)]
    assert saves == pytest.approx([362, 354, 338, 306], abs=0.5)


def test_a_chain_gains_nothing_where_its_kernels_wait_as_long_as_before(tmp_path):
    found = played(tmp_path, 2, parts=8)
    assert found.saves_us < 100 < found.still_us


def test_copies_wait_for_no_block(tmp_path):
    found = played(tmp_path, 10, parts=8, copies=True)
    assert found.saves_us == pytest.approx(362, abs=0.5)


def test_what_is_launched_ahead_is_a_chain_of_its_stream(tmp_path):
    found = played(tmp_path, 10, parts=4, host=False)
    assert found.saves_us == pytest.approx(338, abs=0.5)


def apart(step: Callable[[Program, float], None], tmp_path: Path) -> ProcessResult:
    """Five steps of a millisecond, behind waves of 40 us."""
    program = Program()
    for number in range(5):
        at = 1000.0 + 1000 * number
        program.launch(interior(at + 4, 400, stream=15), at + 1)
        step(program, at)
        if number:
            program.steps.append((number, at, 1000.0))
    return look(program, tmp_path, waves=10)


def test_no_piece_begins_before_the_one_in_front_has_ended(tmp_path):
    """The host waits for the first; the second takes 50 us and ends before the third is launched."""

    def step(program: Program, at: float) -> None:
        program.launch(boundary(at + 390, 1), at + 5)
        program.synchronize(20, at + 8, at + 391.5)
        program.launch(boundary(at + 397, 50), at + 395)
        program.launch(boundary(at + 450, 1), at + 448)
        program.synchronize(20, at + 449, at + 452)

    assert apart(step, tmp_path).saves_us == pytest.approx(350, abs=0.5)


@pytest.mark.parametrize(("blocks", "saves"), [(True, 362), (False, 0)])
def test_what_the_host_launches_late_does_not_come_earlier(tmp_path, blocks, saves):
    """Unless its call was there before, as that of a copy that blocks."""

    def step(program: Program, at: float) -> None:
        program.launch(boundary(at + 390, 1), at + 5)
        called = 7 if blocks else 391.5
        program.launch(copy(at + 393, 20), at + called, 414 - called if blocks else 1)
        if not blocks:
            program.synchronize(20, at + 393, at + 414)

    assert apart(step, tmp_path).saves_us == pytest.approx(saves, abs=1)


def test_the_host_waits_for_one_stream_and_not_for_the_other(tmp_path):
    """The second kernel comes late, behind the host's wait for another stream's only kernel."""

    def step(program: Program, at: float) -> None:
        program.launch(boundary(at + 390, 1), at + 5)
        if at == 1000:
            program.launch(boundary(at + 9, 371, stream=21), at + 6)
            program.synchronize(21, at + 8, at + 382)
        program.launch(boundary(at + 397, 1), at + 395)
        program.synchronize(20, at + 20 if at > 1000 else at + 384, at + 399)

    program = Program()
    for number, at in enumerate((1000.0, 3000.0)):
        program.launch(interior(at + 4, 400, stream=15), at + 1)
        step(program, at)
        program.steps.append((number, at, 1000.0))
    found = look(program, tmp_path, waves=10)
    assert (found.waited_us > 150, found.saves_us) == (True, 0)


def test_what_waits_for_another_stream_does_not_come_earlier(tmp_path):
    def step(program: Program, at: float) -> None:
        program.launch(boundary(at + 390, 1), at + 5)
        program.launch(boundary(at + 300, 92, stream=16), at + 6)
        program.record(1, 16, at + 7)
        program.wait(20, 1, at + 8)
        program.launch(boundary(at + 395, 1), at + 9)
        program.synchronize(20, at + 10, at + 397)

    assert apart(step, tmp_path).saves_us == 0


def test_what_is_launched_late_begins_a_chain_of_its_own(tmp_path):
    """Two kernels wait for 100 us each, 180 us apart, and another stream waits for each; nothing links them."""

    def step(program: Program, at: float) -> None:
        for number, start in enumerate((at + 110, at + 310)):
            program.launch(boundary(start, 2), start - 102)
            program.record(number, 20, start - 100)
            program.wait(16, number, start - 99)
            program.launch(boundary(start + 4, 5, stream=16), start - 98)

    found = apart(step, tmp_path)
    assert found.waited_us == pytest.approx(200, abs=4)
    assert found.saves_us == pytest.approx(found.waited_us - 2 * 20, abs=1)


def test_where_the_gpu_is_not_known_blocks_are_taken_for_short(tmp_path):
    found = played(tmp_path, None, parts=8)
    assert (found.saves_us, found.still_us) == (pytest.approx(382, abs=0.5), pytest.approx(0, abs=0.5))


def test_a_chain_that_begins_with_a_copy_waits_for_half_of_a_wave(tmp_path):
    """The copy waits for no block; the kernel behind it is the first that does, by 20 us."""

    def step(program: Program, at: float) -> None:
        program.launch(copy(at + 390, 1), at + 5)
        program.launch(boundary(at + 392, 1), at + 6)
        program.synchronize(20, at + 8, at + 394)

    assert apart(step, tmp_path).saves_us == pytest.approx(354, abs=0.5)


def test_the_set_up_is_not_counted(tmp_path):
    """Steps are not marked; 4 ms in front of the first, a small kernel ran, and another 9 ms before that."""

    def found(*more: K) -> ProcessResult:
        program = steps(Program(), lambda program, at: chain(program, 5000 + 10 * at, parts=1))
        program.steps, program.kernels = [], [*more, *program.kernels]
        return look(program, tmp_path)

    whole, after = found(), found(boundary(2000, 3), boundary(11000, 3))
    assert (whole.setup_us, after.setup_us) == (0, 13004)
    assert (after.span_us, after.saves_us) == (pytest.approx(whole.span_us), pytest.approx(whole.saves_us))
    assert found(interior(11000, 300)).setup_us == 0, "that is work"
    assert found(boundary(14200, 3)).setup_us == 0, "that is short"
    assert played(tmp_path, 10, parts=1).setup_us == 0, "steps are marked"
    of_no_length = [boundary(at, 0)._replace(correlation=9000) for at in (1000, 6000, 21000)]
    program = Program()
    program.kernels = of_no_length
    assert (look(program, tmp_path).setup_us, look(program, tmp_path).span_us) == (0, 20000)
    behind = found(*(boundary(22000 + 2000 * n, 3)._replace(correlation=9000 + n) for n in range(4)))
    assert (behind.setup_us, behind.teardown_us) == (0, pytest.approx(8599, abs=1)), "some short pauses are a long one"
    assert (behind.span_us, behind.saves_us) == (pytest.approx(whole.span_us), pytest.approx(whole.saves_us))


def test_many_pauses_are_how_the_program_works(tmp_path):
    """A quarter of a second of kernels, and then 200 steps of 50 us, each launched 5 ms behind the one before."""

    def found(begin: float, *more: K) -> ProcessResult:
        program = Program()
        program.kernels = [*more]
        for number in range(250):
            program.launch(interior(begin + 1000 * number, 990), begin - 100 + 1000 * number)
        for number in range(200):
            at = begin + 259_000 + 5000 * number
            program.launch(boundary(at, 50, 7), at - 10)
            program.synchronize(7, at - 5, at + 52)
        return look(program, tmp_path)

    process = found(1000)
    assert (process.setup_us, process.teardown_us) == (0, 0)
    after = [boundary(1000 + 50_000 * number, 3) for number in range(40)]
    process = found(2_001_000, *after)
    assert (process.setup_us, process.teardown_us) == (2_000_000, 0), "nor do they hide a set-up of longer ones"


def test_while_a_kernel_runs_is_no_pause(tmp_path):
    """150 ms of one kernel, with two short ones beside it, in front of a second on four streams."""
    program = Program()
    program.kernels = [interior(1000, 150_000, 15), boundary(1500, 3), boundary(149_000, 3)]
    program.kernels += [interior(151_100, 1_000_000, stream) for stream in (15, 16, 17, 18)]
    assert look(program, tmp_path).setup_us == 0
