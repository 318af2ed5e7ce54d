"""Markdown, as our pages have it: paragraphs of 120 columns, tables, and the head that each answer begins with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

WIDTH = 120


def paragraph(text: str, indent: str = "") -> str:
    """No line begins with a sign of per cent."""
    joined = " ".join(text.split()).replace(" %", "\0%")
    filled = textwrap.fill(joined, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return filled.replace("\0%", " %")


def bullets(texts: Iterable[str]) -> str:
    return "\n".join(paragraph(f"- {text}", "  ") for text in texts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """left: so many columns are words, the others numbers."""
    rule = [":--" if column < left else "--:" for column in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *rows))


def page(title: str, command: str, head: Mapping[str, str | Sequence[str]], parts: Iterable[str]) -> str:
    """head: what every answer begins with, by its word; several texts are a paragraph and a list."""
    made = f"<!-- Made by `.venv/bin/python tools/answers --write {command}`; compared in CI. Do not edit. -->"
    said = {word: [text] if isinstance(text, str) else list(text) for word, text in head.items()}
    first = [
        part for word, texts in said.items() for part in (paragraph(f"**{word}.** {texts[0]}"), bullets(texts[1:]))
    ]
    first = [part for part in first if part]
    return "\n\n".join([f"# {title}", made, *first, *parts]) + "\n"


def holds(condition: bool, sentence: str) -> str:
    """A sentence that is only written while the numbers say it."""
    if not condition:
        raise SystemExit(f"answers: the numbers no longer say: {sentence}")
    return sentence


def percent(value: float) -> str:
    return f"{value:+.1f} %" if abs(value) >= 0.05 else "0.0 %"


def listed(words: Sequence[str]) -> str:
    """a, b and c; the empty string for none."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
