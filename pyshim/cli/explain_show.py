"""Screens of overlap explain, printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyshim.cli import ui
from pyshim.explain.screen import Line, Part, Table
from pyshim.html import save

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


def is_ascii() -> bool:
    """Whether stdout takes no blocks to draw with."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return not encoding.startswith("utf")


def write(path: str, force: bool, text: str) -> None:
    """Write a picture to a file, or to stdout for `-`. Raise OverlapError."""
    if path == save.STDOUT:
        ui.answer(text.rstrip("\n"))
        return
    save.save(path, text, force)
    ui.note(f"written to {path}")
