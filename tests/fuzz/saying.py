"""The command line, called in this process, and what its answers must never hold, whatever a file says."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser
from typing import NamedTuple

from tests.in_process import overlap

_LOADING = {"a", "audio", "base", "embed", "form", "frame", "iframe", "image", "img", "link", "object", "script"}
_LOADING |= {"video"}
_ACTING = ("on", "src", "href", "xlink", "action", "formaction", "background", "srcset")


class Said(NamedTuple):
    status: int
    out: str
    err: str


def ask(*arguments: str) -> Said:
    """Raises AssertionError for a traceback, for characters that a terminal obeys, and for JSON that is none."""
    done = overlap(arguments)
    said = Said(done.returncode, done.stdout, done.stderr)
    assert said.status in (0, 1, 2) and "Traceback" not in said.err, f"{arguments}: {said.status}\n{said.err[-5000:]}"
    assert not unprintable(said.err), f"{arguments}: {unprintable(said.err)}: {said.err[-2000:]!r}"
    assert not unprintable(said.out), f"{arguments}: {unprintable(said.out)}: {said.out[-2000:]!r}"
    if said.out and "--json" in arguments:
        for text in said.out.splitlines() if "--launches" in arguments else [said.out]:
            json.loads(text, parse_constant=_no_number)
    return said


def _no_number(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def unprintable(text: str) -> str:
    """The first characters that would move a cursor, start an escape sequence or turn letters around."""
    bad = {character for character in set(text) if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return ascii("".join(sorted(bad - {"\n"})[:8])) if bad - {"\n"} else ""


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.once = {"style": 0, "html": 0, "body": 0}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in _LOADING, f"<{tag}> {attrs}"
        if tag in self.once:
            self.once[tag] += 1
        for name, value in attrs:
            assert not name.startswith(_ACTING), f"<{tag} {name}={value!r}>"


def check_html(text: str) -> None:
    """Raises AssertionError for an element or an attribute that loads or does something."""
    elements = _Elements()
    elements.feed(text)
    elements.close()
    assert set(elements.once.values()) == {1}, elements.once
    assert not unprintable(text), unprintable(text)
