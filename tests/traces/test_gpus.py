"""What is found on GPUs that are known and on others, and how much of communication computation hides there."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import GEMM, NCCL, K, kineto, kineto_events
from made_waits import Program, boundary, collective, interior, steps

from pyshim.diagnosis.find import find
from pyshim.diagnosis.result import ProcessResult, TraceResult


def only(found: TraceResult) -> ProcessResult:
    (process,) = found.processes
    return process


@pytest.mark.parametrize(
    ("gpu", "known"),
    [
        ('"name": "NVIDIA H200", "computeMajor": 9', True),
        (
            '"name": "NVIDIA H900", "computeMajor": 9',
            True,
        ),  # its architecture is known, and the trace has its multiprocessors
        ('"name": "NVIDIA H900", "computeMajor": 99', False),
        ('"name": 7, "computeMajor": 9', False),
    ],
)
def test_a_gpu_that_is_not_known_is_looked_at_as_well(gpu, known, tmp_path):
    """Whether a kernel is one wave is known by the limits of its GPU only."""

    def step(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76, waves=1), at + 1)
        program.launch(boundary(at + 70, 5)._replace(grid=(50, 1, 1)), at + 3)
        program.launch(collective(at + 76, 10), at + 5)

    path = steps(Program(), step).kineto(tmp_path / "trace.json")
    text, count = re.subn(r'"name": "NVIDIA H200",\s*"computeMajor": 9', gpu, path.read_text())
    assert count == 1
    path.write_text(text)
    process = only(find(str(path)))
    assert (process.one_wave_us, process.waited_us) == (pytest.approx(64 * known), pytest.approx(64 * (not known)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from((7, 20)), st.integers(0, 40), st.integers(1, 12)), min_size=1))
def test_hidden_communication_is_what_a_sampler_sees(ran):
    """Whole microseconds, each by itself."""
    kernels = [K(NCCL if talks else GEMM, 1000.0 + start, length, stream) for talks, stream, start, length in ran]
    moments: dict[int, set[bool]] = defaultdict(set)
    for talks, _, start, length in ran:
        for moment in range(start, start + length):
            moments[moment].add(talks)
    with tempfile.TemporaryDirectory() as folder:
        process = only(find(str(kineto(Path(folder) / "trace.json", kineto_events(kernels)))))
    assert process.communication_us == pytest.approx(sum(True in kinds for kinds in moments.values()))
    assert process.hidden_us == pytest.approx(sum(len(kinds) == 2 for kinds in moments.values()))
