"""argparse as we want it: errors are ours, and help fits the screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pyshim.errors import USAGE, OverlapError

_SAME = {"--simulate": "--gpu", "--gpu": "--simulate"}  # as commands call it
_OPTIONS = 24  # column in which what options mean begins, at most


class Parser(argparse.ArgumentParser):
    """status: the exit status of a usage error. removed: options and values that there were: what to do instead."""

    def __init__(self, *arguments: Any, status: int = USAGE, **keywords: Any) -> None:
        keywords.setdefault("allow_abbrev", False)
        keywords.setdefault("formatter_class", Help)
        super().__init__(*arguments, **keywords)
        self.status = status
        self.removed: Mapping[str, str] = {}
        self._optionals.title = "options"  # Python 3.9 has two words for it

    def error(self, message: str) -> NoReturn:
        raise OverlapError(message, f"{self.prog} --help", self.status)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, and name the one that may have been meant."""
        if action.choices is None or value in action.choices:
            return
        from pyshim.policy.finding import closest

        choices = [str(choice) for choice in action.choices]
        close = closest(str(value), choices)
        hint = f"did you mean {close}?" if close else f"one of: {', '.join(choices)}"
        what = action.option_strings[-1] if action.option_strings else self.prog
        sentence = (
            f"{what} knows no {value!r}" if action.option_strings else f"no command of {what} is called {value!r}"
        )
        raise OverlapError(sentence, hint, self.status)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        try:
            options, unknown = self.parse_known_args(args, namespace)
        except OverlapError:
            self._refuse_removed(args or ())
            raise
        self._refuse_unknown(unknown, args or ())
        return options

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = self.parse_known_intermixed_args(args, namespace)
        self._refuse_unknown(unknown, args or ())
        return options

    def _refuse_unknown(self, unknown: Sequence[str], arguments: Sequence[str]) -> None:
        """Raise OverlapError if there are words that the parser does not know."""
        if unknown:
            self._refuse_removed(unknown[:1], arguments)
            sentence = f"unrecognized arguments: {' '.join(unknown)}"
            raise OverlapError(sentence, _of_command(self, arguments).hint(unknown[0]), self.status)

    def _refuse_removed(self, words: Sequence[str], arguments: Sequence[str] | None = None) -> None:
        """Raise OverlapError if one of these words is an option that the command of the arguments had once."""
        instead = _of_command(self, words if arguments is None else arguments).removed
        for word, behind in zip(words, [*words[1:], ""]):
            for name in (word.partition("=")[0].replace("_", "-"), word.replace("=", " ", 1), f"{word} {behind}"):
                if name in instead:
                    raise OverlapError(f"{name} was removed", instead[name], self.status)

    def hint(self, word: str) -> str:
        """Return the option that may have been meant, or where the options are listed."""
        from difflib import get_close_matches

        name = word.partition("=")[0].replace("_", "-")
        known = [option for action in self._actions for option in action.option_strings]
        close = get_close_matches(name, known, n=1, cutoff=0.8) if name.startswith("--") else []
        close = close or [other for other in (_SAME.get(name),) if other in known]
        return f"did you mean {close[0]}?" if close else f"{self.prog} --help"

    def _print_message(self, message: str, file: Any = None) -> None:
        from pyshim.cli import ui

        # A stdout that is closed is None here.
        (ui.diagnose if file is sys.stderr and file is not None else ui.answer)(message.rstrip("\n"))


class Help(argparse.HelpFormatter):
    """Prose is broken to the width of the screen; paragraphs in which a line is indented stay as they are written."""

    def __init__(self, prog: str, options: int = _OPTIONS) -> None:
        from pyshim.cli import ui

        super().__init__(prog, max_help_position=options, width=ui.width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from pyshim.cli import ui

        filled = []
        for paragraph in text.strip("\n").split("\n\n"):
            lines = paragraph.split("\n")
            is_prose = not any(line.startswith(" ") for line in lines)
            filled.append("\n".join(ui.wrapped(" ".join(lines), width, indent) if is_prose else lines))
        return "\n\n".join(filled)


def _of_command(parser: Parser, arguments: Sequence[str]) -> Parser:
    """Return the parser of the subcommand that the arguments name."""
    for word in arguments:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                parser = action.choices[word]
    return parser
