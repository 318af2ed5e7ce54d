"""Numbers as people read them."""

from __future__ import annotations


def time(us: float) -> str:
    """Three digits and the unit that suits: 2.09 ms."""
    size, unit = next(((size, unit) for size, unit in ((1e6, "s"), (1e3, "ms")) if abs(us) >= size), (1.0, "us"))
    return f"{us / size:.3g} {unit}" if abs(us / size) < 1000 else f"{us / size:,.0f} {unit}"


def signed(us: float) -> str:
    return ("+" if us > 0 else "") + time(us)
