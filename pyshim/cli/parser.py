"""argparse as we want it: errors are ours, help goes to stderr like everything else that we say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pyshim.errors import USAGE, OverlapError


class Parser(argparse.ArgumentParser):
    """status: the exit status of a usage error."""

    def __init__(self, *arguments: Any, status: int = USAGE, **keywords: Any) -> None:
        keywords.setdefault("allow_abbrev", False)
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **keywords)
        self.status = status
        self._optionals.title = "options"  # Python 3.9 has two words for it

    def error(self, message: str) -> NoReturn:
        raise OverlapError(message, f"{self.prog} --help", self.status)

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(message, file if file is not None and file is not sys.stdout else sys.stderr)


def dashes(arguments: Sequence[str]) -> list[str]:
    """Both spellings of an option's name are taken: --dry_run is --dry-run."""
    return [_dashes(argument) for argument in arguments]


def _dashes(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value
