"""A hook of mkdocs.yml: make what GitHub shows of docs/ fit for a site.

A link that leaves docs/ becomes the path of the file in the repository, because the site holds docs/ alone. The words
behind the language of a code block are for tests/docs; mkdocs does not take them for a block.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^```(\w+) .*$", re.MULTILINE)


def inside(markdown: str, page: str) -> str:
    """page: its path below docs/. Raises FileNotFoundError for a link to no file of the repository."""

    def replaced(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link[2]))
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"docs/{page}: {link[2]}")
        return f"`{path}`" if link[1].strip("`") in (path, posixpath.basename(path)) else f"{link[1]} (`{path}`)"

    return _FENCE.sub(r"```\1", _LINK.sub(replaced, markdown))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return inside(markdown, page.file.src_uri)
