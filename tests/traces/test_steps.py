"""Steps, by what programs and profilers call them."""

from __future__ import annotations

import pytest

from pyshim.diagnosis.steps import Finder, Steps, of_process
from pyshim.profiles.record import NamedRange


def found(*spans: tuple[str, float, float] | NamedRange) -> Steps | None:
    finder = Finder()
    for span in spans:
        finder.add(span if isinstance(span, NamedRange) else NamedRange(*span, on_gpu=False))
    return finder.find()


def train(name: str, length: float = 9.5, count: int = 4) -> list[tuple[str, float, float]]:
    return [(name.replace("N", str(index)), index * 10.0, index * 10.0 + length) for index in range(count)]


def test_the_profilers_own_come_first():
    spans = [*train("train_step"), *((f"ProfilerStep#{n}", 10.0 * n, 10.0 * n + 10) for n in (2, 1, 3))]
    assert found(*spans) == Steps("ProfilerStep#", False, (10.0, 20.0, 30.0, 40.0))
    assert found(("ProfilerStep#7", 5.0, 6.0)) == Steps("ProfilerStep#", False, (5.0, 6.0))


def test_the_last_of_three_is_left_out_because_its_end_is_not_known():
    assert found(*train("step N")).whole == (0.0, 10.0, 20.0, 30.0)
    assert found(*train("step N", count=2)).whole == (0.0, 10.0, 19.5)


def test_on_the_gpu_before_on_the_host_and_all_streams_are_one():
    spans = [NamedRange(f"ProfilerStep#{n}", 10.0 * n, 10.0 * n + 5, on_gpu=False) for n in range(3)]
    for n in range(3):
        spans.append(NamedRange(f"ProfilerStep#{n}", 100.0 * n + 20, 100.0 * n + 130, on_gpu=True))  # into the next one
        spans.append(NamedRange(f"ProfilerStep#{n}", 100.0 * n, 100.0 * n + 90, on_gpu=True))
    assert found(*spans) == Steps("ProfilerStep#", True, (0.0, 100.0, 200.0, 330.0))


@pytest.mark.parametrize("name", ["step N", "iteration N", "train_step", "Train Batch N", "iter_N", "steps"])
def test_ranges_that_are_called_steps(name):
    assert found(*train("forward", 4), *train("optimizer", 2), *train(name)).bounds == (0.0, 10.0, 20.0, 30.0, 39.5)


@pytest.mark.parametrize(
    ("length", "taken"), [(1.1, False), (4.0, False), (5.0, True)], ids=["a tenth", "47 %", "57 %"]
)
def test_ranges_that_are_called_steps_cover_half_of_the_time(length, taken):
    assert (found(*train("train_step", length)) is not None) is taken


def test_any_range_that_comes_again_and_leaves_nothing_out():
    assert found(*train("work", 9.5)).source == "work"
    assert found(*train("work", 5)) is None


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([], id="none"),
        pytest.param(train("Optimizer.step#SGD.step", 9.9), id="PyTorch's optimizer"),
        pytest.param(train("nccl:all_reduce", 9.9), id="PyTorch's collectives"),
        pytest.param([("step", 0.0, 10.0), ("step", 5.0, 20.0), ("step", 20.0, 30.0)], id="one inside another"),
        pytest.param([("step", 0.0, 10.0)], id="only one"),
        pytest.param([("step", 0.0, 1.0), ("step", 90.0, 91.0)], id="next to nothing"),
        pytest.param([("stepping", 0.0, 1.0), ("stepping", 2.0, 3.0)], id="another word"),
    ],
)
def test_no_steps(spans):
    assert found(*spans) is None


def test_ranges_of_the_host_become_times_of_the_gpu():
    """The host runs ahead: it has enqueued both steps before the first kernel ends."""
    finder = Finder()
    for span in (("step 0", 0.0, 20.0), ("step 1", 20.0, 40.0)):
        finder.add(NamedRange(*span, on_gpu=False))
    ran = [(1.0, 1000.0, 1500.0), (5.0, 1500.0, 2000.0), (21.0, 2100.0, 2700.0), (38.0, 2700.0, 3000.0)]
    assert of_process({7: finder}, 7, ran) == Steps("step #", True, (1000.0, 2100.0, 3000.0))
    assert of_process({7: finder}, 7, []) is None, "without launch calls the host's times are not the GPU's"


def test_only_ranges_of_one_process_serve_all():
    finders = {1: Finder(), 2: Finder()}
    for process, finder in finders.items():
        for start in (0.0, 10.0):
            finder.add(NamedRange("step", start, start + 10 - process, on_gpu=True, process=process))
    assert of_process({1: finders[1]}, 3, []) == of_process(finders, 1, []) == finders[1].find()
    assert of_process(finders, 3, []) is None
