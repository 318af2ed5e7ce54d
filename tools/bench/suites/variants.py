"""Policies that only the suite has: each published one with overlap windows, to show what windows change."""

from __future__ import annotations

from pyshim.policy import library

PAPER, WINDOWS = "-paper", "-windows"


def with_windows(name: str) -> str | None:
    """Return the name of the policy derived from a shipped one, if the suite has one: h100-paper-windows."""
    return name + WINDOWS if name.endswith(PAPER) else None


def base_of(name: str) -> str | None:
    """Return the shipped policy that a derived one extends; None for any other policy."""
    return name[: -len(WINDOWS)] if name.endswith(PAPER + WINDOWS) and "/" not in name else None


def text(base: str) -> str:
    shipped = library.find(base, {}).read_text(encoding="utf-8")
    return shipped.replace(f"name: {base}\n", f"name: {base}{WINDOWS}\n").replace("    when: always\n", "")
