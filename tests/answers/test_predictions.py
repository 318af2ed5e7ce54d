"""The outcome of each prediction flips where data are planted that contradict it, and is open where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import suite_files

from tools.answers import gpu, predictions
from tools.answers.predictions import FAILED, HELD, OPEN

BY_NAME = {name.partition(":")[0]: function for name, function in predictions.PREDICTIONS.items()}


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the outcome of a prediction on made-up cells of the stand-ins."""
    calls = 0

    def answer(name: str, cells: list[dict[str, Any]], rule: str = "hold") -> predictions.Found:
        nonlocal calls
        calls += 1
        root = tmp_path / str(calls)  # a file is read once
        suite_files.write(root, suite_files.suite(cells))
        monkeypatch.setattr(gpu, "rule", lambda _: rule)
        return BY_NAME[name](root)

    return answer


P1, P4 = {"priority": 0.9, "policy:make-room": 0.9}, {"sequential": 1.1, "order": 0.9, "shape-2+priority": 0.9}
CASES = {
    "P1 held": ("P1", P1, "warped", "one", 0.001, HELD),
    "P1 failed": ("P1", {**P1, "policy:make-room": 0.93}, "warped", "one", 0.001, FAILED),
    "P1 failed by a gain": ("P1", {**P1, "policy:make-room": 0.87}, "warped", "one", 0.001, FAILED),
    "P1 in the noise": ("P1", {**P1, "policy:make-room": 0.9075}, "warped", "one", 0.02, OPEN),
    "P1 of medians alone": ("P1", P1, "warped", "one", 0.007, OPEN),
    "P1 of other kernels": ("P1", {**P1, "policy:make-room": 0.93}, "tiled", "one", 0.001, OPEN),
    "P3 held": ("P3", {"priority": 0.9, "shape-2+priority": 0.92}, "tiled", "one", 0.001, HELD),
    "P3 failed": ("P3", {"priority": 0.9, "shape-2+priority": 0.85}, "tiled", "one", 0.001, FAILED),
    "P3 by half a per cent": ("P3", {"priority": 0.9, "shape-2+priority": 0.895}, "tiled", "one", 0.001, HELD),
    "P3 in the noise": ("P3", {"priority": 0.9, "shape-2+priority": 0.885}, "tiled", "one", 0.03, OPEN),
    "P3 of medians alone": ("P3", {"priority": 0.9, "shape-2+priority": 0.9}, "tiled", "one", 0.02, OPEN),
    "P4 held": ("P4", P4, "tiled", "pairs", 0.001, HELD),
    "P4 failed": ("P4", {**P4, "shape-2+priority": 0.8}, "tiled", "pairs", 0.001, FAILED),
    "P4 of a policy": ("P4", {**P4, "policy:blocks-2": 0.8}, "tiled", "pairs", 0.001, FAILED),
    "P4 of the other order": ("P4", {**P4, "order": 1.0, "order+priority": 0.9}, "tiled", "pairs", 0.001, HELD),
    "P4 of medians alone": ("P4", P4, "tiled", "pairs", 0.06, OPEN),
    "P4 not in pairs": ("P4", {**P4, "shape-2+priority": 0.8}, "tiled", "one", 0.001, OPEN),
    "P7 held": ("P7", {"shape-2": 0.99, "shape-1+priority": 0.8}, "tiled", "one", 0.001, HELD),
    "P7 failed": ("P7", {"shape-2": 0.97}, "tiled", "one", 0.001, FAILED),
    "P7 in the noise": ("P7", {"shape-2": 0.972}, "tiled", "one", 0.03, OPEN),
    "P7 of medians alone": ("P7", {"shape-2": 1.0}, "tiled", "one", 0.06, OPEN),
    "P7 no GEMM": ("P7", {"shape-2": 0.9}, "copy", "one", 0.001, OPEN),
}


@pytest.mark.parametrize(("name", "factors", "kernel", "pattern", "noise", "expected"), CASES.values(), ids=list(CASES))
def test_of_cells(
    said: Any, name: str, factors: dict[str, float], kernel: str, pattern: str, noise: float, expected: str
) -> None:
    cells = [suite_files.cell(kernel, ratio, pattern, factors, noise=noise) for ratio in (0.25, 0.5, 1.0)]
    assert said(name, cells, rule="hold").verdict == expected


