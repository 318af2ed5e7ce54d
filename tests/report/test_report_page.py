"""overlap report --html: the text of --full as one page, with shares as bars, which loads nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.fuzz.saying import check_html

HIDDEN = ("style", "title")
NAMES = ['"><script>alert(1)</script>', "<img src=x onerror=alert(1)>", "&lt;{code}</svg>"]


class Page(HTMLParser):
    """What a page says and draws."""

    def __init__(self, text: str) -> None:
        super().__init__()
        check_html(text)
        assert "default-src 'none'" in text
        self.said: list[str] = []
        self.shares: list[float] = []
        self.heading = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        told = dict(attrs)
        if tag == "rect" and told.get("class") == "share":
            self.shares.append(float((told["width"] or "").rstrip("%")))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in HIDDEN:
            self.said += data.split()
            if self._open[-1] == "h1":
                self.heading += data


@pytest.fixture(scope="module")
def run(overlap_run, library, tmp_path_factory):
    """Return a report folder of a run on the simulated GPU."""
    folder = tmp_path_factory.mktemp("report") / "run1"
    done = overlap_run("--quiet", "--simulate", "h100", "--report", str(folder), "demo-stencil")
    assert done.returncode == 0, done.stderr
    return folder


def test_the_page_says_what_the_text_says(overlap, run, tmp_path):
    """Every word of the text is in the page, and every number of the page is in the text."""
    path = tmp_path / "page.html"
    done = overlap("report", str(run), "--html", str(path))
    assert (done.returncode, done.stderr) == (0, f"overlap: the page is {path}: open it in a browser\n")
    assert done.stdout == overlap("report", str(run)).stdout
    full = overlap("report", str(run), "--full", env={"COLUMNS": ""}).stdout
    page = Page(path.read_text(encoding="utf-8"))
    words = [re.sub(r"^(done|gain|next|warning|note):$", r"\1", word) for word in full.split()]
    missing = [word for word in words if word not in page.said]
    assert not missing, missing
    numbers = {word.strip("():,") for word in page.said if re.search(r"\d", word)}
    assert numbers and not {number for number in numbers if number not in full}
    assert page.heading in full and "simulated" in page.heading


def test_bars_are_the_shares(overlap, run):
    found = json.loads(overlap("report", str(run), "--json").stdout)
    reasons, launches = found["totals"]["reasons"], found["totals"]["launches"]
    of_launches = sorted((100 * count / launches for count in reasons.values() if count), reverse=True)
    streams = [100 * stream["share"] for process in found["processes"] for stream in process["streams"]]
    page = Page(overlap("report", str(run), "--html", "-").stdout)
    assert page.shares[: len(of_launches)] == pytest.approx(of_launches, abs=0.01)
    assert sorted(page.shares[len(of_launches) :]) == pytest.approx(sorted(streams), abs=0.01)


def test_under_observe_nothing_is_said_to_be_raised(overlap, overlap_run, library, tmp_path):
    words = ("--quiet", "--simulate", "h100", "--policy", "observe", "--report", "run1", "demo-stencil")
    assert overlap_run(*words, cwd=tmp_path).returncode == 0
    text = overlap("report", "run1", "--html", "-", cwd=tmp_path).stdout
    assert "</svg> would be raised</li>" in text and "</svg> raised</li>" not in text


def test_it_is_written_as_every_page_is(overlap, run, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("mine")
    done = overlap("report", str(run), "--html", str(path))
    assert (done.returncode, done.stdout, path.read_text()) == (2, "", "mine")
    assert overlap("report", str(run), "--html", str(path), "--force", "--json").returncode == 0
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert overlap("report", str(run), "--html", "-", "--json").returncode == 2
    assert overlap("report", str(run), "--force").returncode == 2
    done = overlap("report", str(run.parent), "--jobs", "--html", str(tmp_path / "jobs.html"))
    assert done.returncode == 2 and "--html is of one run" in done.stderr and not (tmp_path / "jobs.html").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    done = overlap("report", str(empty), "--html", str(tmp_path / "none.html"))
    assert done.returncode == 1 and not (tmp_path / "none.html").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_text_whatever_it_holds(report, write_page, overlap, library, name):
    write_page({"no_rule": 3}, devices=((name, "h100"),), streams=[{"status": 1, "creator": name}])
    text = overlap("report", str(report), "--html", "-").stdout
    assert Page(text).said and name not in text


def test_many_processes_are_a_short_page(report, write_page, overlap, library):
    for pid in range(100, 140):
        write_page({"no_rule": 3 if pid > 100 else 3000}, pid=pid)
    page = Page(overlap("report", str(report), "--html", "-").stdout)
    assert "far from the others of their kind" in " ".join(page.said) and len(page.said) < 2000


def test_in_a_browser(browser, overlap, run, tmp_path):
    """Narrow, wide, light, dark: it never scrolls sideways, asks for nothing, complains of nothing."""
    path: Path = tmp_path / "page.html"
    assert overlap("report", str(run), "--html", str(path)).returncode == 0
    backs = set()
    for width in (400, 1280):
        for dark in (False, True):
            with browser.page(path, width, dark) as page:
                assert page.value("document.documentElement.scrollWidth") == width
                assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
                wide = page.value("[...document.querySelectorAll('.share')].map(r => r.getBoundingClientRect().width)")
                assert len(wide) >= 4 and all(0 < bar <= width for bar in wide)
                backs.add(page.value("getComputedStyle(document.body).backgroundColor"))
    assert len(backs) == 2, "light and dark"
