"""The files of the overlap suite (tools/gpu/overlap), read: tools/gpu/results/overlap-*.json, format version 1."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyshim.errors import OverlapError

FOLDER = Path("tools/gpu/results")
VERSION = 1
SIMULATED = "overlap-simulated"  # of all sets the one that no GPU has run
ALONE = ("computation", "communication")
PLAIN, PRIORITY, DEFAULT = "plain", "priority", "policy:h200"


@dataclass(frozen=True)
class Arm:
    """Milliseconds of each round; parts are empty where they cannot be told apart."""

    ms: tuple[float, ...]
    computation_ms: tuple[float, ...] = ()
    communication_ms: tuple[float, ...] = ()
    wait_us: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.ms)


@dataclass(frozen=True)
class Cell:
    name: str
    computation: str
    communication: str
    pattern: str
    ratio: float  # of communication to computation, as asked for
    primary: bool
    arms: Mapping[str, Arm]

    @property
    def ideal(self) -> float | None:
        """The longer part by itself."""
        if not all(part in self.arms for part in ALONE):
            return None
        return max(self.arms[part].median for part in ALONE)

    def ratios(self, arm: str, base: str) -> list[float]:
        """T of arm over T of base, round by round; empty if the cell lacks one of them."""
        if arm not in self.arms or base not in self.arms:
            return []
        return [one / other for one, other in zip(self.arms[arm].ms, self.arms[base].ms)]

    def change(self, arm: str, base: str) -> float | None:
        """Per cent, of the median of paired ratios; negative is faster."""
        ratios = self.ratios(arm, base)
        return 100 * (statistics.median(ratios) - 1) if ratios else None

    def share(self, arm: str) -> float | None:
        """Of the ideal, in per cent: what of the time that perfect overlap takes off the sequential one is off."""
        ideal, ratios = self.ideal, self.ratios("sequential", arm)
        if ideal is None or not ratios:
            return None
        most = self.arms["sequential"].median / ideal - 1
        return 100 * (statistics.median(ratios) - 1) / most if most > 0 else None

    def stretches(self, arm: str, part: str) -> list[float]:
        """Times of a part over its times by itself, round by round; part: one of ALONE. Empty: not known."""
        if arm not in self.arms or part not in self.arms:
            return []
        return [one / other for one, other in zip(getattr(self.arms[arm], f"{part}_ms"), self.arms[part].ms)]

    def stretch(self, arm: str, part: str) -> float | None:
        """How much longer a part takes than by itself; part: one of ALONE."""
        if arm not in self.arms or part not in self.arms:
            return None
        samples = getattr(self.arms[arm], f"{part}_ms")
        return statistics.median(samples) / self.arms[part].median if samples else None


@dataclass(frozen=True)
class Point:
    dynamic: int
    resident: int
    alone: float  # medians, ms
    together: float | None
    wait_us: float | None


@dataclass(frozen=True)
class Curve:
    kernel: str
    communication: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Held:
    """A kernel of one wave beside blocks of communication that are there first and outlast it; ms."""

    blocks: int
    whole: tuple[float, ...]


@dataclass(frozen=True)
class Run:
    rule: str | None  # of the simulated GPU
    cells: tuple[Cell, ...]
    curves: tuple[Curve, ...] = ()
    held: tuple[Held, ...] = ()

    @property
    def primary(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.primary]

    def arms(self) -> list[str]:
        """In the order of the file."""
        return list(dict.fromkeys(arm for cell in self.cells for arm in cell.arms))


@dataclass(frozen=True)
class Suite:
    set: str
    machine: Mapping[str, Any]
    runs: tuple[Run, ...]
    kernels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@functools.cache
def read(root: Path, name: str) -> Suite:
    """Raises SystemExit if nobody has measured it."""
    path = root / FOLDER / f"{name}.json"
    if not path.exists():
        raise SystemExit(
            f"answers: {path.relative_to(root)} is missing: tools/gpu/overlap/README.md says how to measure it"
        )
    return parse(path)


def parse(path: Path) -> Suite:
    again = f"measure it again, or read what tools/answers/suite.py takes (format version {VERSION})"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["version"] != VERSION:
            raise OverlapError(f"{path.name}: format version {found['version']}", again)
        runs = tuple(_run(one) for one in found["runs"])
        suite = Suite(found["set"], found["machine"], runs, found.get("kernels", {}))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OverlapError(f"{path.name}: {type(error).__name__}: {error}", again) from None
    if suite.set != path.stem:
        raise OverlapError(f"{path.name}: it says that it is {suite.set}", "give the file that name")
    if bool(suite.machine.get("simulated")) != (suite.set == SIMULATED):
        words = "measured, in a file of simulated times", "simulated, in a file of measured times"
        raise OverlapError(f"{path.name}: {words[bool(suite.machine.get('simulated'))]}", "put it where it belongs")
    for run in suite.runs:
        names = [cell.name for cell in run.cells]
        if not names or len(set(names)) < len(names):
            raise OverlapError(f"{path.name}: no cells, or two of one name", again)
    return suite


def _run(one: Mapping[str, Any]) -> Run:
    cells, curves = tuple(map(_cell, one["cells"])), tuple(map(_curve, one.get("curves", ())))
    return Run(one.get("rule"), cells, curves, tuple(_held(one.get("quantisation", ()))))


def _held(rows: Sequence[Mapping[str, Any]]) -> Iterator[Held]:
    for row in rows:
        if not row["sm_target"]:
            yield Held(row["blocks"], _numbers(row["computation_ms"]))


def _cell(one: Mapping[str, Any]) -> Cell:
    arms = {name: _arm(one["cell"], name, found) for name, found in one["arms"].items()}
    name, *parts = (str(one[key]) for key in ("cell", "computation", "communication", "pattern"))
    return Cell(name, parts[0], parts[1], parts[2], float(one["ratio"]), bool(one["primary"]), arms)


def _arm(cell: str, name: str, one: Mapping[str, Any]) -> Arm:
    columns = ("ms", "computation_ms", "communication_ms", "wait_us")
    lists = [_numbers(one.get(column)) for column in columns]
    if not lists[0] or min(lists[0]) <= 0:
        raise ValueError(f"{cell}, {name}: times are missing or not above 0")
    return Arm(*lists)


def _numbers(values: Iterable[Any] | None) -> tuple[float, ...]:
    return tuple(float(value) for value in values or () if value is not None)


def _curve(one: Mapping[str, Any]) -> Curve:
    points = sorted((_point(point) for point in one["points"]), key=lambda point: point.dynamic)
    return Curve(one["kernel"], one["communication"], tuple(points))


def _point(one: Mapping[str, Any]) -> Point:
    together, wait = (_median(_numbers(one.get(key))) for key in ("together_ms", "wait_us"))
    return Point(int(one["dynamic"]), int(one["resident"]), statistics.median(one["alone_ms"]), together, wait)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
