"""--html FILE: one page, which loads nothing, and the file that it becomes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

TRACE = "demo-stencil"


def test_a_file_is_replaced_only_when_asked(overlap, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine")
    done = overlap("explain", TRACE, "--html", str(page))
    assert done.returncode == 2
    assert done.stderr == (
        f"overlap: error: {page} already exists\noverlap: help: name another file, or replace it: --force\n"
    )
    assert page.read_text() == "mine"
    done = overlap("explain", TRACE, "--html", str(page), "--force", "--json")
    assert done.returncode == 0 and done.stdout.startswith("{")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_page_to_stdout_makes_no_file(overlap, tmp_path):
    done = overlap("explain", TRACE, "--html", "-", cwd=tmp_path)
    assert done.returncode == 0 and not (tmp_path / "-").exists()
    assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.endswith("</html>\n")
    done = overlap("explain", TRACE, "--html", "-", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and "both go to stdout" in done.stderr
    assert overlap("explain", "/nonexistent", "--html", "-", "--force").returncode == 2


def test_what_cannot_be_a_page_is_said_before_anything_is_read(overlap, tmp_path):
    for name, words in (
        ("no/page.html", f"the folder {tmp_path}/no of page.html does not exist"),
        ("", f"{tmp_path}/ is not a regular file"),
    ):
        done = overlap("explain", "/nonexistent", "--html", f"{tmp_path}/{name}", "--force")
        assert done.returncode == 2
        assert done.stderr.splitlines()[0] == f"overlap: error: {words}"
    done = overlap("explain", "/nonexistent", "--html", "/dev/full", "--force")
    assert "/dev/full is not a regular file" in done.stderr


def test_a_full_disk_leaves_what_was_there(tmp_path, clean_environment):
    """A page larger than a file may be, which the system says of a disk in the same way."""
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "page.html").write_text("mine")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    words = ["explain", TRACE, "--html", str(folder / "page.html"), "--force"]
    command = [sys.executable, "-m", "pyshim", *words]  # Python ignores SIGXFSZ
    env = {**clean_environment, "PYTHONDONTWRITEBYTECODE": "1"}  # those files would be cut, too
    done = subprocess.run(command, env=env, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"overlap: error: {folder}/page.html cannot be written: File too large\noverlap: help: name another file\n"
    )
    assert [path.name for path in folder.iterdir()] == ["page.html"]
    assert (folder / "page.html").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_ours_to_write_in(overlap, tmp_path):
    (tmp_path / "theirs").mkdir(0o555)
    done = overlap("explain", TRACE, "--html", str(tmp_path / "theirs" / "page.html"))
    assert done.returncode == 2 and "cannot be written: Permission denied" in done.stderr


def test_options_that_do_not_go_together(overlap):
    done = overlap("explain", "/nonexistent", "--force")
    assert done.returncode == 2 and done.stderr.startswith("overlap: error: --force needs --html FILE")
