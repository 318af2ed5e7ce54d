"""The generated parts of docs/: reasons, keys, commands, variables, exit statuses; the fields of JSON
answers; and the version, wherever a file has to repeat it.

    python -m tools.docs.write --check    # exit status 1 and a line for each part that is not of today
    python -m tools.docs.write --write

A part stands between `<!-- tools/docs/write.py: NAME -->` and `<!-- end -->`; the fields are docs/data/json-fields.csv.
Needs the built library (make setup).
"""

from __future__ import annotations

import csv
import io
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pyshim import __version__
from pyshim.policy.kinds import REQUIRED
from pyshim.policy.model import KEYS
from pyshim.tune.sets import SETS
from tools.docs import exits, formats, variables
from tools.docs.advice import ADVICE
from tools.docs.commands import commands
from tools.generate import files

ROOT = Path(__file__).resolve().parents[2]

FIELDS = ROOT / "docs" / "data" / "json-fields.csv"
SIMULATED = ROOT / "docs" / "data" / "tune-simulated.csv"
_PART = re.compile(r"(<!-- tools/docs/write\.py: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What comes before the version of pyshim/__init__.py in files that cannot ask for it.
VERSIONED = {
    "shim/version.h": '#define OVERLAP_VERSION "',
    "CITATION.cff": "\nversion: ",
    "tools/containers/kubernetes.yaml": "/overlap-run:",
    "tools/release/README.md": "cd overlap_run-",
}


def prose(text: str) -> str:
    return textwrap.fill(text, 135, break_long_words=False, break_on_hyphens=False)


def rows_of(file: str, macro: str) -> list[tuple[str, ...]]:
    """The arguments of an X macro's rows, strings without their quotes."""
    text = (ROOT / file).read_text(encoding="utf-8")
    comma = re.compile(r',\s*(?=(?:[^"]*"[^"]*")*[^"]*$)')  # outside of quotes
    found = re.findall(rf"^{macro}\((.*)\)$", text, re.MULTILINE)
    return [tuple(re.sub(r'^"|"$', "", part) for part in comma.split(row)) for row in found]


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        cells = [re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row]
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |")


def reasons() -> Iterator[str]:
    found = rows_of("shim/core/reason.def", "REASON")
    yield from table(
        ("reason", "in words", "what to do"), [(f"`{name}`", said, ADVICE[name]) for name, _, said in found]
    )


def keys() -> Iterator[str]:
    rows = []
    for key in KEYS:
        default = "**required**" if key.default == REQUIRED else key.default
        rows.append((f"`{key.path}`", key.type, default, key.sentence, f"`{key.example}`"))
    yield from table(("key", "value", "without it", "meaning", "example"), rows)


def options() -> Iterator[str]:
    for command in commands():
        yield f"### {command.words}\n"
        yield f"{prose(command.description)}\n"
        if command.options:
            yield from table(("option", "meaning"), [(f"`{name}`", meaning) for name, meaning in command.options])
            yield ""


def environment() -> Iterator[str]:
    yield "Read by the library, set by `overlap-run` and `overlap env`:\n"
    rows = [(f"`{name}`", meaning) for _, name, meaning in rows_of("shim/sys/env.def", "ENV")]
    yield from table(("variable", "meaning"), rows)
    for title, names in (
        ("Read by the commands:", variables.READ),
        ("Of our other parts:", variables.SET),
        ("Other programs' own:", variables.OTHERS),
    ):
        yield f"\n{title}\n"
        yield from table(("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in names.items()])
    yield "\nThe rank number is read from the first variable that is set:\n"
    ranks = [(f"`{rank}`", f"`{world}`") for rank, world in rows_of("shim/sys/rank.def", "RANK")]
    yield from table(("rank", "number of ranks"), ranks)


def statuses() -> Iterator[str]:
    rows = [(f"`{who}`", status, what) for who, status, what in exits.EXITS]
    yield from table(("command", "status", "meaning"), rows)


def sets() -> Iterator[str]:
    rows = [
        (f"`{name}`", f"`{setting.variable}`", ", ".join(setting.values), f"[{setting.what}]({setting.source})")
        for name, settings in SETS.items()
        for setting in settings
    ]
    yield from table(("set", "variable", "values", "what it is"), rows)


def tuning() -> Iterator[str]:
    """What tools/bench/tune.py simulated: by noise and effect, per cent of searches that were right, and runs."""
    with SIMULATED.open(encoding="ascii") as file:
        found = {(row["noise"], row["effects"]): row for row in csv.DictReader(file)}
    effects = [effects for effects in dict.fromkeys(effects for _, effects in found) if " " not in effects]
    rows = []
    for noise in dict.fromkeys(noise for noise, _ in found):
        cells = [found[noise, effect] for effect in effects]
        wrong = max(float(found[noise, equal]["wrong"]) for equal in ("0", "0 0 0"))
        rows.append((noise, *(f"{float(cell['right']):.0f} %, {cell['runs']}" for cell in cells), f"{wrong:.1f} %"))
    heads = ("equal" if effect == "0" else f"{effect} %" for effect in effects)
    yield from table(("noise", *heads, "equal arm kept"), rows)


def json_fields() -> str:
    rows = [
        (command, path, meaning)
        for command, fields in formats.FORMATS.items()
        for path, meaning in fields.items()
        if not meaning.startswith("?")
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("command", "field", "meaning"), *rows])
    return text.getvalue()


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "reasons": reasons,
    "keys": keys,
    "commands": options,
    "variables": environment,
    "exits": statuses,
    "sets": sets,
    "tuning": tuning,
}


def of_today(text: str) -> str:
    """A page with its parts made anew."""
    return _PART.sub(lambda part: part[1] + "\n".join(PARTS[part[2]]()).rstrip() + "\n" + part[3], text)


def pages() -> list[Path]:
    return [path for path in sorted((ROOT / "docs").rglob("*.md")) if _PART.search(path.read_text(encoding="utf-8"))]


def versioned() -> dict[Path, str]:
    """Files that repeat the version, with that of today. Raises SystemExit if one does not."""
    made = {}
    for name, before in VERSIONED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        made[ROOT / name], found = re.subn(rf"({re.escape(before)})\d+(?:\.\d+)+", rf"\g<1>{__version__}", text)
        if found != 1:
            raise SystemExit(f"tools.docs.write: {name} should say the version once, behind {before!r}")
    return made


def main() -> int:
    options = files.parser(__doc__).parse_args()
    made = {path: of_today(path.read_text(encoding="utf-8")) for path in pages()} | {FIELDS: json_fields()}
    made |= versioned()
    return files.finish(made, "tools.docs.write", options.write)


if __name__ == "__main__":
    sys.exit(main())
