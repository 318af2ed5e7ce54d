"""What goes wrong, as values: a sentence, a next step and an exit status."""

from __future__ import annotations

FINDINGS = 1
USAGE = 2
LAUNCHER_FAILED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127


class OverlapError(Exception):
    """One sentence for the user, with an optional next step; `status` is the exit status of the command."""

    def __init__(self, sentence: str, hint: str | None = None, status: int = FINDINGS) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.status = status


def printable(text: str) -> str:
    """Return one line that cannot move a terminal's cursor, whatever a program or a file is called."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text)
