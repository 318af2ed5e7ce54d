"""Priorities that do not do what they say, as far as a trace shows them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from made import K
from made_waits import PROCESS, Program, boundary, collective, interior, steps

from pyshim.diagnosis.find import find
from pyshim.diagnosis.result import ProcessResult

SMALLER = "the smaller number is the greater priority"


def halo(front: int | None = None, waiting: int | None = None) -> Program:
    """Boundary and collective on stream 20 wait behind the interior on stream 7 + 8."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76, stream=15)._replace(priority=front), at + 1)
        program.launch(boundary(at + 70, 5)._replace(priority=waiting), at + 3)
        program.launch(collective(at + 76, 15)._replace(priority=waiting), at + 5)

    return steps(Program(), step)


def kineto(program: Program, folder: Path) -> ProcessResult:
    (process,) = find(str(program.kineto(folder / "trace.json"))).processes
    return process


def nsys(program: Program, folder: Path, streams: Sequence[tuple[int, int, int]], creates: int = 0) -> ProcessResult:
    """streams: process ID, stream, priority of every stream that was created."""
    for _ in range(creates):
        program.calls.append(("cudaStreamCreateWithPriority", 900.0, 1.0, len(program.calls) + 1))
    path = program.nsys(folder / "export.sqlite")
    with closing(sqlite3.connect(path)) as database:
        columns = "streamId INT, hwId INT, vmId INT, processId INT, contextId INT, priority INT, flag INT"
        database.execute(f"CREATE TABLE TARGET_INFO_CUDA_STREAM ({columns})")
        for pid, stream, priority in streams:
            values = (stream, 0, 0, pid, 1, priority, 2)
            database.execute("INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        database.commit()
    (process,) = find(str(path)).processes
    return process


PID = PROCESS >> 24 & 0xFFFFFF  # as NVIDIA packs them
FORMS: list[Callable[[Path, int, int], ProcessResult]] = [
    lambda folder, front, waiting: kineto(halo(front, waiting), folder),
    lambda folder, front, waiting: nsys(halo(), folder, [(PID, 15, front), (PID, 20, waiting), (PID + 1, 20, -9)]),
    # CUPTI's record has no sign.
    lambda folder, front, waiting: nsys(halo(), folder, [(PID, 15, front % 2**32), (PID, 20, waiting % 2**32)]),
]


@pytest.mark.parametrize("form", FORMS)
def test_the_stream_in_front_has_the_greater_priority(form, tmp_path):
    found = form(tmp_path, -5, 0)
    assert found.faults == (f"stream 20 has priority 0, and stream 15 in front of it -5: {SMALLER}",)
    assert found.has_priorities and found.inversions


@pytest.mark.parametrize("form", FORMS)
def test_all_have_the_same_priority(form, tmp_path):
    found = form(tmp_path, -2, -2)
    assert found.faults == ("all 2 streams that ran kernels have priority -2: equal priorities do nothing",)


@pytest.mark.parametrize("form", FORMS)
def test_what_has_the_greater_priority_already_cannot_be_raised(form, tmp_path):
    found = form(tmp_path, 0, -5)
    assert (found.faults, found.inversions, found.saves_us) == ((), (), 0)
    assert found.raised_us == pytest.approx(64, abs=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_who_sets_no_priority_made_no_mistake(form, tmp_path):
    found = form(tmp_path, 0, 0)
    assert (found.faults, found.has_priorities, len(found.inversions)) == ((), False, 1)


@pytest.mark.parametrize(
    ("streams", "creates", "said"),
    [
        ([(PID, 15, 0), (PID, 20, 0)], 2, True),
        ([(PID, 15, 0), (PID, 20, 0)], 0, False),  # cudaStreamCreate
        ([(PID, 15, 0), (PID, 20, 0), (PID, 33, -5)], 3, False),  # a pool, as PyTorch's
        ([(PID + 1, 15, 0)], 2, False),  # of another process
        ([], 2, False),
    ],
)
def test_created_with_the_lowest_priority(streams, creates, said, tmp_path):
    found = nsys(halo(), tmp_path, streams, creates)
    sentence = f"streams were created with priority (2 x), and all have 0, the lowest: {SMALLER}"
    assert found.faults == ((sentence,) if said else ())


@pytest.mark.parametrize(
    ("nodes", "outside", "said"),
    [
        (((0, 15), (0, 20)), -5, True),
        (((0, 15), (-5, 20)), -5, False),  # nodes have priorities of their own
        (((0, 15), (0, 15)), -5, False),  # one branch
        (((0, 15), (0, 20)), 0, False),  # no stream has a priority
        (((-5, 15), (-5, 20)), -5, False),  # launched into the stream that has it
        (((None, 15), (None, 20)), -5, False),
    ],
)
def test_a_graph_that_loses_the_priorities_of_its_streams(nodes, outside, said, tmp_path):
    def step(program: Program, at: float) -> None:
        kernels = [
            boundary(at + 10 * number, 5, stream=stream)._replace(priority=priority, graph_node=number)
            for number, (priority, stream) in enumerate(nodes, 1)
        ]
        program.graph(kernels, at + 1)
        program.launch(K("other(int)", at + 50, 5, 31, priority=outside), at + 3)
        program.launch(K("rest(int)", at + 60, 5, 32, priority=0), at + 4)

    found = kineto(steps(Program(), step), tmp_path)
    flag = "without cudaGraphInstantiateFlagUseNodePriority a graph has the priority of the stream it is launched into"
    sentence = f"all kernels of graphs ran at priority 0, although a stream has -5: {flag}"
    assert found.faults == ((sentence,) if said else ())
