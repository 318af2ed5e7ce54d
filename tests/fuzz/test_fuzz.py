"""tools.checks.fuzz: a bug is found, its input kept and repeated, in C and in Python; and a reader that never ends."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import seeds
from tools.checks import fuzz

ROOT = Path(__file__).resolve().parents[2]
BUGS = {
    "crash": "if (size > 4 && data[2] == '!') return data[size + (size_t)data[3] % 2 * 64] != 0;",
    "hang": "while (size > 4 && data[2] == '!') usleep(1000);",
    "none": "",
}
PROGRAM = """
#define FUZZ_MOST 4096
#include "fuzz.h"
static bool fuzz_one(const uint8_t *given, size_t size) {
    uint8_t *data = malloc(size + 1);
    memcpy(data, given, size);
    BUG
    free(data);
    return size > 3;
}
static void fuzz_repair(uint8_t *bytes, size_t size, size_t changed) { (void)bytes, (void)size, (void)changed; }
static bool fuzz_announce(uint8_t *bytes, size_t size) { (void)bytes, (void)size; return false; }
"""
MODULE = """
from hypothesis import given
from tests.fuzz.reading import FUZZ, Reader, almost
of_planted = Reader(0.5)
def one(data):
    if data[2:3] == b"!":
        BUG
    return len(data) > 3
@FUZZ
@given(almost([b"abcdef"], [b"!"]))
def test_planted(data):
    of_planted(one, data)
"""
PYTHON_BUGS = {"crash": "raise KeyError(data)", "hang": "while True: pass", "none": "pass"}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """planted(bug, python) -> the arguments of the tool that run a fuzzer with this bug, and no other."""

    def plant(bug: str, python: bool) -> list[str]:
        if python:
            text = textwrap.dedent(MODULE).replace("BUG", PYTHON_BUGS[bug])
            module = tmp_path / "test_planted.py"
            module.write_text(text, encoding="utf-8")
            monkeypatch.setattr(fuzz, "PROPERTIES", {"planted": str(module)})
        else:
            source = tmp_path / "planted_fuzz.c"
            source.write_text(PROGRAM.replace("BUG", BUGS[bug]), encoding="utf-8")
            given = {"planted": (str(source), f"-I{fuzz.FUZZ}")}
            monkeypatch.setattr(fuzz, "PROGRAMS", {**fuzz.PROGRAMS, **given})
            monkeypatch.setitem(seeds.SEEDS, "planted", lambda: {"one": b"abcdef", "other": b"!!!!!!!!"[:3]})
        monkeypatch.setattr(fuzz, "libfuzzer", lambda: None)
        monkeypatch.setattr(fuzz, "STILL", 3.0)
        return [
            "planted",
            "--seconds",
            "2" if python else "6",
            "--keep",
            str(tmp_path / "kept"),
            "--json",
            str(tmp_path / "counts"),
        ]

    return plant


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["fuzz.py", *arguments])
    return fuzz.main()


@pytest.mark.parametrize("bug", ["crash", "hang"])
def test_a_bug_in_c_is_found_and_repeated(planted, monkeypatch, tmp_path, capfd, bug):
    assert run(planted(bug, False), monkeypatch) == 1
    (count,) = json.loads((tmp_path / "counts").read_text(encoding="utf-8"))
    (kept,) = (tmp_path / "kept").iterdir()
    assert count["finding"] == str(kept) and count["tried"] > 0 and kept.read_bytes()[2:3] == b"!"
    said = capfd.readouterr().err
    assert f"--repeat {kept}" in said
    assert "AddressSanitizer" in said or bug == "hang"
    if bug == "crash":
        assert run(["--repeat", str(kept)], monkeypatch) == 1
    innocent = tmp_path / "planted-innocent"
    innocent.write_bytes(b"ab?def")
    assert run(["--repeat", str(innocent)], monkeypatch) == 0


@pytest.mark.parametrize("bug", ["crash", "hang", "none"])
def test_a_bug_in_python_is_found_and_made_small(planted, monkeypatch, tmp_path, capfd, bug):
    assert run(planted(bug, True), monkeypatch) == (bug != "none")
    (count,) = json.loads((tmp_path / "counts").read_text(encoding="utf-8"))
    said = capfd.readouterr().err
    if bug == "none":
        assert count["tried"] > count["accepted"] > 0 and "hypothesis: " in said
    else:
        assert f"again: .venv/bin/python -m pytest {tmp_path / 'test_planted.py'}" in said
        assert ("KeyError" if bug == "crash" else "no end within 0.5 seconds of CPU") in said
        assert "Falsifying example" in said and "@reproduce_failure" in said


def test_seeds_of_programs_are_whole():
    for name in fuzz.PROGRAMS:
        assert all(seeds.SEEDS[name]().values()), name
    assert {path.stem for path in (ROOT / "policies").glob("*.yaml")} < set(seeds.tables())
