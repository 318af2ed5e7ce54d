"""overlap report --html: the page as text, and the file."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pages
import pytest

from pyshim import html
from pyshim.report import collect


class Elements(HTMLParser):
    """Every element and attribute of a page, and its text."""

    VOID = ("meta",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def usual(name: str = "") -> Elements:
    return Elements(html.report(pages.data(4, 1, 40, name)))


@pytest.mark.parametrize("name", pages.HOSTILE)
def test_a_name_is_text_whatever_it_holds(name):
    """A name adds no element and no attribute, and no character that moves others."""
    made, plain = usual(name), usual()
    assert made.open == []
    assert made.names == plain.names
    assert [key for key, _ in made.attributes] == [key for key, _ in plain.attributes]
    shown = "".join(made.text)
    visible = "".join(character if character.isprintable() else "\ufffd" for character in name)
    assert shown.count(visible) > 20
    assert not set(html.report(pages.data(4, 1, 40, name))) & set("\u202e\u2066\x1b\x07\x00\udc80")


def test_what_these_pages_are_made_of_is_what_json_says():
    schema = json.loads((Path(collect.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(pages.data(8, 2, 40), schema)


def test_a_page_loads_nothing():
    text = html.report(pages.data(4, 2))
    found = Elements(text)
    assert not {"img", "link", "iframe", "object", "embed", "form", "base", "video", "audio"} & set(found.names)
    assert not {"src", "href", "xlink:href", "style", "action"} & {key for key, _ in found.attributes}
    assert not re.findall(r"@import|https?:|url\((?!#)", text)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


def test_everything_of_the_report_is_on_the_page():
    data = pages.data(3, 2)
    said = " ".join(" ".join(usual_text(data)).split())
    for words in (
        "torchrun train.py",
        "the version of the library differs: 0.0.9 for rank 3",
        "not raised, large: 1 stream made by some: more than raise allows",  # `this` is code
        "launched with more dynamic shared memory, as the rule asks",
        "node001:101",
        "h100-paper:14",
        "never matched",
        "never acted",
        "simulated GPU: h100",
        "NCCL_ALGO=Ring",
        "Streams",
        "raised to -5",
        "not raised: more of the computation than streams: {raise: ...} in the policy allows",
        f"{data['totals']['launches']:,}",
    ):
        assert words in said, words


def usual_text(data):
    return Elements(html.report(data)).text


def test_many_hosts_are_the_first_and_the_last():
    assert "where6 hosts, node000 to node005; 12 processes, 12 ranks" in "".join(usual_text(pages.data(12, 6)))


def test_the_verdict_comes_first_then_what_is_wrong():
    said = " ".join(" ".join(usual_text(pages.data(3, 2))).split())
    places = [
        said.index(words)
        for words in (
            "done: raised 180 of 1,000 launches on 1 stream",
            "gain: not measured",
            "next: overlap-run --policy observe torchrun train.py",
            "Warnings",
            "Notes",
            "Why: launches by reason",
            "Rules",
            "Kernels",
            "How launches reached the driver",
        )
    ]
    assert places == sorted(places)


def test_data_of_a_report_without_kernels_makes_a_page(overlap, report, write_page):
    write_page({"no_rule": 3})
    page = report.parent / "page.html"
    done = overlap("report", str(report), "--html", str(page))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"overlap: the page is {page}: open it in a browser\n"
    assert "none of 3 launches was raised or shaped: 1 process, policy h100" in page.read_text(encoding="utf-8")


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


@pytest.mark.parametrize("compare", [False, True], ids=["report", "compare"])
def test_a_page_to_stdout_makes_no_file(overlap, report, write_page, tmp_path, compare):
    write_page({"no_rule": 3})
    trace = str(Path(__file__).parent.parent / "traces/data/bare-rank0.json.gz")
    what = ["--compare", trace, trace] if compare else [str(report)]
    done = overlap("report", *what, "--html", "-", cwd=tmp_path)
    assert done.returncode == 0 and not (tmp_path / "-").exists()
    assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.endswith("</html>\n")
    done = overlap("report", *what, "--html", "-", "--json", cwd=tmp_path)
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
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    words = ["report", str(report), "--html", str(folder / "page.html"), "--force"]
    command = [sys.executable, "-m", "pyshim", *words]  # Python ignores SIGXFSZ
    done = subprocess.run(command, env=clean_environment, preexec_fn=limit, capture_output=True, text=True, check=False)
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


def test_a_kernels_name_is_text(tmp_path):
    """Also in the attributes that hold it."""
    data = pages.data()
    name = "void f<int>(a&&b, \"c\" < 'd')"
    data["kernels"][0].update(kernel=name, plain=name)
    made = Elements(html.report(data))
    assert name in made.text
    assert {key for key, value in made.attributes if value == name} == {"title", "data-sort"}


def test_only_a_page_imports_jinja2():
    """Other commands import the package, too: to check where a page would be put."""
    probe = "import sys; from pyshim import html; print('jinja2' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", probe], text=True) == "False\n"


def test_options_that_do_not_go_together(overlap):
    done = overlap("report", "/nonexistent", "--force")
    assert done.returncode == 2 and done.stderr.startswith("overlap: error: --")
