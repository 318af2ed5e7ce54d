"""Pages from templates/, and the rule that a page loads nothing. The only module that imports Jinja2."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from pyshim import __version__
from pyshim.html import units

_TEMPLATES = Path(__file__).parent / "templates"
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


def page(template: str, **shown: object) -> str:
    """Return a whole document.

    Its content security policy allows the style and the script of this package, by checksum, and nothing else."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(commas="{:,}".format, percent="{:.1f} %".format, time=units.time, change=units.change)
    style, script = (Markup((_TEMPLATES / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    allowed = f"default-src 'none'; style-src {_checksum(style)}; script-src {_checksum(script)}; "
    allowed = Markup(allowed + "base-uri 'none'; form-action 'none'")
    return environment.get_template(template).render(
        shown, version=__version__, style=style, script=script, allowed=allowed
    )


def _finalize(value: object) -> object:
    """Return what a template puts into the page for a value; escaping comes after it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return _printable(value)
    return value


def _printable(text: str) -> str:
    """Return the text without control characters, lone surrogates and direction marks: programs choose names."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _UNPRINTABLE for character in text)


def _checksum(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
