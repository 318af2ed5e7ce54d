"""Each file of cases/ is checked as a user would check it, and the complete output compared.

`python tests/policy/test_cases.py` writes the outputs anew; read the difference before you keep it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from pathlib import Path

import pytest

from pyshim.cli import policy

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))
# Files with nothing wrong or with warnings only.
FINE = {
    "alias",
    "gpu_by_its_key",
    "impossible_size_on_this_gpu",
    "merge_key",
    "more_than_a_gpu_has",
    "unknown_gpu",
    "whole_language",
    "words_that_yaml_would_change",
}


def check(name: str) -> tuple[int, str]:
    parser = argparse.ArgumentParser()
    policy.add_to(parser.add_subparsers())
    arguments = parser.parse_args(["policy", "check", f"{name}.yaml"])
    before = Path.cwd()
    os.chdir(CASES)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = arguments.run(arguments)
    finally:
        os.chdir(before)
    return status, printed.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_the_complete_output_for(name: str) -> None:
    status, output = check(name)
    assert output == (CASES / f"{name}.expected").read_text(encoding="utf-8")
    assert status == (0 if name in FINE else 1)


def test_every_expected_output_has_its_case() -> None:
    assert sorted(path.stem for path in CASES.glob("*.expected")) == NAMES


if __name__ == "__main__":
    for each in NAMES:
        (CASES / f"{each}.expected").write_text(check(each)[1], encoding="utf-8")