@pytest.mark.parametrize(("name", "noise"), [("P1", 0.02), ("P4", 0.1), ("P7", 0.1)])
def test_one_cell_in_the_noise_is_enough(said: Any, name: str, noise: float) -> None:
    """The other two are surely inside."""
    _, factors, kernel, pattern, quiet, _ = CASES[f"{name} held"]
    for last, expected in ((quiet, HELD), (noise, OPEN)):
        noises = {0.25: quiet, 1.0: quiet, 0.5: last}
        cells = [suite_files.cell(kernel, ratio, pattern, factors, noise=one) for ratio, one in noises.items()]
        assert said(name, cells).verdict == expected


@pytest.mark.parametrize("better", [1, 2])
def test_one_of_ten_cells_may_be_better(said: Any, better: int) -> None:
    factors = [{"priority": 0.9, "shape-2+priority": 0.85 if at < better else 0.92} for at in range(10)]
    cells = [suite_files.cell("tiled", 0.1 + at / 10, "one", one, noise=0.001) for at, one in enumerate(factors)]
    found = said("P3", cells)
    assert (found.outside, found.verdict) == (better, HELD if better == 1 else FAILED)
    assert said("P3", cells, "backfill").verdict == OPEN


def test_cells_without_sizes_count_as_not_better(said: Any) -> None:
    factors = [{"priority": 0.9, "shape-2+priority": 0.85}, *[{"priority": 0.9}] * 9]
    cells = [
        suite_files.cell("warped" if at else "tiled", 0.1 + at / 10, "one", one, noise=0.001)
        for at, one in enumerate(factors)
    ]
    found = said("P3", cells)
    assert (found.tested, found.inside, found.verdict) == (10, 9, HELD)


@pytest.mark.parametrize("name", ["P1", "P3"])
def test_one_correction_over_all_arms(said: Any, name: str) -> None:
    """One cell of eight rounds is enough for twelve arms, not for thirteen."""
    kernel, arm = {"P1": ("warped", "policy:blocks-1"), "P3": ("tiled", "shape-1+priority")}[name]
    arms = [arm.replace("1", str(number)) for number in range(1, 14)]
    for count, expected in ((1, HELD), (12, HELD), (13, OPEN)):
        factors = {"priority": 0.9, **dict.fromkeys(arms[:count], 0.9)}
        cells = [suite_files.cell(kernel, 0.5, "one", factors, rounds=8, noise=0.0003)]
        assert said(name, cells).verdict == expected


@pytest.mark.parametrize(("stretch", "expected"), [(1.95, HELD), (1.5, FAILED), (2.3, FAILED), (2.1, OPEN)])
def test_a_persistent_kernel(said: Any, stretch: float, expected: str) -> None:
    factors = {"order+priority": 1.0, "priority": 1.0}
    cells = [suite_files.cell("persistent", 1.0, "one", factors, stretches={"order+priority": stretch})]
    assert said("P2", cells).verdict == expected
    short = [suite_files.cell("persistent", 0.5, "one", factors, stretches={"order+priority": stretch})]
    assert said("P2", short).verdict == OPEN


def test_sharing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answer(*runs: tuple[bool, bool]) -> str:
        found = [gpu.Neighbours(False, fits, (100, -1), shared) for fits, shared in runs]
        monkeypatch.setattr(gpu, "neighbours", lambda _: found)
        return predictions.sharing_is_arithmetic(tmp_path).verdict

    assert answer((True, True), (True, False), (False, False)) == HELD
    assert answer((True, True), (False, True)) == FAILED
    assert answer() == OPEN


@pytest.mark.parametrize(
    ("rule", "waits", "expected"),
    [("hold", (80, 130), OPEN), ("backfill", (80, 130), HELD), ("backfill", (130, 80), FAILED)],
)
def test_clusters(
    rule: str, waits: tuple[int, int], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "stream priority, 64 blocks like NCCL's"
    variants = {f"{name}{more}": {"wait_last_us": [us]} for more, us in zip(("", ", clusters of 4"), waits)}
    monkeypatch.setattr(gpu, "rule", lambda _: rule)
    monkeypatch.setattr(gpu, "variants", lambda _: variants)
    assert predictions.clusters_wait_longer(tmp_path).verdict == expected
