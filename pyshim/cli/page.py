"""--html FILE: what the commands that make pages share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import ModuleType


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write a self-contained HTML report")
    parser.add_argument("--force", action="store_true", help="with --html: replace an existing file")


def check(options: argparse.Namespace) -> None:
    """Before anything is read: raises OverlapError where the page could not be put."""
    from pyshim.errors import USAGE, OverlapError
    from pyshim.html import save

    if options.html == save.STDOUT and options.json:
        raise OverlapError("--html - and --json: both go to stdout", "name a file for the page", USAGE)
    if options.html not in (None, save.STDOUT):
        save.check(options.html, options.force)
    elif options.force and not options.output:
        raise OverlapError("--force needs --html FILE, or --output FILE", None, USAGE)


def of(options: argparse.Namespace, make: Callable[[ModuleType], str]) -> str:
    """Return the page that make(pyshim.html) returns, or "" without --html: only a page needs that import."""
    if not options.html:
        return ""
    from pyshim import html

    return make(html)


def put(text: str, warnings: int, options: argparse.Namespace) -> None:
    from pyshim.cli import ui
    from pyshim.html import save

    if options.html == save.STDOUT:
        ui.answer(text.rstrip("\n"))
        return
    save.save(options.html, text, options.force)
    also = f", with {warnings:,} {'warning' if warnings == 1 else 'warnings'}" if warnings else ""
    ui.note(f"the page is {options.html}{also}: open it in a browser")
