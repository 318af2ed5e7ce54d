"""How far the estimate of what raising saves has been off, where both were measured.

docs/data/estimates.csv has a row for each program: what is expected from a trace of its bare run, and what raising then
gained. A test compares these constants with it, and its rows with the traces that are in the repository.
"""

from __future__ import annotations

from typing import NamedTuple


class Errors(NamedTuple):
    """Of programs for which something was expected: points of the time of a step, positive where it was too much."""

    programs: int
    least: float
    most: float
    nothing: int  # programs for which next to nothing was expected
    missed: int  # of these, programs that gained 10 % and more


ERRORS = Errors(programs=8, least=-3.4, most=42.1, nothing=14, missed=3)


def words() -> str:
    """Return what is known about the error, to go behind an estimate."""
    return f"estimates of {ERRORS.programs} programs were off by {ERRORS.least:+.0f} to {ERRORS.most:+.0f} points"
