"""The simulated HIP runtimes show their names under the version nodes of the real ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.simgpu.hip import names


def readelf(*arguments: object) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf: install binutils")
    return subprocess.run(["readelf", "-W", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def shown(library: Path) -> list[str]:
    rows = [line.split() for line in readelf("--dyn-syms", library).splitlines()]
    return sorted(row[7].replace("@@", "@") for row in rows if len(row) == 8 and row[3] == "FUNC" and row[6] != "UND")


def test_names_have_the_version_nodes_of_the_real_one(runtimes: dict[int, Path]) -> None:
    assert shown(runtimes[7]) == sorted(f"{name}@{node}" for name, node in names.exported(7))


def test_an_older_one_goes_by_its_number_and_lacks_what_came_later(
    on_hip: Any, runtimes: dict[int, Path], version: int
) -> None:
    asked = [name for name, _ in names.exported(7)]
    run = on_hip(f"answer([[name for name in {asked} if hip.has(name)], hip.number('hipRuntimeGetVersion')])", version)
    assert run.answer[0] == [name for name, _ in names.exported(version)]
    assert run.answer[1] // 10_000_000 == version
    assert f"libamdhip64.so.{version}" in readelf("-d", runtimes[version])
