"""`overlap policy check`: files, stdin, folders, exit statuses, long lines and other encodings."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pyshim.cli import policy_files

ROOT = Path(__file__).resolve().parents[2]
GOOD = "policy: 1\nname: good\n"
ODD = GOOD + "gpu: NVIDIA Nothing\n"
BAD = "policy: 1\nnaem: bad\n"
Check = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def check(tmp_path: Path, overlap: Check, clean_environment: dict[str, str], library: object) -> Check:
    """With stdin, in a process of its own."""

    def run(*arguments: str, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
        if not stdin:
            return overlap("policy", "check", *arguments, cwd=tmp_path)
        data = stdin.encode() if isinstance(stdin, str) else stdin
        command = [sys.executable, "-m", "pyshim", "policy", "check", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=clean_environment, input=data, capture_output=True, check=False
        )
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_stdin_is_a_dash(check: Check) -> None:
    done = check("-", stdin=BAD)
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:2:1: error[unknown-key]: unknown key `naem`\n  |\n2 | naem: bad\n")
    assert check("-", stdin=b"\xef\xbb\xbf" + GOOD.encode()).returncode == 0
    assert check("-", stdin=GOOD).stdout == "<stdin>: ok, 0 rules\n"
    assert check("-", "-", stdin=GOOD).returncode == 2


def test_stdin_extends_what_lies_in_the_working_directory(tmp_path: Path, check: Check) -> None:
    write(tmp_path, base=GOOD + "compute: [{match: {kernel: a}, shape: leave}]\n")
    assert "1 rule" in check("-", stdin="policy: 1\nname: own\nextends: base\n").stdout


def test_a_folder_is_every_policy_in_it(tmp_path: Path, check: Check) -> None:
    site = tmp_path / "site"
    (site / "inner").mkdir(parents=True)
    write(site, b=GOOD, a=BAD)
    (site / "notes.txt").write_text("no policy")
    done = check("site")
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if re.fullmatch(r"site/\w+\.yaml: .*", line)] == [
        "site/a.yaml: 1 error",
        "site/b.yaml: ok, 0 rules",
    ]
    empty = check("site/inner")
    assert empty.returncode == 1
    assert empty.stdout.startswith("site/inner: error[no-policy]: the folder holds no file that ends in .yaml\n")


def test_a_folder_that_cannot_be_read_is_not_called_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read every folder: here it may not."""
    write(tmp_path, b=GOOD)
    monkeypatch.setattr(policy_files.os, "access", lambda path, mode: False)
    ((finding,),) = (reading.findings for reading in policy_files._read_all(str(tmp_path)))
    assert (finding.code, finding.sentence) == ("unreadable", "the folder cannot be read by this user")


def test_several_files_are_answered_in_their_order(tmp_path: Path, check: Check) -> None:
    write(tmp_path, bad=BAD, good=GOOD)
    done = check("bad.yaml", "good.yaml")
    assert (done.returncode, done.stderr) == (1, "")
    assert (
        done.stdout
        == """\
bad.yaml:2:1: error[unknown-key]: unknown key `naem`
  |
2 | naem: bad
  | ^^^^
  = help: did you mean `name`?

bad.yaml: 1 error

good.yaml: ok, 0 rules
"""
    )


def test_a_shipped_policy_is_checked_by_its_name(check: Check) -> None:
    done = check("h100-paper", "h100-paper.yaml")
    assert (done.returncode, done.stdout.count("h100-paper.yaml: ok, 1 rule\n")) == (0, 2)


def test_a_policy_that_does_not_fit_into_the_table_is_a_mistake(check: Check) -> None:
    rules = "".join(f"  - {{match: {{kernel: k{i}}}, shape: leave}}\n" for i in range(767))
    done = check("-", stdin=f"{GOOD}compute:\n{rules}")
    assert done.returncode == 1 and "error[too-large]" in done.stdout


def test_strict_takes_warnings_for_mistakes(tmp_path: Path, check: Check) -> None:
    write(tmp_path, odd=ODD, good=GOOD)
    done = check("odd.yaml")
    assert done.returncode == 0 and done.stdout.endswith("odd.yaml: ok, 0 rules, 1 warning\n")
    assert check("--strict", "good.yaml").returncode == 0
    assert check("--strict", "odd.yaml").returncode == 1


def test_a_wrong_option_is_a_usage_error(check: Check) -> None:
    for arguments in ([], ["--json", "a.yaml"], ["--strct", "a.yaml"]):
        done = check(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr


def test_a_long_line_is_cut_around_its_mistake(tmp_path: Path, check: Check) -> None:
    before = ", ".join(f"nvjet_{i}" for i in range(100))
    write(tmp_path, long=f"{GOOD}compute: [{{match: {{kernel: [{before}]}}, shape: leav, when: always}}]\n")
    lines = check("long.yaml").stdout.splitlines()
    source, caret = lines[2], lines[3]
    assert len(source) <= 240
    assert source.startswith("3 | ...") and source[caret.index("^") : caret.rindex("^") + 1] == "leav"


def test_the_help_of_a_missing_version_is_the_answer(check: Check) -> None:
    assert "= help: add `policy: 1`\n" in check("-", stdin="name: mine\n").stdout


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_called_so_and_not_shown(check: Check, encoding: str) -> None:
    mark = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[encoding]
    done = check("-", stdin=mark + GOOD.encode(encoding))
    assert done.returncode == 1
    assert done.stdout == (
        "<stdin>:1:1: error[encoding]: the file is UTF-16 text, not UTF-8\n  |\n1 | policy: 1\n  | ^\n"
        "  = help: save it as UTF-8\n\n<stdin>: 1 error\n"
    )


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_name_is_what_policy_makes_of_it(tmp_path: Path, check: Check, kind: str, overlap: Check) -> None:
    """Whatever else has that name in the working directory."""
    if kind == "folder":
        (tmp_path / "observe").mkdir()
        write(tmp_path / "observe", bad=BAD)
    else:
        (tmp_path / "observe").write_text(BAD)
        (tmp_path / "mine").write_text(BAD)
        done = check("mine")
        assert done.returncode == 1 and "there is no policy `mine`" in done.stdout and "./mine" in done.stdout
    done = check("observe")
    assert done.returncode == 0 and done.stdout.endswith("/observe.yaml: ok, 0 rules\n")
    done = overlap("policy", "show", "observe", cwd=tmp_path)
    assert done.returncode == 0 and "\nname: observe\n" in done.stdout, done.stderr
    assert check("./observe/" if kind == "folder" else "./observe").returncode == 1


def test_auto_is_every_policy_of_the_default(check: Check) -> None:
    done = check("auto")
    names = [line.split(": ")[0].rpartition("/")[2] for line in done.stdout.splitlines()]
    assert (done.returncode, names) == (0, ["mi250x.yaml", "mi300x.yaml", "default.yaml"])
