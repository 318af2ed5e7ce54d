"""tests/rest.py: no test is lost between `make test` and `make test-all`, and the first needs and leaves nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import debian
import pytest
import rest

ROOT = rest.TESTS.parent
FILE = rest.TESTS / "slurm" / "test_script.py"  # of a few hundred cases, some of which need a package


def collected(part: str) -> list[str]:
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-n0", "--part", part, str(FILE)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_each_case_runs_in_one_of_both_parts() -> None:
    quick, others, both = map(collected, ("quick", "rest", "all"))
    assert sorted(quick + others) == sorted(both) and quick and others
    assert not any("[busybox" in case for case in quick)


def defined(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("key", rest.NEEDS)
def test_a_row_means_something(key: str) -> None:
    if key.startswith("fixture "):
        assert any(key.partition(" ")[2] in defined(file) for file in rest.TESTS.rglob("*.py"))
        return
    file, _, function = key.partition("[")[0].partition("::")
    assert (rest.TESTS / file).exists()
    assert not function or function in defined(rest.TESTS / file)


@pytest.mark.parametrize(
    ("seconds", "cases", "kept"), [(0.1, 5, 5), (0.11, 70, 4), (1.0, 9, 1), (1.0, 1, 1), (2.0, 3, 0)]
)
def test_a_function_keeps_within_its_budget(
    seconds: float, cases: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "_seconds", lambda: {"one/test_one.py::test_it": (seconds, cases)})
    monkeypatch.setattr(rest, "BUDGET", 0.5)
    named = [f"test_it[{number}]" for number in range(cases)]
    chosen = rest.within_budget(rest.TESTS / "one" / "test_one.py", "test_it", named)
    assert len(chosen) == kept and chosen <= set(named)
    assert chosen == rest.within_budget(rest.TESTS / "one" / "test_one.py", "test_it", named[::-1])


def test_a_function_that_was_never_measured_runs_whole() -> None:
    assert len(rest.within_budget(FILE, "test_of_tomorrow", ["a", "b"])) == 2


def test_reports_of_pytest_are_read(tmp_path: Path) -> None:
    case = '<testcase classname="tests.one.test_one" name="test_it[{}]" time="{}"/>'
    cases = "".join(case.format(number, seconds) for number, seconds in enumerate((9, 0.5, 0.6)))
    short = '<testcase classname="tests.one.test_one" name="test_short" time="0.1"/>'
    (tmp_path / "report.xml").write_text(f"<testsuites><testsuite>{cases}{short}</testsuite></testsuites>")
    assert rest.measured(tmp_path / "report.xml") == {"one/test_one.py::test_it": (0.6, 3)}


def test_a_package_in_make_test_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERLAP_TEST_PART", "quick")
    with pytest.raises(AssertionError, match="asked for hello: give it a row"):
        debian.fetch("bookworm", ["hello"])
    with pytest.raises(AssertionError, match="asked for hello"):
        debian.install(["hello"], ["sh"])


@pytest.mark.parametrize("said", [None, "0"])
def test_nothing_is_installed_unless_it_is_said(said: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERLAP_TEST_PART", "rest")
    monkeypatch.delenv("SYSTEM", raising=False)
    if said:
        monkeypatch.setenv("SYSTEM", said)
    monkeypatch.setattr(debian, "_run", lambda *words: pytest.fail(f"started {words}"))
    with pytest.raises(debian.Missing, match=r"needs hello: apt-get install hello, or as root with SYSTEM=1"):
        debian.install(["hello"], ["no-such-command"])


def test_what_is_downloaded_and_installed_is_said_before() -> None:
    words = [sys.executable, str(rest.TESTS / "rest.py")]
    for system, expected in (("", "make test-all SYSTEM=1"), ("1", "installs, where missing")):
        text = subprocess.run(words, env={**os.environ, "SYSTEM": system}, capture_output=True, text=True).stdout
        assert expected in text and str(rest.DOWNLOADS) in text
        for need in rest.NEEDS.values():
            assert need.installs in text or set(need.installs.split()) <= set(text.split())
            assert not need.downloads or f"{need.downloads:4} MB  {need.what}" in text


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME", "TMPDIR"])
def test_everything_that_tests_write_is_below_the_tree(name: str) -> None:
    assert rest.KEPT in Path(os.environ[name]).parents
    assert rest.KEPT in Path(tempfile.gettempdir()).parents
