"""The names that libcudart.so.12 and .13 of the simulated GPU show, from api.def."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
VERSIONS: tuple[int, ...] = (12, 13)
ROW = re.compile(r"(?:OWN|BODY|DRIVER)(_STREAM)?\((\w+), (_pt\w+)?")
HEADING = re.compile(r"/\* (.+)\. \*/")


class Name(NamedTuple):
    group: str
    name: str
    suffix: str  # of the form for per-thread default streams; empty: there is none
    versions: tuple[int, ...]
    parameters: tuple[str, ...]


def names() -> Iterator[Name]:
    group, versions = "", VERSIONS
    for line in (HERE / "api.def").read_text(encoding="ascii").splitlines():
        if heading := HEADING.fullmatch(line):
            group = heading[1]
        elif line.startswith("#if RUNTIME == "):
            versions = (int(line.split()[-1]),)
        elif line.startswith("#else"):
            versions = tuple(version for version in VERSIONS if version not in versions)
        elif line.startswith("#endif"):
            versions = VERSIONS
        elif row := ROW.match(line):
            inside = line.split("(", 2)[2].split(")")[0]
            parameters = () if inside == "void" else tuple(inside.split(", "))
            yield Name(group, row[2], row[3] or "", versions, parameters)


def exported(version: int) -> set[str]:
    """Every name of one of the two libraries."""
    found = [name for name in names() if version in name.versions]
    return {name.name for name in found} | {name.name + name.suffix for name in found}
