"""--html FILE: where the page goes, and that it appears whole or not at all."""

from __future__ import annotations

import argparse
import os
import stat

from pyshim.errors import USAGE, OverlapError

STDOUT = "-"


def add_to(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument("--html", metavar="FILE", help="write a self-contained HTML page")
    parser.add_argument("--force", action="store_true", help="with --html: replace an existing file")


def check(options: argparse.Namespace) -> None:
    """Raise OverlapError if the page could not be put where it is to go. Called before anything is read."""
    if options.html == STDOUT and options.json:
        raise OverlapError("--html - and --json: both go to stdout", "name a file for the page", USAGE)
    if options.html not in (None, STDOUT):
        _place(options.html, options.force)
    elif options.force:
        raise OverlapError("--force needs --html FILE", "--html FILE names the page to replace", USAGE)


def put(text: str, options: argparse.Namespace) -> None:
    """Write the page. Raises OverlapError, and leaves an existing file as it is, if that fails."""
    from pyshim.cli import ui
    from pyshim.pages.untrusted import write_whole

    if options.html == STDOUT:
        ui.answer(text.rstrip("\n"))
        return
    real = _place(options.html, options.force)
    try:
        write_whole(real, text.encode(), mode=0o666)
    except OSError as error:
        hint = "name a file in a folder that this user may write to, on a disk with room"
        raise OverlapError(f"{options.html} cannot be written: {error.strerror}", hint, USAGE) from error
    ui.note(f"the page is {options.html}: open it in a browser")


def _place(path: str, force: bool) -> str:
    """Return the path behind symlinks. force: replace a file that exists. Raises OverlapError."""
    from pyshim.start.folder import absolute

    real = os.path.realpath(absolute(path))
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        sentence = f"the folder {folder} of {os.path.basename(real)} does not exist"
        raise OverlapError(sentence, "create it, or name another file", USAGE)
    try:
        is_file = stat.S_ISREG(os.stat(real).st_mode)
    except OSError:
        return real
    if not is_file:
        raise OverlapError(f"{path} is not a regular file", "name a file", USAGE)
    if not force:
        raise OverlapError(f"{path} already exists", "name another file, or replace it: --force", USAGE)
    return real
