"""overlap report --compare --html: numbers with their intervals, and one step before and after."""

from __future__ import annotations

import random
from pathlib import Path

import made
import pages
import pytest

from pyshim import html
from pyshim.html import paces
from pyshim.html import traces as traced
from pyshim.html.timeline import exposed, merged
from pyshim.traces.compared import compare as compare_traces


def traces(folder: Path, gain: float, ranks: int = 2, kernel: str = made.GEMM) -> Path:
    """Of a step with four GEMMs of 400 us, and as many all-reduces behind the first of them, of 430 us times gain."""
    folder.mkdir()
    noise = random.Random(folder.name)
    for rank in range(ranks):
        kernels, steps, at = [made.K(None, 0.0, 20.0, stream=14)], [], 0.0
        for number in range(31):
            gemms = [400 * noise.uniform(0.97, 1.03) for _ in range(4)]
            reduces = [(400.0 + 430 * index, 430 * gain * noise.uniform(0.97, 1.03)) for index in range(4)]
            for one in made.step(at, gemms, reduces):
                kernels.append(one._replace(name=kernel) if one.name == made.GEMM else one)
            length = max(sum(gemms), *(start + long for start, long in reduces))
            steps.append((number, at, length))
            at += length
        made.kineto(folder / f"{rank}.json", made.kineto_events(kernels, steps, gpu_steps=True), rank=rank, world=ranks)
    return folder


@pytest.fixture
def compared(tmp_path):
    return compare_traces(str(traces(tmp_path / "before", 1.0)), str(traces(tmp_path / "after", 0.6)))


def test_the_page_has_numbers_intervals_and_pictures(browser, overlap, tmp_path):
    before, after = traces(tmp_path / "before", 1.0), traces(tmp_path / "after", 0.6)
    path = tmp_path / "page.html"
    done = overlap("report", "--compare", str(before), str(after), "--html", str(path))
    assert (done.returncode, done.stderr) == (0, f"overlap: the page is {path}: open it in a browser\n")
    for width, dark in ((400, True), (1200, False)):
        with browser.page(path, width, dark) as page:
            assert page.value("document.documentElement.scrollWidth") == width
            assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
            assert page.value("[...document.querySelectorAll('h2')].map(e => e.textContent)") == [
                *("Before and after", "One step", "By rank", "What the words mean"),
            ]
            assert page.value("document.querySelectorAll('tbody')[0].rows.length") == 8
            # Less communication, surely; computation the same.
            sure = page.value("[...document.querySelectorAll('tbody')[0].rows].map(r => !!r.querySelector('.sure'))")
            assert sure[:3] == [True, False, True]
            for lanes in page.value(LANES):
                assert lanes[-3:] == ["stream 7", "stream 20", "exposed"]


LANES = """[...document.querySelectorAll('.inner h3')].map((head) => {
  const names = [];
  for (let e = head.nextElementSibling; e && e.tagName !== 'H3'; e = e.nextElementSibling)
    if (e.querySelector('.run')) names.push(e.querySelector('.stream').textContent);
  return names;
})"""


def test_bars_lie_where_they_ran(browser, compared, tmp_path):
    """Both pictures have one scale; a bar is as long as it took, in the lane of its stream."""
    path = tmp_path / "page.html"
    path.write_text(html.compare(compared.as_json(), compared.timeline()), encoding="utf-8")
    pictures = compared.timeline()
    whole = max(picture["length_us"] for picture in pictures.values())
    with browser.page(path) as page:
        drawn = page.value(
            "[...document.querySelectorAll('.run')].map(lane => [...lane.querySelectorAll(':scope > rect')].map(bar =>"
            "[bar.getBBox().x, bar.getBBox().width, lane.clientWidth, bar.getAttribute('class')]))"
        )
        lanes = [bars for bars in drawn if bars and bars[0][3] != "exposed"]
        expected = [lane["bars"] for picture in pictures.values() for lane in picture["lanes"]]
        assert len(lanes) == len(expected)
        for bars, ran in zip(lanes, expected):
            assert [bar[3].split()[0] for bar in bars] == [kind for _, _, kind, _ in ran]
            for (x, width, lane, _), (start, end, _, _) in zip(bars, ran):
                assert x / lane == pytest.approx(start / whole, abs=1e-3)
                assert width / lane == pytest.approx((end - start) / whole, abs=1e-3)
        narrow = page.value("document.querySelector('.run').clientWidth")
        page.value("document.querySelector('#zoom4').click()")
        assert page.value("document.querySelector('.run').clientWidth") > 3 * narrow
        assert page.value("document.documentElement.scrollWidth") == 1200


