"""How far the estimate of what raising saves has been off, where both were measured.

docs/data/estimates.csv has a row for each program: what is expected from a trace of its bare run (`about`; `at most`:
with the name of the GPU taken out), and what raising then gained. A test compares these constants with it, and what is
expected with the traces that are in the repository, some of which are excerpts: of these the constants are not.
"""

from __future__ import annotations

from typing import NamedTuple


class Errors(NamedTuple):
    """Of traces for which something was expected: points of the time of a step, positive where it was too much."""

    programs: int  # on one kind of GPU: a trace each
    least: float
    most: float
    bounds: int  # traces that were read as if no GPU were named: the estimate is a bound
    bounds_most: float  # by how much the bound was above what came
    nothing: int  # traces for which next to nothing was expected
    missed: int  # of these, those whose programs gained 3 % and more


ERRORS = Errors(programs=8, least=-5.3, most=3.2, bounds=5, bounds_most=21.8, nothing=17, missed=4)


def words(at_most: bool) -> str:
    """Return what is known about the error, to go behind an estimate. at_most: behind a bound."""
    if at_most:
        points = f"{ERRORS.bounds_most:.0f} points"
        return f"how long blocks in front take is not known; such bounds were up to {points} too high"
    return f"estimates of {ERRORS.programs} traces were off by {ERRORS.least:+.0f} to {ERRORS.most:+.0f} points"
