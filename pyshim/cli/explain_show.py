"""Screens of overlap explain, printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from pyshim.cli import ui
from pyshim.errors import OverlapError
from pyshim.explain.parts import Line, Part, Table

_LABEL = 12  # columns


def show(parts: Iterable[Part]) -> None:
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


def write(path: Path, text: str) -> None:
    """Raises OverlapError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OverlapError(f"{path}: cannot be written: {error.strerror or error}") from None
    ui.note(f"written to {path}")
