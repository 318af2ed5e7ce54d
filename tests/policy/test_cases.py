"""Policies with mistakes, and all that is said about each: cases.txt.

A case is `=== NAME`, the policy, and `=> LINE:COLUMN+LENGTH SEVERITY[CODE]: SENTENCE | HINT` for each finding, or
`=> ok`. `python tests/policy/test_cases.py` writes the findings anew; read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from pyshim.policy.finding import Finding
from pyshim.policy.reader import read_file

FILE = Path(__file__).parent / "cases.txt"
BASE = Path(__file__).parent / "base"  # what some of them extend


def cases() -> dict[str, tuple[str, list[str]]]:
    """Return, by name, the policy and its findings."""
    found = {}
    for name, text in re.findall(r"^=== (\w+)\n(.*?)(?=^=== |\Z)", FILE.read_text(encoding="utf-8"), re.M | re.S):
        policy, _, findings = text.partition("=> ")
        found[name] = policy, [f"=> {line}" for line in findings.rstrip("\n").split("\n=> ")]
    return found


def told(name: str, policy: str, folder: Path) -> list[str]:
    """Return what is said about a policy in a folder of its own."""
    shutil.copytree(BASE, folder / "base")
    (folder / f"{name}.yaml").write_text(policy, encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        return [_line(finding) for finding in read_file(Path(f"{name}.yaml")).findings] or ["=> ok"]
    finally:
        os.chdir(before)


def _line(found: Finding) -> str:
    place = f"{found.file}{':' * bool(found.file)}{found.line}:{found.column}+{found.length}"
    return f"=> {place} {found.severity}[{found.code}]: {found.sentence}{f' | {found.hint}' if found.hint else ''}"


@pytest.mark.parametrize("name", CASES := cases())
def test_all_that_is_said_about(name: str, tmp_path: Path, library: object) -> None:
    policy, findings = CASES[name]
    assert told(name, policy, tmp_path) == findings


if __name__ == "__main__":
    made = ""
    for each, (text, _) in cases().items():
        with tempfile.TemporaryDirectory() as scratch:
            made += f"=== {each}\n{text}" + "\n".join(told(each, text, Path(scratch))) + "\n"
    FILE.write_text(made, encoding="utf-8")
