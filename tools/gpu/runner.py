"""Builds and runs sets of measurements within a time limit, and writes one JSON file for each."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tools.gpu import machine, needs, product
from tools.gpu.build import HERE, NotBuilt, build
from tools.gpu.files import write
from tools.gpu.processes import LATE, ended
from tools.gpu.sets import BY_NAME, CUBIN, SETS, Set, Step

VERSION = 1
FINDINGS, USAGE = 1, 2
OUT = Path("build/gpu")
LIMIT = 600
MARGIN = 20  # seconds, for a command that keeps a limit itself, to end what it has begun
ASSIGNED = re.compile(r"([A-Z_][A-Z0-9_]*)=(.*)", re.DOTALL)
END = """exit status: 0 all chosen sets ran to their end; 1 one failed, was cut, or lacks
what it needs, which is said; 2 the options are wrong. A set that was cut says
so in its file, and keeps what it had until then. Without SET: all that one GPU
can do, most important first. Nothing is installed, nothing of the GPU changed."""


class Wrong(Exception):
    """One sentence, and a next step."""

    def __init__(self, sentence: str, help_: str) -> None:
        super().__init__(sentence)
        self.help = help_


@dataclass(frozen=True)
class Place:
    """Where a run finds and leaves things."""

    out: Path
    built: Path
    environment: Mapping[str, str]
    rounds: int | None


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tools/gpu/run", description=__doc__, epilog=END, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("sets", nargs="*", metavar="SET", help="of --list")
    made.add_argument("--list", action="store_true", help="the sets, and what each lacks here; nothing runs")
    made.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS", help="for all, the build too (default: %(default)s)"
    )
    made.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="for SET.json (default: %(default)s)")
    made.add_argument("--rounds", type=int, metavar="N", help="repetitions, of the sets that have them")
    made.add_argument(
        "--build", type=Path, metavar="DIR", help="built programs, kept (default: bin in the folder of --out)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return _main(options)
    except (Wrong, NotBuilt) as error:
        say(f"error: {error}")
        if isinstance(error, Wrong):
            say(f"help: {error.help}")
        return USAGE if isinstance(error, Wrong) else FINDINGS
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        say(f"error: {error.filename}: {error.strerror}")
        return USAGE


def say(text: str) -> None:
    print(f"overlap: {text}", file=sys.stderr, flush=True)


def _main(options: argparse.Namespace) -> int:
    chosen = choose(options.sets)
    if options.list:
        for one in chosen if options.sets else SETS:
            lacks = missing(one)
            line = f"{one.name:18} {one.seconds:4} s  {one.question}"
            line += f" (lacks {'; '.join(lacks)})" if lacks else ""
            print(
                textwrap.fill(
                    line, shutil.get_terminal_size().columns, subsequent_indent=" " * 26, break_on_hyphens=False
                )
            )
        return 0
    if options.limit <= 0 or (options.rounds is not None and options.rounds < 1):
        raise Wrong("--limit and --rounds are numbers above 0", "tools/gpu/run --limit 300 --rounds 5")
    built = (options.build or options.out / "bin").resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="overlap-gpu-") as name:
        environment = product.environment(Path(name))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(product.ROOT), environment.get("PYTHONPATH"))))
        place = Place(options.out.resolve(), built, environment, options.rounds)
        return run(chosen, place, options.limit, Path(name))


def choose(names: Sequence[str]) -> list[Set]:
    """Those, in the order of the table; all for one GPU without names. Raises Wrong."""
    for name in names:
        if name not in BY_NAME:
            close = get_close_matches(name, BY_NAME, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise Wrong(f"no set is called {name!r}", f"{hint}known: {', '.join(BY_NAME)}")
    return [one for one in SETS if (one.name in names if names else one.gpus == 1)]


def missing(one: Set) -> list[str]:
    return needs.missing(one.needs, one.gpus)


def architecture() -> str:
    return needs.gpus()[0][1]


def run(chosen: Sequence[Set], place: Place, limit: float, folder: Path) -> int:
    """Build and run the sets. folder: for their files."""
    begun, good = time.monotonic(), True
    ready = []
    for one in chosen:
        lacks = missing(one)
        if lacks:
            good = False
            say(f"{one.name}: skipped: it needs {'; '.join(lacks)}")
        else:
            ready.append(one)
    build([name for one in ready for name in one.builds], place.built, architecture() if ready else "")
    head = machine.describe() if ready else {}
    for one in ready:
        left = limit - (time.monotonic() - begun)
        work = folder / one.name
        work.mkdir()
        said = run_set(one, place, head, min(left, one.limit), work)
        good = good and not said
        say(f"{one.name}: {said or 'done'}, {place.out / one.name}.json")
    return 0 if good else FINDINGS


def run_set(one: Set, place: Place, head: dict[str, Any], limit: float, work: Path) -> str:
    """Run one set and write its file; return what was wrong, or the empty string."""
    file = place.out / f"{one.name}.json"
    file.unlink(missing_ok=True)
    begun = time.monotonic()
    rows: list[dict[str, Any]] = []
    for step in one.steps:
        left = limit - (time.monotonic() - begun)
        if left <= 0:
            rows.append({"step": step.name, "cut": "not begun"})
            continue
        rows.append(run_step(one, step, place, left, work))
    cut = [row["step"] for row in rows if "cut" in row]
    failed = [f"{row['step']} ended with {row['status']}" for row in rows if "cut" not in row and row["status"]]
    own = parsed(file.read_text(encoding="utf-8")) if file.exists() else None
    made: dict[str, Any] = {
        "version": VERSION,
        "set": one.name,
        "question": one.question,
        "machine": head,
        "steps": rows,
    }
    if one.writes_itself and isinstance(own, dict):
        made = own
    if cut:
        made["cut"] = f"ended at its limit of {max(0, limit):.0f} s: {', '.join(cut)}"
    if cut or made is not own:
        write(file, made)
    return "; ".join(([made["cut"]] if cut else []) + failed)


def run_step(one: Set, step: Step, place: Place, limit: float, work: Path) -> dict[str, Any]:
    """{step, command, status, seconds, lines (of stdout, JSON where it is), file, said (stderr, if it failed), cut}"""
    variables, words = command_of(one, step, place, limit, work)
    done = ended(words, {**place.environment, **variables}, limit, work)
    row: dict[str, Any] = {"step": step.name, "command": step.command, "status": done.status, "seconds": done.seconds}
    if one.rounds is not None:
        row["rounds"] = place.rounds or one.rounds
    whole = parsed(done.output)
    row["lines"] = [parsed(line) for line in done.output.splitlines()] if isinstance(whole, str) else [whole]
    if step.file and (work / step.file).exists():
        row["file"] = parsed((work / step.file).read_text(encoding="utf-8"))
    if done.status:
        row["said"] = done.errors[-4000:]
    if done.status == LATE:
        row["cut"] = f"after {done.seconds} s"
    return row


def command_of(one: Set, step: Step, place: Place, limit: float, work: Path) -> tuple[dict[str, str], list[str]]:
    places = {
        "python": sys.executable,
        "gpu": str(HERE),
        "bin": str(place.built),
        "cubin": str(place.built / CUBIN),
        "nccl": nccl() if "{nccl}" in step.command else "",
        "rounds": str(place.rounds or one.rounds),
        "limit": str(max(1, int(limit) - MARGIN)),
        "work": str(work),
        "out": str(place.out / f"{one.name}.json"),
    }
    words = [word.format_map(places) for word in shlex.split(step.command)]
    variables = {}
    while match := ASSIGNED.fullmatch(words[0]):
        variables[match[1]] = match[2]
        del words[0]
    return variables, words


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def nccl() -> str:
    """PyTorch's, or the name for the loader."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = Path(folder) / "nccl/lib/libnccl.so.2"
        if found.exists():
            return os.fspath(found)
    return "libnccl.so.2"
