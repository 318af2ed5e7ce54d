"""The frame of every page: its head, its style, its script, and the law that it may load nothing."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from pyshim import __version__
from pyshim.html.tree import Child, Element, element, written

_HERE = Path(__file__).parent


def page(title: str, *body: Child) -> str:
    """A whole document. Whatever its text might make a browser do, the policy in its head forbids: the only script and
    the only style that count are those of this package, by their checksums, and nothing is fetched."""
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    allowed = f"default-src 'none'; style-src {_checksum(style)}; script-src {_checksum(script)}; "
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=allowed + "base-uri 'none'; form-action 'none'"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"overlap-run {__version__}"),
        element("title", title),
        _verbatim("style", style),
    )
    foot = element("footer", f"Made by overlap-run {__version__}. The page is whole: it loads nothing.")
    document = element(
        "html", head, element("body", element("main", *body), foot, _verbatim("script", script)), lang="en"
    )
    return "<!DOCTYPE html>\n" + written(document) + "\n"


def _verbatim(name: str, text: str) -> Element:
    made = element(name)
    made.text = text  # the tree writes out what is in these two as it is
    return made


def _checksum(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
