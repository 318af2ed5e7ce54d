"""How far the estimate of what raising saves has been off, where both were measured.

docs/data/estimates.csv has a row for each program: what was expected from a trace of its bare run, and what the default
policy then gained. A test compares these constants with it.
"""

from __future__ import annotations

from typing import NamedTuple


class Errors(NamedTuple):
    """Of programs for which something was expected: points of the time of a step, positive where it was too much."""

    programs: int
    least: float
    most: float
    nothing: int  # programs for which nothing was expected, and which gained nothing


# Of all programs of the table for which more than next to nothing was expected; and those for which nothing was.
ERRORS = Errors(programs=3, least=-3.4, most=5.5, nothing=15)


def words() -> str:
    """Return what is known about the error, to go behind an estimate."""
    return f"estimates of {ERRORS.programs} programs were off by {ERRORS.least:+.0f} to {ERRORS.most:+.0f} points"
