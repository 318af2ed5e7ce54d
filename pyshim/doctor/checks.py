"""The checks: one function each, from the machine to lines. To add one: a function, and its row in CHECKS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyshim.doctor import around, devices, preloaded, reach
from pyshim.doctor.machine import Line, Machine, fail, warn
from pyshim.errors import OverlapError


class Check(NamedTuple):
    name: str
    look: Callable[[Machine], Iterator[Line]]


# In the order in which they are told.
CHECKS: tuple[Check, ...] = (
    Check("library", preloaded.library),
    Check("preloads", preloaded.preloads),
    Check("driver", devices.drivers),
    Check("policy", devices.policy),
    Check("program", reach.program),
    Check("variables", around.variables),
    Check("profilers", around.profilers),
    Check("slurm", around.slurm),
    Check("container", around.container),
)


class Checked(NamedTuple):
    check: Check
    line: Line


def run(machine: Machine) -> list[Checked]:
    """Return the lines of all checks."""
    return [Checked(check, line) for check in CHECKS for line in _look(check, machine)]


def verdict(found: list[Checked]) -> str:
    """Return what stands in the way, or that nothing does."""
    for state, said in (("fail", "in the way: "), ("warn", "nothing is in the way; warning: ")):
        lines = [one.line.sentence for one in found if one.line.state == state]
        if lines:
            return said + lines[0] + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")
    return "nothing is in the way"


def _look(check: Check, machine: Machine) -> Iterator[Line]:
    """Yield the lines of a check; an error inside it is one line, and other checks go on."""
    try:
        yield from check.look(machine)
    except OverlapError as error:
        yield fail(error.sentence, error.hint or "overlap doctor --json says which check this is")
    except Exception as error:
        said = f"{type(error).__name__}: {error}".replace("\n", " ")
        yield warn(f"the check {check.name} made a mistake ({said})", "please report it; the other checks are whole")
