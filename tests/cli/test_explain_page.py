"""overlap explain --html: one page with the timeline of a step, which loads nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from made import GEMM, K, kineto, kineto_events

from tests.cli.test_explain_trace import halo, lines
from tests.fuzz.saying import check_html

STEP = str(Path(__file__).resolve().parents[1] / "traces/data/bare-rank0.json.gz")


class Page(HTMLParser):
    """What a page draws and says."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        text = path.read_text(encoding="utf-8")
        check_html(text)
        assert "default-src 'none'" in text
        self.bars: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "rect" and (kind := dict(attrs).get("class")):
            self.bars.append(kind)

    def handle_data(self, data: str) -> None:
        self.said += data


def test_a_page_draws_one_step(overlap, library, tmp_path):
    """A lane for each stream: the interior, and the boundary that waits behind it, then runs, then its collective."""
    trace, path = halo().nsys(tmp_path / "export.sqlite"), tmp_path / "page.html"
    done = overlap("explain", str(trace), "--html", str(path))
    assert (done.returncode, done.stderr) == (0, f"overlap: the page is {path}: open it in a browser\n")
    assert done.stdout.splitlines() == lines(overlap, trace)
    page = Page(path)
    assert sorted(page.bars) == ["communication", "computation", "computation", "wait"]
    for said in ("GPU 0, stream 15", "GPU 0, stream 20", "ready, behind interior: 0.064 ms", "boundary: 0.005 ms"):
        assert said in page.said, said
    assert set(lines(overlap, trace, "--full", env={"COLUMNS": "100"})) - {""} <= set(page.said.splitlines())


def test_a_page_is_not_replaced_unasked_and_may_go_to_stdout(overlap, library, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("mine")
    done = overlap("explain", STEP, "--html", str(path))
    assert (done.returncode, done.stdout, path.read_text()) == (2, "", "mine")
    assert f"{path} already exists" in done.stderr
    assert overlap("explain", STEP, "--html", str(path), "--force").returncode == 0
    assert "<svg" in path.read_text() and "<svg" in overlap("explain", STEP, "--html", "-").stdout
    assert overlap("explain", STEP, "--html", "-").stdout.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    "name", ['"><script>alert(1)</script>', "<img src=x onerror=alert(1)>", "a\x1b[31mb\u202e", "&lt;{code}</svg>"]
)
def test_a_name_is_text_whatever_it_holds(overlap, library, tmp_path, name):
    program = halo()
    program.kernels = [one._replace(name=name) if one.stream == 15 else one for one in program.kernels]
    trace, path = program.kineto(tmp_path / f"{name.replace('/', '')}.json"), tmp_path / "page.html"
    assert overlap("explain", str(trace), "--html", str(path)).returncode == 0
    assert Page(path).bars.count("wait") == 1


def test_a_step_of_very_many_kernels_is_a_small_page(overlap, library, tmp_path):
    kernels = [K(GEMM, 1000.0 + 2 * number, 1.0) for number in range(20_000)]
    path = tmp_path / "page.html"
    trace = kineto(tmp_path / "t.json", kineto_events(kernels))
    assert overlap("explain", str(trace), "--html", str(path)).returncode == 0
    assert len(Page(path).bars) < 2500 and "more: " in path.read_text()


def test_a_page_in_a_browser(browser, overlap, library, tmp_path):
    """It asks for nothing, complains of nothing, and the bars stand where the times are."""
    trace, path = halo().nsys(tmp_path / "export.sqlite"), tmp_path / "page.html"
    assert overlap("explain", str(trace), "--html", str(path)).returncode == 0
    for width in (500, 1200):
        with browser.page(path, width) as page:
            assert page.value("document.documentElement.scrollWidth") == width
            assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
            boxes = page.value(
                "[...document.querySelectorAll('rect[class]')].map(r => {"
                "const b = r.getBoundingClientRect(); return [r.className.baseVal, b.left, b.right, b.top]})"
            )
            wait = next(box for box in boxes if box[0] == "wait")
            talk = next(box for box in boxes if box[0] == "communication")
            front, waited = sorted((box for box in boxes if box[0] == "computation"), key=lambda box: box[3])
            assert front[3] < wait[3] == waited[3] == talk[3], "a lane each"
            assert front[1] < wait[1] < wait[2] <= waited[1] + 1 < waited[2] < talk[1] < talk[2]
            assert wait[2] < front[2], "the boundary begins before the interior ends"
            assert page.value("getComputedStyle(document.querySelector('rect.wait')).fill").startswith('url("#waits")')
