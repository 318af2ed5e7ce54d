"""The command lines of docs/how-to/deploy.md for containers, for other places than theirs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
TEXT = PAGE.partition("\n## Containers\n")[2].partition("\n## ")[0]


def block(word: str) -> str:
    """The one indented block of which a line begins with the word."""
    blocks = re.findall(r"(?:^    .*\n)+", TEXT, re.MULTILINE)
    (found,) = [text for text in blocks if re.search(rf"^    {re.escape(word)}", text, re.MULTILINE)]
    return re.sub(r"^    ", "", found, flags=re.MULTILINE)


def filled_in(text: str, **places: object) -> str:
    """With a word of ours for each that stands for the reader's; it must be there."""
    for name, value in places.items():
        word = {"site": "/opt/overlap", "image": "IMAGE", "program": "python train.py"}[name]
        assert word in text, word
        text = text.replace(word, str(value))
    return text
