"""Our libcudart.so.12 and .13 against NVIDIA's: names and versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nvidia_packages import runtime_library

from pyshim.start import plan
from tools.checks import check_exports

RUNTIME = Path(__file__).resolve().parents[2] / "tools" / "simgpu" / "runtime"
VERSIONS = (12, 13)


def exported(version: int) -> set[str]:
    """The names of one of the two libraries, from api.def, with their forms for per-thread default streams."""
    found, here = set(), True
    for line in (RUNTIME / "api.def").read_text(encoding="ascii").splitlines():
        if line.startswith(("#if RUNTIME == ", "#endif")):
            here = line in (f"#if RUNTIME == {version}", "#endif")
        elif here and (row := re.match(r"(?:OWN|BODY|DRIVER)(?:_STREAM)?\((\w+), (_pt\w+)?", line)):
            found |= {row[1], row[1] + (row[2] or "")}
    return found


def symbols(path: Path) -> dict[str, str]:
    """name -> version, of everything that is exported."""
    elf = check_exports.read(path.read_bytes())
    return {symbol.name: symbol.version for symbol in elf.symbols if symbol.defined}


def ours(version: int) -> Path:
    return Path(plan.SIMULATED_DRIVER).parent / f"libcudart.so.{version}"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_exported_is_what_the_table_says(version: int) -> None:
    node = f"libcudart.so.{version}"
    found = symbols(ours(version))
    found.pop(node, None)  # the node itself
    assert found == dict.fromkeys(exported(version), node)
    assert b"\0" + node.encode() + b"\0" in ours(version).read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_real_library_has_every_name_under_the_same_version(version: int) -> None:
    real = symbols(runtime_library(version))
    assert {name: real.get(name) for name in exported(version)} == dict.fromkeys(
        exported(version), f"libcudart.so.{version}"
    )
    # A form for per-thread default streams that is missing would run on the wrong stream without a word.
    forms = {name for name in real if re.search(r"_pt[sd][sz]$", name)}
    missing = {form for form in forms if form[:-5] in exported(version)} - exported(version)
    assert missing == set()
