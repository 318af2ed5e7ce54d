"""What is generated in docs/ and elsewhere, compared with its sources or made anew.

    python -m tools.docs.write --check [NAME ...]    # exit status 1 and a line for each part that is not of today
    python -m tools.docs.write --write [NAME ...]

A part of a page stands between `<!-- tools/docs/write.py: NAME -->` and `<!-- end -->`; FILES are generated as a whole.
Nothing here writes a sentence of docs/results.md. Needs the built library and simulated GPU (make setup).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyshim import __version__
from pyshim.errors import OverlapError
from pyshim.policy.model import schema_text
from tools.checks import driver_table
from tools.docs import picture, programs, reference, sizes
from tools.docs.table import Table
from tools.simgpu.hip import names

ROOT = Path(__file__).resolve().parents[2]

Made = Mapping[Path, str]
_PART = re.compile(r"(<!-- tools/docs/write\.py: (\S+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
# What comes before the version of pyshim/__init__.py in files that cannot ask for it.
VERSIONED = {
    "shim/version.h": '#define OVERLAP_VERSION "',
    "CITATION.cff": "\nversion: ",
    "tools/deploy/kubernetes.yaml": "/overlap-run:",
    "tools/release/README.md": "cd overlap_run-",
}
SCHEMA = "policy.schema.json"
SCHEMA_LINE = f"# yaml-language-server: $schema=./{SCHEMA}\n"  # by which editors find it
POLICY_LINE = "\npolicy: 1\n"
HIP_HEAD = """\
/* Positions of the entry points of driver.def in HIP's dispatch table (ROCm 6.1 and newer): TABLE(name, position), in
 * members of 8 bytes. Member 0 is the size of the table. Members are only ever appended, as hip_api_trace.hpp of
 * ROCm's clr asserts. Generated from tools/simgpu/hip/api.def by tools/docs/write.py.
 */
"""


def lines(part: Callable[[], Iterator[str]]) -> Callable[[], str]:
    return lambda: "\n".join(part()).rstrip()


def measured(table: Callable[[Path], Table]) -> Callable[[], str]:
    return lambda: table(ROOT).markdown()


PARTS: dict[str, Callable[[], str]] = {
    "reasons": lines(reference.reasons),
    "keys": lines(reference.keys),
    "commands": lines(reference.options),
    "variables": lines(reference.environment),
    "exits": lines(reference.statuses),
    "sets": lines(reference.sets),
    "tuning": lines(reference.tuning),
    "foreign": measured(programs.foreign),
    "estimates": measured(programs.estimates),
    "whole": measured(programs.whole),
    "whole-one": measured(programs.whole_one),
    "shaping": measured(programs.shaping),
    "costs": measured(programs.launch_costs),
    "checks": measured(programs.checks),
}


def page_with(name: str) -> Made:
    """The page that has the part, with the part made anew. Raises SystemExit unless exactly one has it, once."""
    found = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}
    matches = [(path, match) for path, text in found.items() for match in _PART.finditer(text) if match[2] == name]
    if len(matches) != 1:
        raise SystemExit(f"write: docs/ needs one `<!-- tools/docs/write.py: {name} -->`, and `<!-- end -->` behind it")
    ((path, match),) = matches
    text = found[path]
    return {path: f"{text[: match.end(1)]}{PARTS[name]()}{text[match.start(3) :]}"}


def data(name: str, text: Callable[[], str]) -> Callable[[], Made]:
    return lambda: {ROOT / "docs" / "data" / f"{name}.csv": text()}


def versioned() -> Made:
    """Files that repeat the version, with that of today. Raises SystemExit if one does not."""
    made = {}
    for name, before in VERSIONED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        made[ROOT / name], found = re.subn(rf"({re.escape(before)})\d+(?:\.\d+)+", rf"\g<1>{__version__}", text)
        if found != 1:
            raise SystemExit(f"write: {name} should say the version once, behind {before!r}")
    return made


def schema() -> Made:
    """The schema of policies, made from the policy reader, and the line in shipped policies that names it."""
    made = {ROOT / "policies" / SCHEMA: schema_text()}
    for path in sorted((ROOT / "policies").glob("*.yaml")):
        text = path.read_text(encoding="utf-8").replace(SCHEMA_LINE, "")
        if POLICY_LINE not in text:
            raise SystemExit(f"write: {path} has no line `policy: 1` behind its comment")
        made[path] = text.replace(POLICY_LINE, f"\n{SCHEMA_LINE}policy: 1\n", 1)
    return made


def dispatch_table() -> Made:
    positions = {one.name: one.position for one in names.read() if one.position}
    rows = [row.name for row in driver_table.rows(ROOT / "shim/hip/driver.def") if row.name in positions]
    text = HIP_HEAD + "".join(f"TABLE({name}, {positions[name]})\n" for name in rows)
    return {ROOT / "shim/hip/dispatch_table.def": text}


FILES: dict[str, Callable[[], Made]] = {
    "sizes": data("sizes", lambda: sizes.matrix(ROOT).csv()),
    "sizes-by-kernel": data("sizes-by-kernel", lambda: sizes.every_size(ROOT).csv()),
    "sizes-amd": data("sizes-amd", lambda: sizes.amd(ROOT).csv()),
    "sizes-limits": data("sizes-limits", lambda: sizes.limits(ROOT).csv()),
    "picture": lambda: {ROOT / "docs" / "pictures" / "stencil.svg": picture.picture()},
    "schema": schema,
    "dispatch-table": dispatch_table,
    "version": versioned,
}


def main() -> int:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="write", description=__doc__, formatter_class=shape)
    what = parser.add_mutually_exclusive_group(required=True)
    for option in ("--check", "--write"):
        what.add_argument(option, action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*PARTS, *FILES)))
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - {*PARTS, *FILES}):
        parser.error(f"nothing is called {unknown[0]}; known: {', '.join((*PARTS, *FILES))}")
    try:
        differing = [line for name in options.names or (*PARTS, *FILES) for line in each(name, options.write)]
    except OverlapError as error:
        print(f"write: {error}{f': {error.hint}' if error.hint else ''}", file=sys.stderr)
        return error.status
    for line in differing:
        print(line, file=sys.stderr)
    return 1 if differing else 0


def each(name: str, write: bool) -> Iterator[str]:
    """Write the files that differ, or say which do."""
    for path, text in (page_with(name) if name in PARTS else FILES[name]()).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if write:
            path.write_text(text, encoding="utf-8")
        else:
            again = f".venv/bin/python -m tools.docs.write --write {name}"
            yield f"{path.relative_to(ROOT)}: {name} differs from its sources: {again}"


if __name__ == "__main__":
    sys.exit(main())
