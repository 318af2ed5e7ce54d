"""No sentence of the README and of docs/ has more than 35 words. Tables, code, headings and comments do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from blocks import ROOT, pages

LIMIT = 35
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
READ = [page for page in pages() if page == "README.md" or page.startswith("docs/")]


def paragraphs(text: str) -> Iterator[str]:
    """Text between blank lines, without tables, code, headings and comments. Each item of a list is a paragraph."""
    found: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        fence = line.startswith("```")
        outside = not line.strip() or fence or fenced or line.startswith(("|", "#", "<!--", "    "))
        if found and (outside or re.match(r"\s*(?:-|\d+\.|>) ", line)):
            yield " ".join(found)
            found = []
        if not outside:
            found.append(line.strip())
        fenced ^= fence


def sentences(text: str) -> Iterator[str]:
    """A link counts as its text, code as one word."""
    for paragraph in paragraphs(text):
        plain = _CODE.sub("code", _LINK.sub(r"\1", paragraph)).lstrip("-> ")
        yield from re.split(r"(?<=[\w)*%'\"][.?!])[)*_]*\s+", plain)


@pytest.mark.parametrize("page", READ)
def test_sentences_are_short(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    long = [sentence for sentence in sentences(text) if len(re.findall(r"\w[^\s]*", sentence)) > LIMIT]
    assert not long, "\n".join(long)


def test_a_long_sentence_is_found_and_a_table_is_not_one() -> None:
    word = "word " * 36
    assert [len(found.split()) for found in sentences(f"One. {word}.\n\n- {word}\n  more\n- two\n")] == [1, 37, 37, 1]
    assert not list(sentences(f"| {word} |\n# {word}\n```text\n{word}\n```\n    {word}\n"))
    assert list(sentences("A [link of words](there.md) and `some code here`.")) == ["A link of words and code."]
