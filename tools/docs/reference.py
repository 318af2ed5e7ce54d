"""The generated parts of docs/reference.md."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyshim.errors import FINDINGS, LAUNCHER_FAILED, USAGE
from pyshim.policy.kinds import REQUIRED
from pyshim.policy.model import KEYS
from pyshim.tune.sets import HERE, SETS, Setting
from tools.docs.advice import ADVICE
from tools.docs.commands import commands

ROOT = Path(__file__).resolve().parents[2]

TUNED = ROOT / "docs" / "data" / "tune-simulated.csv"  # of tools/bench/tune.py

# Exit statuses: command, status, meaning.
EXITS = (
    ("overlap-run", "PROGRAM's own", "it was started; 128+N where signal N ended it, as a shell says it"),
    ("overlap-run", str(LAUNCHER_FAILED), "overlap-run failed before it started PROGRAM, or `--strict` refused"),
    ("overlap-run", "126", "PROGRAM is not executable"),
    ("overlap-run", "127", "PROGRAM was not found"),
    ("overlap", "0", "done; warnings are no findings, unless `--check` says so"),
    ("overlap", str(FINDINGS), "findings: mistakes, something that fails, an empty report, a warning under `--check`"),
    ("overlap", str(USAGE), "wrong options or input"),
    ("overlap", str(LAUNCHER_FAILED), "the installation is broken: its Python is missing, or this user may not run it"),
    ("overlap", "130", "interrupted; `overlap tune` says what is known so far, also with 143 for SIGTERM"),
)

# Variables of the commands; the library's own are in shim/sys/env.def. A test compares with the sources.
READ = {
    "OVERLAP_POLICY": "the default of `--policy`, or `off`; the TaskProlog and the modulefiles go by it, too",
    "OVERLAP_POLICY_PATH": "folders with policies, with colons, looked through before the shipped ones",
    "OVERLAP_PROGRESS": "`off`: `overlap` says nothing of what takes long, as with `--quiet`",
    "NO_COLOR": "set and not empty: no colours",
    "FORCE_COLOR": "set and not empty: colours also into a file or a pipe",
    "COLUMNS": "the width of tables and help, and of sentences on a terminal (60 to 100). Into a file or a pipe each "
    "sentence is one line, so that it can be searched",
}
# Set by others of ours, and by whom.
SET = {
    "OVERLAP_HOME": "by the modulefile: the folder that `make site` made",
    "OVERLAP_BUILD": "read when the package is built: `off` builds no library",
}
# Of other programs; read, never set.
OTHERS = {
    "LD_PRELOAD": "kept; the library comes first, but behind sanitizer runtimes, and once",
    "LD_LIBRARY_PATH": "where drivers are looked for; with `--simulate`, the simulated driver comes first",
    "NCCL_CONF_FILE": "a file whose variables count as the user's, as do `~/.nccl.conf` and `/etc/nccl.conf`",
    "CUDA_GRAPHS_USE_NODE_PRIORITY": "NVIDIA's: 0 keeps communication in graphs from being raised",
    "OMPI_MCA_mca_base_env_list": "Open MPI's: with `mpirun` ours are added to it, so that they reach other hosts",
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
    yield from listed((name, f"{said}. {ADVICE[name]}".rstrip()) for name, _, said in found)


def keys() -> Iterator[str]:
    rows = []
    for key in KEYS:
        default = "**required**" if key.default == REQUIRED else key.default
        rows.append((f"`{key.path}`", key.type, default, key.sentence, f"`{key.example}`"))
    yield from table(("key", "value", "without it", "meaning", "example"), rows)


def listed(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from (f"- `{name}`: {meaning}" for name, meaning in found)


def options() -> Iterator[str]:
    for command in commands():
        yield f"### {command.words}\n"
        yield f"{prose(command.description)}\n"
        if command.options:
            yield from listed(command.options)
            yield ""


def environment() -> Iterator[str]:
    yield "Read by the library, set by `overlap-run` and `overlap env`:\n"
    yield from listed((name, meaning) for _, name, meaning in rows_of("shim/sys/env.def", "ENV"))
    for title, names in (
        ("Read by the commands:", READ),
        ("Of our other parts:", SET),
        ("Other programs' own:", OTHERS),
    ):
        yield f"\n{title}\n"
        yield from listed(names.items())
    yield "\nThe rank number is read from the first variable that is set:\n"
    ranks = [(f"`{rank}`", f"`{world}`") for rank, world in rows_of("shim/sys/rank.def", "RANK")]
    yield from table(("rank", "number of ranks"), ranks)


def statuses() -> Iterator[str]:
    yield from (f"- `{who}`, {status}: {what}" for who, status, what in EXITS)


MEASURED = "[measured here](../../tools/gpu/results/training-levers.csv), 1 to 3 runs each"


def sets() -> Iterator[str]:
    rows = [
        (f"`{name}`", f"`{setting.variable}`", ", ".join(setting.values), _gained(setting))
        for name, settings in SETS.items()
        for setting in settings
    ]
    yield from table(("set", "variable", "values", "gained"), rows)


def _gained(setting: Setting) -> str:
    return f"{setting.gained}; {MEASURED}" if setting.source == HERE else f"[{setting.gained}]({setting.source})"


def tuning() -> Iterator[str]:
    """What was simulated: by noise and effect, per cent of searches that were right, and the median of runs."""
    with TUNED.open(encoding="ascii") as file:
        found = {(row["noise"], row["effects"]): row for row in csv.DictReader(file)}
    shown = ("-20", "-11", "-10", "-3", "-1", "0", "0 0 -10")
    rows = []
    for noise in dict.fromkeys(noise for noise, _ in found):
        cells = [found[noise, effect] for effect in shown]
        wrong = max(float(row["wrong"]) for (of, _), row in found.items() if of == noise)
        rows.append((noise, *(f"{float(cell['right']):.0f} %, {cell['runs']}" for cell in cells), f"{wrong:.1f} %"))
    names = {"0": "equal", "0 0 -10": "-10 % among three"}
    heads = (names.get(effect, f"{effect} %") for effect in shown)
    yield from table(("noise", *heads, "wrong at most"), rows)
