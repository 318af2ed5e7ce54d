"""Samples of an arm of a trial, as sums: struct overlap_samples. The start of a program needs them without cffi."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

_ROUNDING = 1e-9
_LARGEST = 1 << 32  # samples


class Change(NamedTuple):
    """The change of time against the reference, in per cent, with its 95 % interval."""

    percent: float
    low: float
    high: float


@dataclass(frozen=True)
class Samples:
    """Of 2 (a - r) / (a + r), where a and r are the times of an arm and of the reference in one round."""

    count: int = 0
    sum: float = 0.0
    squares: float = 0.0

    @property
    def are_possible(self) -> bool:
        """Whether some values have these sums."""
        if not (0 <= self.count < _LARGEST and math.isfinite(self.sum) and math.isfinite(self.squares)):
            return False
        most = self.count * (1 + _ROUNDING)
        return (
            abs(self.sum) <= 2 * most
            and 0 <= self.squares <= 4 * most
            and self.sum**2 <= most * self.squares * (1 + _ROUNDING) + _ROUNDING
        )

    def plus(self, other: Samples, sign: int = 1) -> Samples:
        """Return both together; sign -1: these without the others, or none where those are not among them."""
        squares = max(0.0, self.squares + sign * other.squares)
        made = Samples(self.count + sign * other.count, self.sum + sign * other.sum, squares)
        return made if made.are_possible else Samples()

    def at_most(self, count: int) -> Samples:
        """Return as many samples with the same mean and variance, or these where they are fewer."""
        share = count / max(self.count, count)
        return Samples(min(self.count, count), self.sum * share, self.squares * share)

    def change(self) -> Change | None:
        """Return the change of time, by Student's t; None of fewer than two samples, or where it could be any."""
        if self.count < 2:
            return None
        from pyshim.intervals import quantile

        mean = self.sum / self.count
        variance = max(0.0, self.squares - self.count * mean**2) / (self.count - 1)
        reach = quantile(self.count - 1) * math.sqrt(variance / self.count)
        if abs(mean) + reach >= 2:
            return None
        return Change(_percent(mean), _percent(mean - reach), _percent(mean + reach))


def _percent(sample: float) -> float:
    """Return the change of time that a sample stands for: of -2 and 2 all of it, and an infinite one."""
    return 100 * ((2 + sample) / (2 - sample) - 1)
