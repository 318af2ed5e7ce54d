"""The generated parts of docs/ are those of today, and their tables leave nothing out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import mpich
import pytorch

from pyshim import _native
from pyshim.pages.page import names
from tools.docs import write
from tools.docs.advice import ADVICE
from tools.docs.commands import commands

ROOT = Path(__file__).resolve().parents[2]


def test_the_parts_are_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.write", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_a_part_that_is_not_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    page = tmp_path / "docs" / "reference.md"
    page.parent.mkdir()
    page.write_text(text.replace("`: cooperative launch. ", "`: cooperative. "), encoding="utf-8")
    monkeypatch.setattr(write, "ROOT", tmp_path)
    assert [line.partition(": reasons differs")[0] for line in write.each("reasons", False)] == ["docs/reference.md"]
    assert not list(write.each("reasons", True)) and page.read_text(encoding="utf-8") == text


def test_the_versions_that_are_said_to_be_tested_are_those_of_the_tests() -> None:
    pinned = dict(one.split("+")[0].split("==") for one in (*pytorch.PACKAGES, *pytorch.DEEPSPEED[:1], mpich.PACKAGE))
    short = {name: ".".join(version.split(".")[:2]) for name, version in pinned.items()}
    page = " ".join((ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8").split())
    assert f"MPICH {short['mpich']}, torchrun of PyTorch {short['torch']}" in page
    assert f"accelerate {short['accelerate']} and DeepSpeed {short['deepspeed']}." in page


def test_files_that_repeat_the_version_say_that_of_the_package(monkeypatch: Any) -> None:
    assert all(path.read_text(encoding="utf-8") == text for path, text in write.versioned().items())
    monkeypatch.setattr(write, "__version__", "7.8.9")
    assert len(write.versioned()) == 4 and all("7.8.9" in text for text in write.versioned().values())


def test_every_option_is_in_the_reference() -> None:
    for command in commands():
        written = {tuple(re.split(",? ", name)): meaning for name, meaning in command.options}
        short = {word for words in written for word in words if re.fullmatch("-[a-z]", word)}
        told = {next(word for word in words if word not in short): meaning for words, meaning in written.items()}
        assert short == {name for name in command.names if len(name) == 2} - {"-h"}, command.words
        missing = {name for name in command.names if name.startswith("--")} - {"--help"} - told.keys()
        spelled = {name for name in missing if name.replace("_", "-") not in told}  # --dry_run is --dry-run
        strange = {name for name in told.keys() - command.names if name[0] == "-" or not name.isupper()}
        assert not spelled and not strange and all(told.values()), (command.words, spelled, strange)


def test_every_reason_has_advice(library: Any) -> None:
    """Or says, by an empty text, that nothing is to be done."""
    assert list(ADVICE) == names(library.overlap_reason_name), "in the order of shim/core/reason.def"
    assert all(text == "" or text.endswith(".") for text in ADVICE.values())


def test_every_variable_of_ours_is_in_the_reference() -> None:
    """Whatever begins with OVERLAP_ and is a name in the environment, in what is installed or preloaded."""
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    used: set[str] = set()
    for folder in ("pyshim", "tools/deploy", "tools/docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".sh", ".env", "") and "_lib" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="replace")
                used |= set(re.findall(r"(?:environ|base|environment)(?:\.get\(|\[)\W?\"(OVERLAP_[A-Z_]+)\"", text))
                used |= set(re.findall(r"\$\{?(OVERLAP_[A-Z_]+)", text))
    assert {"OVERLAP_POLICY_PATH", "OVERLAP_REPORT"} <= used
    assert not {name for name in used if f"`{name}`" not in reference}


def test_tables_end_where_the_library_ends(library: Any) -> None:
    """reason.def as it was read is what the library was built from."""
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    table = page.partition("tools/docs/write.py: reasons")[2].partition("<!-- end -->")[0]
    assert re.findall(r"^- `(\w+)`: ", table, re.MULTILINE) == names(library.overlap_reason_name)
    assert os.path.exists(_native.SHIM)