def test_exposed_is_communication_without_computation():
    lanes = [
        {"stream": "7", "bars": [[0, 10, "computation", "a"], [12, 20, "computation", "b"], [25, 26, "memory", "c"]]},
        {"stream": "8", "bars": [[18, 22, "computation", "c"]]},
        {"stream": "9", "bars": [[5, 15, "communication", "n"], [14, 30, "communication", "n"]]},
    ]
    assert list(exposed(lanes)) == [(10, 12), (22, 30)]
    assert list(exposed(lanes[2:])) == [(5, 30)]
    assert list(exposed(lanes[:2])) == []
    assert merged([(3, 4), (0, 1), (1, 2), (0, 0.5)]) == [(0, 2), (3, 4)]


def test_the_exposed_lane_is_what_was_measured(compared):
    """Of the step in the picture, microsecond for microsecond."""
    for side, picture in compared.timeline().items():
        (rank,) = [rank for rank in compared.ranks if rank.name == "rank 0"]
        alone = sum(end - start for start, end in exposed(picture["lanes"]))
        assert alone == pytest.approx(getattr(rank, side)[picture["step"]].exposed, abs=0.05)


def test_the_verdict_says_how_sure_it_is(compared):
    data = compared.as_json()
    said = traced.verdict(data)
    assert said.startswith("A step takes 2.1") and "% less (95 % interval of the difference: -" in said
    data["total"]["step_time"].update(verdict="no difference seen", interval=[-10.0, 10.0])
    assert " after: no difference seen (95 %" in traced.verdict(data)
    data["total"]["step_time"].update(verdict=None, interval=None)
    assert traced.verdict(data).endswith("or they are too much alike, to say how sure that is.")
    data["total"]["step_time"].update(before=None, difference=None)
    assert traced.verdict(data) == "Nothing can be compared."
    assert "<table>" in html.compare(data, {"before": None, "after": None})


@pytest.mark.parametrize("ranks", [1, 8, 300])
def test_two_reports_are_compared_rank_by_rank(browser, tmp_path, ranks):
    path = tmp_path / "page.html"
    data = pages.paces(ranks)
    path.write_text(html.compare_reports(data), encoding="utf-8")
    for width, dark in ((400, True), (1200, False)):
        with browser.page(path, width, dark) as page:
            assert page.value("document.documentElement.scrollWidth") == width
            assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
            rows = page.value("[...document.querySelectorAll('tbody')].map(e => e.rows.length)")
            assert rows == ([16, 300] if ranks == 300 else [ranks])
            sure = page.value("[...document.querySelectorAll('tbody')].pop().querySelectorAll('circle.sure').length")
            assert sure == data["verdicts"].get("faster", 0)
            assert page.value("document.querySelector('.verdict').className") == (
                "verdict neither" if ranks == 1 else "verdict good"
            )


def test_the_verdict_of_two_reports_counts_ranks():
    assert paces.verdict(pages.paces(8)) == (
        "Time between communication launches of the 8 ranks: faster in 4, no difference seen in 3, too few launches to "
        "tell in 1. Median change -2.2 %, in host time."
    )
    nothing = {**pages.paces(1), "ranks": [], "verdicts": {}}
    assert paces.verdict(nothing).endswith(": nothing can be compared.")
    assert "only before" in html.compare_reports(nothing)


def test_a_name_does_nothing(browser, tmp_path):
    name = "".join(pages.HOSTILE)
    before = traces(tmp_path / "before", 1.0, 1, f"{name}gemm")
    data = compare_traces(str(before), str(traces(tmp_path / "after", 0.6, 1, f"{name}gemm")))
    made_of, pictures = data.as_json(), data.timeline()
    made_of["before"]["path"] = name
    made_of["ranks"] *= 2
    for rank in made_of["ranks"]:
        rank["name"] = name
    for picture in pictures.values():
        picture["name"] = name
        for lane in picture["lanes"]:
            lane["stream"] = name
    path = tmp_path / "page.html"
    for text in (html.compare(made_of, pictures), html.compare_reports(pages.paces(8, name))):
        path.write_text(text, encoding="utf-8")
        with browser.page(path, 400) as page:
            assert page.value("document.title").startswith("overlap report: ")
            assert page.value("document.querySelectorAll('img, [onload], [onerror], [href]').length") == 0
            assert page.value("document.scripts.length") == 1
            assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
            assert page.value("document.documentElement.scrollWidth") == 400
