"""Screens of overlap explain, printed."""

from __future__ import annotations

from collections.abc import Iterable

from pyshim.cli import ui
from pyshim.explain.screen import Line, Part, Table

_LABEL = 12  # columns


def show(parts: Iterable[Part]) -> None:
    """Print the parts of a screen, fitted to its width."""
    for part in parts:
        if isinstance(part, Table):
            ui.table(part.heads, part.rows, part.left, part.above)
        elif isinstance(part, Line):
            ui.show(ui.printable(part.text))
        elif part.label:
            ui.paragraph(part.text, " " * _LABEL, f"{part.label:<{_LABEL}}")
        else:
            ui.paragraph(part.text)
