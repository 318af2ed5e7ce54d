"""overlap report --html: one page with the text of --full, which loads nothing, and the file that it becomes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pyshim.cli import ui
from tests.fuzz.saying import check_html

HOSTILE = ['"><script>alert(1)</script>', "<img src=x onerror=alert(1)>", "&lt;{stylesheet}{code}", "a\x1b[31mb\u202e"]


class Text(HTMLParser):
    """What a page shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said = ""
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text_whatever_it_holds(name):
    page = ui.page("overlap report", lambda: ui.table(("name", "b"), [(name, "x"), ("plain", "y")]))
    check_html(page)
    assert ui.printable(name) in Text(page).said and "\x1b" not in page


def test_a_page_is_the_text_of_the_report_and_loads_nothing(overlap, report, write_page):
    write_page({"no_rule": 3})
    page = report.parent / "page.html"
    done = overlap("report", str(report), "--html", str(page))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"overlap: the page is {page}: open it in a browser\n"
    text = page.read_text(encoding="utf-8")
    check_html(text)
    assert "default-src 'none'" in text
    plain = overlap("report", str(report), "--full").stdout
    assert Text(text).said.split("overlap report")[-1].split()[-50:] == plain.split()[-50:]


@pytest.mark.parametrize("width", [400, 1200])
def test_a_page_fits_its_window_and_asks_for_nothing(browser, overlap, report, write_page, width):
    write_page({"no_rule": 3})
    path = report.parent / "page.html"
    assert overlap("report", str(report), "--html", str(path)).returncode == 0
    with browser.page(path, width) as page:
        assert page.value("document.documentElement.scrollWidth") == width
        assert (page.complaints(), page.requests()) == ([], [path.as_uri()])
        assert "raised no stream (0 of 3 launches)" in page.value("document.body.innerText")


def test_a_file_is_replaced_only_when_asked(overlap, report, write_page):
    write_page({"no_rule": 3})
    page = report.parent / "page.html"
    page.write_text("mine")
    done = overlap("report", str(report), "--html", str(page))
    assert done.returncode == 2
    assert done.stderr == (
        f"overlap: error: {page} already exists\noverlap: help: name another file, or replace it: --force\n"
    )
    assert page.read_text() == "mine"
    done = overlap("report", str(report), "--html", str(page), "--force", "--json", "--check")
    assert done.returncode == 0 and done.stdout.startswith("{")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_page_to_stdout_makes_no_file(overlap, report, write_page, tmp_path):
    write_page({"no_rule": 3})
    done = overlap("report", str(report), "--html", "-", cwd=tmp_path)
    assert done.returncode == 0 and not (tmp_path / "-").exists()
    assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.endswith("</html>\n")
    done = overlap("report", str(report), "--html", "-", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and "both go to stdout" in done.stderr
    assert overlap("report", "/nonexistent", "--html", "-", "--force").returncode == 2


def test_what_cannot_be_a_page_is_said_before_anything_is_read(overlap, tmp_path):
    for name, words in (
        ("no/page.html", f"the folder {tmp_path}/no of page.html does not exist"),
        ("", f"{tmp_path}/ is not a regular file"),
    ):
        done = overlap("report", "/nonexistent", "--html", f"{tmp_path}/{name}", "--force")
        assert done.returncode == 2
        assert done.stderr.splitlines()[0] == f"overlap: error: {words}"
    done = overlap("report", "/nonexistent", "--html", "/dev/full", "--force")
    assert "/dev/full is not a regular file" in done.stderr


def test_a_full_disk_leaves_what_was_there(report, write_page, clean_environment):
    """A page larger than a file may be, which the system says of a disk in the same way."""
    write_page({"no_rule": 3})
    folder = report.parent / "pages"
    folder.mkdir()
    (folder / "page.html").write_text("mine")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    words = ["report", str(report), "--html", str(folder / "page.html"), "--force"]
    command = [sys.executable, "-m", "pyshim", *words]  # Python ignores SIGXFSZ
    env = {**clean_environment, "PYTHONDONTWRITEBYTECODE": "1"}  # those files would be cut, too
    done = subprocess.run(command, env=env, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"overlap: error: {folder}/page.html cannot be written: File too large\n"
    assert [path.name for path in folder.iterdir()] == ["page.html"]
    assert (folder / "page.html").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_ours_to_write_in(overlap, report, write_page, tmp_path):
    write_page({"no_rule": 3})
    (tmp_path / "theirs").mkdir(0o555)
    done = overlap("report", str(report), "--html", str(tmp_path / "theirs" / "page.html"))
    assert done.returncode == 2 and "cannot be written: Permission denied" in done.stderr


def test_options_that_do_not_go_together(overlap, report: Path):
    done = overlap("report", "/nonexistent", "--force")
    assert done.returncode == 2 and done.stderr.startswith("overlap: error: --force needs --html FILE")
