"""overlap explain --html: one page with the timeline of a step, which loads nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made import GEMM, K, kineto, kineto_events
from made_waits import Program, by_host, interior, steps

from tests.cli.test_explain_trace import halo, lines
from tests.explain.steps import Step, trace
from tests.fuzz.saying import check_html

_BOXES = (
    "[...document.querySelectorAll('rect[class]')].map(r => {"
    "const b = r.getBoundingClientRect(); return [r.className.baseVal, b.left, b.right, b.top]})"
)
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


def made(overlap, source: Path, path: Path) -> Page:
    done = overlap("explain", str(source), "--html", str(path), "--force")
    assert done.returncode == 0, done.stderr
    return Page(path)


def test_a_page_draws_one_step(overlap, library, tmp_path):
    """A lane for each stream: the interior, and the boundary that waits behind it, then runs, then its collective."""
    file, path = halo().nsys(tmp_path / "export.sqlite"), tmp_path / "page.html"
    done = overlap("explain", str(file), "--html", str(path))
    assert (done.returncode, done.stderr) == (0, f"overlap: the page is {path}: open it in a browser\n")
    assert done.stdout.splitlines() == lines(overlap, file)
    page = Page(path)
    drawn = [kind for kind in page.bars if kind not in ("idle", "exposed")]
    assert sorted(drawn) == ["communication", "computation", "computation", "copy", "wait"]
    for said in (
        "GPU 0, stream 15", "GPU 0, stream 20: to be raised", "queued, ready to run, behind interior: 0.064 ms",
        "boundary: 0.005 ms",
        "The step of 3 that is nearest to the mean", "0.100 ms, idle 8.0 %, communication exposed 15 %",
    ):  # fmt: skip
        assert said in page.said, said
    every = " ".join(" ".join(lines(overlap, file, "--full")).split())
    assert " ".join(every.partition(" also ")[0].split()) in " ".join(page.said.split()), "the verdict and what follows"


def test_what_is_lost_is_hatched_by_its_cause(overlap, library, tmp_path):
    """Idle until the host launches; exposed because the stream computes."""

    def step(one: Step) -> None:
        one.kernel("gemm", 0, 400)
        one.collective("AllReduce", 400, 200, stream=7)
        one.kernel("gemm", 900, 100, called=890)

    page = made(overlap, trace(tmp_path / "t.json", step), tmp_path / "page.html")
    assert page.bars.count("idle") == 1 and page.bars.count("exposed") == 1
    assert "idle: the host is late: 0.300 ms" in page.said and "exposed: on the computing stream: 0.200 ms" in page.said
    text = (tmp_path / "page.html").read_text()
    fills = re.findall(r'class="(?:idle|exposed)"[^>]*fill="url\(#(h\d+)\)"', text)
    assert len(set(fills)) == 2 and all(f'<pattern id="{fill}"' in text for fill in fills)


def test_nothing_is_to_be_raised_where_the_verdict_is_no(overlap, library, tmp_path):
    """The boundary stands behind the interior, and the interior needs all of the step."""

    def one(program: Program, at: float) -> None:
        by_host(program, at)
        program.launch(interior(at + 72, 31.5), at + 2)

    page = made(overlap, steps(Program(), one).kineto(tmp_path / "t.json"), tmp_path / "page.html")
    assert "wait" not in page.bars and "to be raised" not in page.said and "GPU 0, stream 20" in page.said


def test_the_page_is_of_the_rank_that_the_answer_is_about(overlap, library, tmp_path):
    (tmp_path / "job").mkdir()
    for rank, start in ((0, 7.0), (1, 70.0)):
        halo(start=start).kineto(tmp_path / "job" / f"rank{rank}.json")
    page = made(overlap, tmp_path / "job", tmp_path / "page.html")
    assert ", rank1.json: 0.100 ms" in page.said and "wait" in page.bars


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
    file, path = program.kineto(tmp_path / f"{name.replace('/', '')}.json"), tmp_path / "page.html"
    assert overlap("explain", str(file), "--html", str(path)).returncode == 0
    assert Page(path).bars.count("wait") == 1


def test_a_step_of_very_many_kernels_is_a_small_page(overlap, library, tmp_path):
    kernels = [K(GEMM, 1000.0 + 2 * number, 1.0) for number in range(6_000)]
    path = tmp_path / "page.html"
    file = kineto(tmp_path / "t.json", kineto_events(kernels))
    assert overlap("explain", str(file), "--html", str(path)).returncode == 0
    assert len(Page(path).bars) < 2500 and "more: " in path.read_text()


def test_a_page_in_a_browser(browser, overlap, library, tmp_path):
    """It asks for nothing, complains of nothing, and the bars stand where the times are."""
    file, path = halo().nsys(tmp_path / "export.sqlite"), tmp_path / "page.html"
    assert overlap("explain", str(file), "--html", str(path)).returncode == 0
    for width in (400, 1200):
        with browser.page(path, width) as page:
            assert page.value("document.documentElement.scrollWidth") == width, "the page itself never scrolls sideways"
            assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
            boxes = page.value(_BOXES)
            wait = next(box for box in boxes if box[0] == "wait")
            talk = next(box for box in boxes if box[0] == "communication")
            front, waited = sorted((box for box in boxes if box[0] == "computation"), key=lambda box: box[3])
            assert front[3] < wait[3] == waited[3] == talk[3], "a lane each"
            assert front[1] < wait[1] < wait[2] <= waited[1] + 1 < waited[2] < talk[1] < talk[2]
            assert wait[2] < front[2], "the boundary begins before the interior ends"
            assert page.value("getComputedStyle(document.querySelector('rect.wait')).fill").startswith('url("#h')
            for scrolled in (".lanes", ".scroll"):
                overflow = page.value(f"getComputedStyle(document.querySelector('{scrolled}')).overflowX")
                assert overflow == "auto", "wide things scroll by themselves"
            cell = "getComputedStyle(document.querySelector('td')).whiteSpace"
            assert page.value(cell) == "nowrap", "tables scroll instead of wrapping"
            page.value("document.getElementById('zoom16').click()")
            wider = next(box for box in page.value(_BOXES) if box[0] == "wait")
            assert wider[2] - wider[1] == pytest.approx(16 * (wait[2] - wait[1]), rel=0.02)
            assert page.value("document.documentElement.scrollWidth") == width
