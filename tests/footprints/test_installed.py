"""Real libraries, where their packages are installed, read anew and compared with the committed tables."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from pathlib import Path

import pytest

from pyshim.footprints.collectives import LIBRARIES as LIBRARY_TABLES
from pyshim.footprints.read import read
from pyshim.footprints.summary import rows
from tools.footprints.libraries import LIBRARIES

TABLES = [path for name in ("nccl", "cublaslt", "torch") for path in sorted(LIBRARY_TABLES.glob(f"{name}-*.json"))]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_an_installed_library_is_as_its_table_says(path: Path) -> None:
    made = json.loads(path.read_text(encoding="utf-8"))
    package = made["package"].split()[0]
    try:
        installed = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if installed.version != made["version"]:
        pytest.skip(f"{package} {installed.version} is installed, not {made['version']}")
    for name in ("lz4", "zstandard"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    library = LIBRARIES[path.stem.split("-")[0]]
    (file,) = (file for file in installed.files or () if re.search(library.file, str(file)))
    assert rows(read(Path(str(installed.locate_file(file)))), library) == made["rows"]
