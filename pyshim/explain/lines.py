"""Many requests: lines of JSON in, one line of JSON out for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyshim.errors import OverlapError
from pyshim.explain.answer import Explainer
from pyshim.explain.beside import usual
from pyshim.explain.request import Mistake, read

LONGEST = 1 << 20  # bytes of a line

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Lines:
    """Takes bytes as they come, cut anywhere, and gives the answers to all lines that are complete."""

    def __init__(self, explainer: Explainer) -> None:
        self._explainer = explainer
        self._rest = b""
        self._skipping = False  # inside a line that is too long, and answered

    def feed(self, data: bytes) -> list[str]:
        """The answers, without line feeds."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        found = list(self._answers(lines))
        if len(self._rest) > LONGEST:
            if not self._skipping:
                found.append(_error(f"a line is longer than {LONGEST:,} bytes"))
            self._rest, self._skipping = b"", True
        return found

    def end(self) -> list[str]:
        """The answer to a last line without a line feed."""
        return list(self._answers([self._rest])) if self._rest else []

    def _answers(self, lines: list[bytes]) -> Iterator[str]:
        for line in lines:
            if self._skipping:
                self._skipping = False
            else:
                yield self.answer(line)

    def answer(self, line: bytes) -> str:
        """Of one request; {"error": ...} where it is none."""
        try:
            request: Any = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            return _error(f"this is no JSON: {error}" if line.strip() else "the line is empty")
        if type(request) is not dict:
            return _error("a request is an object: {...}")
        try:
            return _encode(_answer(request, self._explainer))
        except Mistake as mistake:
            return _error(mistake.spoken(str), mistake.hint)
        except OverlapError as error:
            return _error(error.sentence, error.hint)
        except ValueError as error:  # names that no file can have
            return _error(f"the request cannot be answered: {error}")


def _answer(request: dict[str, object], explainer: Explainer) -> dict[str, object]:
    """Communication is the usual one where nothing is said of it, as it is behind options."""
    values = read(request)
    beside = usual(values, explainer)
    found = explainer.look(values)
    return {**found, "beside": beside} if beside else found


def _error(sentence: str, hint: str | None = None) -> str:
    return _encode({"error": sentence, "help": hint} if hint else {"error": sentence})
