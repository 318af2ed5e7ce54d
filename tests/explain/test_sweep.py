"""--sweep: every size at which anything changes, and nothing between."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from pyshim.explain.answer import Explainer, Explanation
from pyshim.explain.planner import largest_dynamic
from pyshim.explain.request import read
from pyshim.explain.screen import Line, picture, svg, sweep_screen
from pyshim.explain.variants import Sweep

Ask = Callable[..., tuple[Sweep, Explanation]]


@pytest.fixture
def sweep(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> Ask:
    def ask(**changes: Any) -> tuple[Sweep, Explanation]:
        found = explainer.explain(explainer.look(read(request_of(**changes))))
        return found.sweep(), found

    return ask


def test_the_steps_are_the_librarys_at_every_size(
    explainer: Explainer, random_request: Callable[[random.Random], dict[str, Any]]
) -> None:
    """Each size inside a step gets the step's numbers, as a request of its own; neighbours differ."""
    source, several = random.Random(11), 0
    for _ in range(150):
        asked = random_request(source)
        for name in ("blocks", "shape"):
            asked.pop(name, None)
        found = explainer.explain(explainer.look(read(asked)))
        steps = found.sweep().steps
        if not found.answer.plan.native_blocks:
            assert steps == []
            continue
        assert steps[0].minimum == asked["dynamic_smem"]
        assert [step.minimum for step in steps[1:]] == [step.maximum + 1 for step in steps[:-1]]
        assert all((a.blocks, a.beside) != (b.blocks, b.beside) for a, b in zip(steps, steps[1:]))
        several += len(steps) > 3
        for step in steps:
            for size in {step.minimum, step.maximum, source.randint(step.minimum, step.maximum)}:
                single = explainer.answer({**asked, "shape": f"dynamic_shared_memory={size}"})
                resized = explainer.answer({**asked, "dynamic_smem": size})
                assert (resized["native_blocks"], resized["beside_after_drain"]) == (step.blocks, step.beside)
                if size > asked["dynamic_smem"]:
                    assert (single["blocks"], single["reason"]) == (step.blocks, step.reason)
        assert steps[-1].maximum == largest_dynamic(found.answer.case.gpu, found.computation.block)
    assert several > 20


def test_windows_are_where_all_blocks_meet_communication(sweep: Ask) -> None:
    found, answer = sweep()
    at_once = [(step.blocks, step.minimum, step.maximum) for step in found.steps if step.beside >= step.blocks]
    assert at_once == [window[:3] for window in answer.answer.plan.windows]
    assert [found.mark(step) for step in found.steps] == ["asked", "make_room", ""]
    assert [step["warps"] for step in found.as_json()] == [8, 4, 4]


def test_what_cannot_be_launched_has_no_steps(sweep: Ask) -> None:
    for changes in ({"threads": 2000}, {"static_smem": 232448, "dynamic_smem": 1}):
        found, answer = sweep(**changes)
        assert found.steps == []
        assert [part.text for part in sweep_screen(found, answer, 80, False)] == [
            f"cannot_launch: {answer.answer.help}"
        ]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_bars_count_blocks(sweep: Ask, columns: int) -> None:
    for changes in ({}, {"registers": 32, "dynamic_smem": 0}, {"threads": 32, "registers": 16, "dynamic_smem": 0}):
        found, _ = sweep(**changes)
        bars = [part.text for part in picture(found, columns, True) if isinstance(part, Line)]
        unit = bars[0].count("#") + bars[0].count(".")
        for step, bar in zip(found.steps, bars):
            assert len(bar) <= columns
            drawn, most = bar.count("#") + bar.count("."), found.steps[0].blocks
            assert drawn == pytest.approx(step.blocks * unit / most, abs=1)
            assert bar.count("#") == pytest.approx(max(0, min(step.beside, step.blocks)) * unit / most, abs=1)


def test_the_file_is_xml_and_its_bars_are_the_steps(sweep: Ask) -> None:
    found, _ = sweep(registers=32, dynamic_smem=0, keep_at_least=0)
    root = ElementTree.fromstring(svg(found, "<script>&"))
    bars = [rect for rect in root if rect.tag.endswith("rect") and len(rect)]
    assert len(bars) == len(found.steps)
    heights = [float(bar.get("height", "0")) / step.blocks for bar, step in zip(bars, found.steps)]
    assert max(heights) == pytest.approx(min(heights), abs=0.2)
    assert all(float(bar.get("x", "0")) + float(bar.get("width", "0")) <= 720 for bar in bars)
    assert [text for text in root.itertext() if "<script>&" in text]
    assert "http" not in svg(found, "").replace("http://www.w3.org/2000/svg", ""), "it needs no network"
