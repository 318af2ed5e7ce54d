"""Make one committed table anew.

    python -m tools.footprints.renew LIBRARY FILE [FILE ...] [--package NAME --version VERSION] [--output FILE]

LIBRARY is nccl, cublaslt, torch, rccl, rocblas or hipblaslt. FILE is a wheel (which says package and version
itself), or files of an unpacked package. Needs `pip install lz4 zstandard`. Writes LIBRARY-VERSION.json into
pyshim/footprints/libraries.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim.footprints import collectives
from pyshim.footprints.families import Library
from pyshim.footprints.footprint import Footprint, Unreadable
from pyshim.footprints.read import read, read_bytes
from pyshim.footprints.summary import rows
from tools.footprints.libraries import LIBRARIES


@dataclass(frozen=True)
class Source:
    package: str
    version: str
    file: str  # inside the package


def table(found: Iterable[Footprint], library: Library, source: Source, today: datetime.date) -> dict[str, Any]:
    made = rows(found, library)
    if not made:
        raise Unreadable(f"holds no kernel of a family of {library.name}")
    families = {row["family"] for row in made}
    return {
        "library": library.name,
        "version": source.version,
        "package": source.package,
        "file": source.file,
        "read": today.isoformat(),
        "tool": "tools/footprints/renew.py",
        "least_share": library.least_share,
        "not_in_the_binary": [
            fact for fact in library.not_in_the_binary if fact["what"] == "everything" or fact["family"] in families
        ],
        "rows": made,
    }


def written(table: dict[str, Any]) -> str:
    """JSON with one line a row, so that a renewal is readable as a difference."""
    lines = []
    for key, value in table.items():
        if isinstance(value, list) and value:
            inner = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            lines.append(f'  "{key}": [\n{inner}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def wheel(path: Path, library: Library) -> tuple[Source, list[Footprint]]:
    name, version = path.name.split("-")[:2]
    with zipfile.ZipFile(path) as archive:
        inside = [member for member in archive.namelist() if re.search(library.file, member)]
        if len(inside) != 1:
            raise Unreadable(f"{len(inside)} files of it are called like {library.file}")
        found = list(read_bytes(archive.read(inside[0])))
    return Source(f"{name.replace('_', '-')} (PyPI)", version, inside[0]), found


def every(paths: list[Path]) -> Iterator[Footprint]:
    for path in paths:
        try:
            yield from read(path)
        except Unreadable as error:
            raise Unreadable(f"{path.name}: {error}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--package", default="")
    parser.add_argument("--version", default="")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    library, first = LIBRARIES[options.library], options.files[0]
    try:
        if first.suffix == ".whl":
            source, found = wheel(first, library)
        elif options.package and options.version:
            name = first.name if len(options.files) == 1 else f"{len(options.files)} files like {first.name}"
            source, found = Source(options.package, options.version, name), list(every(options.files))
        else:
            parser.error("files that are no wheel need --package and --version")
        made = table(found, library, source, datetime.date.today())
    except Unreadable as error:
        print(f"renew.py: {first}: {error}", file=sys.stderr)
        return 1
    output = options.output or collectives.LIBRARIES / f"{options.library}-{source.version}.json"
    output.write_text(written(made), encoding="utf-8")
    print(f"{output.name}: {len(made['rows'])} rows of {len(found)} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
