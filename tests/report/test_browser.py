"""Pages of reports in a real browser: what it makes of them, and what it is not brought to do."""

from __future__ import annotations

import json
from pathlib import Path

import pages
import pytest

from pyshim import html

DATA = {
    "one process": pages.data(),
    "8 ranks": pages.data(8, 2, 40),
    "1000 ranks": pages.data(1000, 125, 40, samples=8),
    "long names": pages.data(8, 2, 40, "a_name_that_has_no_end_" * 12),
    "no launch": {**pages.data(), "kernels": [], "rules": []},
}


@pytest.fixture
def put(tmp_path):
    def put(text: str) -> Path:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8", errors="strict")
        return path

    return put


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1200, False)], ids=["narrow and dark", "wide and light"])
@pytest.mark.parametrize("name", DATA)
def test_a_page_fits_its_window_and_asks_for_nothing(browser, put, name, width, dark):
    path = put(html.report(DATA[name]))
    with browser.page(path, width, dark) as page:
        assert page.value("document.documentElement.scrollWidth") == width
        assert page.complaints() == []
        assert page.requests() == [path.as_uri()]
        # What is drawn has a size, and ends where the window does, or in a box that scrolls.
        assert page.value("[...document.querySelectorAll('svg rect')].every(r => r.getBBox().width > 0)")
        assert page.value(
            "[...document.querySelectorAll('main > *')].every(e => e.getBoundingClientRect().right <= innerWidth)"
        )
        light = page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert light is not dark


def test_text_can_be_read_on_its_ground(browser, put):
    """Contrast of at least 4.5 to 1, WCAG 2.1, success criterion 1.4.3."""
    for dark in (False, True):
        with browser.page(put(html.report(DATA["8 ranks"])), dark=dark) as page:
            assert page.value(CONTRAST) == []


CONTRAST = """(() => {
  const light = (color) => {
    const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
  };
  return [...document.querySelectorAll("body *")].filter((element) => {
    if (element.closest("svg") || ![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) return false;
    const pair = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05) < 4.5;
  }).map((element) => element.outerHTML.slice(0, 80));
})()"""


def test_plots_and_rows_are_there_without_any_script(browser, put):
    data = DATA["8 ranks"]
    with browser.page(put(html.report(data)), script=False) as page:
        heads = page.value("[...document.querySelectorAll('h2')].map(e => e.textContent)")
        assert heads == [
            *("Warnings", "Notes", "Why: launches by reason", "Rules", "Kernels"),
            *(
                "Processes",
                "Streams that are waited for",
                "Trial: the pace under each arm",
                "Cadence of communication",
                "How launches reached the driver",
            ),
        ]
        assert page.value("document.querySelectorAll('input, button').length") == 0
        rows = page.value("[...document.querySelectorAll('tbody')].map(e => e.rows.length)")
        assert rows == [5, 3, 30, 8, 5, 16, 8, 4]
        assert page.value("document.querySelectorAll('.strip .far').length") == 5  # the last rank, in each counter
        assert page.value("document.querySelectorAll('.lines path').length") == 8
        bars = page.value(
            "[...document.querySelectorAll('.bar')].slice(0, 5).map(e => e.querySelector('rect').getBBox().width)"
        )
        counts = sorted(data["totals"]["reasons"].values(), reverse=True)
        assert [bar / bars[0] for bar in bars] == pytest.approx([count / counts[0] for count in counts], rel=0.01)


def test_a_thousand_processes_are_a_summary_that_opens(browser, put):
    with browser.page(put(html.report(DATA["1000 ranks"]))) as page:
        tall = page.value("document.documentElement.scrollHeight")
        assert tall < 6200
        assert page.value("document.querySelector('details tbody').rows.length") == 1000
        page.value("document.querySelector('details').open = true")
        assert page.value("document.documentElement.scrollHeight") > tall + 10_000
        assert page.value("document.querySelector('.band') !== null")


def test_tables_are_sorted_and_filtered_where_scripts_may_run(browser, put):
    with browser.page(put(html.report(DATA["8 ranks"]))) as page:
        page.value("globalThis.box = document.querySelectorAll('.box')[2]; 0")  # the kernels
        page.value("globalThis.rows = () => [...box.querySelectorAll('tbody tr:not([hidden])')]; 0")
        names = "rows().map(row => row.cells[0].querySelector('code, span').textContent)"
        first = page.value(names)
        assert first[:3] == ["gemm0", "gemm1", "not known by name"] and len(first) == 30
        page.value("box.querySelector('th.n button').click()")  # launches, the most first
        assert page.value(names) == first
        page.value("box.querySelector('th.n button').click()")
        assert page.value(names)[-3:] == ["not known by name", "gemm1", "gemm0"]
        page.value("box.querySelector('th button').click()")  # by name, numbers in it as numbers
        assert page.value(names)[:3] == ["not known by name", "gemm0", "gemm1"] or page.value(names)[:2] == [
            "gemm0",
            "gemm1",
        ]
        page.value(
            "const field = box.previousElementSibling; field.value = 'gemm1 cublas';"
            "field.dispatchEvent(new Event('input')); 0"
        )
        shown = page.value(names)
        assert 0 < len(shown) < 30 and all("gemm1" in name for name in shown)


def test_a_name_does_nothing(browser, put):
    path = put(html.report(pages.data(8, 2, 40, "".join(pages.HOSTILE))))
    with browser.page(path, 400) as page:
        assert page.value("document.title").startswith("overlap report: torchrun ")
        assert page.value("document.querySelectorAll('img, [onload], [onerror], [href]').length") == 0
        assert page.value("document.scripts.length") == 1
        assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
        assert page.value("document.documentElement.scrollWidth") == 400


def test_what_got_onto_a_page_all_the_same_is_not_run(browser, put):
    """Behind the escaping there is the page's own policy. And the browser tells: the tests above can fail."""
    evil = (
        "<script>document.title='hacked'</script><img src='http://127.0.0.1:9/x' onerror=\"document.title='hacked'\">"
        "<link rel='stylesheet' href='http://127.0.0.1:9/y'><div style='background:url(http://127.0.0.1:9/z)'></div>"
    )
    text = html.report(pages.data()).replace("</main>", evil + "</main>")
    with browser.page(put(text)) as page:
        assert page.value("document.title").startswith("overlap report")
        assert len(page.requests(blocked=False)) == 1
        assert "Content Security Policy" in json.dumps(page.complaints())
    without = text.replace("Content-Security-Policy", "X-Nothing")
    with browser.page(put(without)) as page:
        assert page.value("document.title") == "hacked"
        assert len(page.requests(blocked=False)) == 4


def test_the_page_of_a_real_job(browser, overlap, run_job, tmp_path):
    path = tmp_path / "page.html"
    done = overlap("report", str(run_job()), "--html", str(path))
    assert done.returncode == 0, done.stderr
    with browser.page(path, 400) as page:
        assert page.complaints() == []
        assert page.value("document.querySelector('.verdict').textContent").startswith("done: 16 of 24 launches shaped")
        assert page.value("document.querySelectorAll('tbody')[0].rows.length") == 2
