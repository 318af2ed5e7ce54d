"""Numbers as people read them."""

from __future__ import annotations

_UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))


def unit(us: float) -> tuple[str, float]:
    """Return the largest unit of time in which this is at least one, and its microseconds."""
    return next(((name, size) for name, size in _UNITS if abs(us) >= size), _UNITS[-1])


def time(us: float) -> str:
    """Three digits and the unit that suits: 2.09 ms."""
    name, size = unit(us)
    return f"{us / size:.3g} {name}" if abs(us / size) < 1000 else f"{us / size:,.0f} {name}"


def change(value: float) -> str:
    """With its sign, and none before what rounds to nothing."""
    return f"{round(value, 1) + 0.0:+.1f}"
