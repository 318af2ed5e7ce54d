"""`overlap policy check` as programs read it: JSON, GitHub's workflow commands, stdin, folders, exit statuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = "policy: 1\nname: good\n"
ODD = GOOD + "gpu: NVIDIA Nothing\n"
BAD = "policy: 1\nnaem: bad\n"
Check = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def check(tmp_path: Path, clean_environment: dict[str, str], library: object) -> Check:
    def run(*arguments: str, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
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


def github(output: str) -> list[tuple[str, dict[str, str], str]]:
    """As actions/runner takes a command apart: severity, properties, message."""
    found = []
    for line in output.splitlines():
        match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
        assert match, line
        properties = dict(item.split("=", 1) for item in match[2].split(","))
        found.append((match[1], {name: unescaped(value, True) for name, value in properties.items()},
                      unescaped(match[3], False)))  # fmt: skip
    return found


def unescaped(text: str, is_property: bool) -> str:
    codes = [("%0D", "\r"), ("%0A", "\n"), *([("%3A", ":"), ("%2C", ",")] if is_property else []), ("%25", "%")]
    for code, character in codes:
        text = text.replace(code, character)
    return text


def test_json_has_a_version_and_every_place_with_its_end(tmp_path: Path, check: Check) -> None:
    write(tmp_path, bad="policy: 1\nname: bad\nextends: base\nwhen: [always]\n", base=GOOD + "wen: always\n")
    done = check("--output-format", "json", "bad.yaml")
    assert (done.returncode, done.stderr) == (1, "")
    answer = json.loads(done.stdout)
    assert (answer["version"], answer["ok"]) == (1, False)
    own, extended = answer["files"][0]["findings"]
    assert (own["file"], own["line"], own["column"], own["end_column"]) == ("bad.yaml", 4, 7, 15)
    assert (extended["file"], extended["line"], extended["column"], extended["end_column"]) == ("base.yaml", 3, 1, 4)


def test_github_takes_every_finding_with_its_place(tmp_path: Path, check: Check) -> None:
    write(tmp_path, bad=BAD, odd=ODD, good=GOOD)
    done = check("--output-format", "github", "bad.yaml", "odd.yaml", "good.yaml")
    assert (done.returncode, done.stderr) == (1, "")
    error, warning = github(done.stdout)
    assert error == (
        "error",
        {"file": "bad.yaml", "line": "2", "col": "1", "endColumn": "5", "title": "overlap policy: unknown-key"},
        "unknown key `naem`\nhelp: did you mean `name`?",
    )
    assert (warning[0], warning[1]["file"], warning[1]["line"]) == ("warning", "odd.yaml", "3")


def test_github_has_nothing_to_say_of_a_good_file(tmp_path: Path, check: Check) -> None:
    write(tmp_path, good=GOOD)
    done = check("--output-format", "github", "good.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_github_would_read_as_its_own_signs_is_escaped(tmp_path: Path, check: Check) -> None:
    folder = tmp_path / "a,b:c%d"
    folder.mkdir()
    write(folder, bad=GOOD + "compute: [{match: {kernel: gemm}, shape: {blocks_per_sm: 500%}}]\n")
    done = check("--output-format", "github", str(folder / "bad.yaml"))
    ((_, properties, message),) = github(done.stdout)
    assert properties["file"] == str(folder / "bad.yaml")
    assert message.startswith("`500%` is not between 1% and 100%\nhelp: ")
    assert "500%25" in done.stdout and "a%2Cb%3Ac%25d" in done.stdout


def test_stdin_is_a_dash(check: Check) -> None:
    done = check("-", stdin=BAD)
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:2:1: error[unknown-key]: unknown key `naem`\n  |\n2 | naem: bad\n")
    assert check("-", stdin=b"\xef\xbb\xbf" + GOOD.encode()).returncode == 0
    assert json.loads(check("-", "--output-format", "json", stdin=GOOD).stdout)["files"][0]["file"] == "<stdin>"
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


def test_strict_takes_warnings_for_mistakes(tmp_path: Path, check: Check) -> None:
    write(tmp_path, odd=ODD, good=GOOD)
    assert check("odd.yaml").returncode == 0
    assert check("--strict", "good.yaml").returncode == 0
    assert check("--strict", "odd.yaml").returncode == 1
    answer = json.loads(check("--strict", "odd.yaml", "--output-format", "json").stdout)
    assert (answer["ok"], answer["files"][0]["ok"]) == (False, False)


def test_a_wrong_option_is_a_usage_error(check: Check) -> None:
    for arguments in ([], ["--output-format", "xml", "a.yaml"], ["--strct", "a.yaml"]):
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


def test_a_kernel_of_ones_own_is_a_note_and_no_warning(tmp_path: Path, check: Check) -> None:
    write(tmp_path, own=GOOD + 'compute: [{match: {kernel: [gemm, "zzz_*"]}, shape: make_room}]\n')
    for arguments in ([], ["--strict"]):
        done = check(*arguments, "own.yaml")
        assert done.returncode == 0
        assert done.stdout.startswith("own.yaml:3:35: note[unknown-kernel]: `zzz_*` ") and "help:" not in done.stdout
        assert done.stdout.endswith("own.yaml: ok, 1 rule, 1 note\n")
    ((severity, properties, _),) = github(check("--output-format", "github", "own.yaml").stdout)
    assert (severity, properties["line"], properties["col"]) == ("notice", "3", "35")
    answer = json.loads(check("--strict", "--output-format", "json", "own.yaml").stdout)
    assert [one["severity"] for one in answer["files"][0]["findings"]] == ["note"] and answer["ok"]


def test_a_near_miss_is_told_once(tmp_path: Path, check: Check) -> None:
    write(tmp_path, own=GOOD + 'compute: [{match: {kernel: [gemm, "zzz_*", "*nvjett*"]}, shape: make_room}]\n')
    answer = json.loads(check("--output-format", "json", "own.yaml").stdout)
    said = [(one["severity"], one["code"]) for one in answer["files"][0]["findings"]]
    assert said == [("note", "unknown-kernel"), ("warning", "kernel")]


def test_a_note_keeps_no_rule_from_being_compared(tmp_path: Path, check: Check) -> None:
    rule = '{match: {kernel: "zzz_*"}, shape: make_room}'
    write(tmp_path, own=f"{GOOD}compute:\n  - {rule}\n  - {rule}\n")
    answer = json.loads(check("--output-format", "json", "own.yaml").stdout)
    assert "shadowed" in [one["code"] for one in answer["files"][0]["findings"]]


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
