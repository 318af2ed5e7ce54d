"""Print the help of a command, or explain a reason in reports or a key of policy files."""

from __future__ import annotations

import argparse

from pyshim.errors import USAGE, OverlapError

EPILOG = """\
topics:
  COMMAND         as `overlap COMMAND --help`
  WORD            a reason, a key (by its last part, too),
                  or another word of reports
  reasons [NAME]  why launches were left alone
  keys [KEY]      the keys of policy files
  words [WORD]    other words of reports

examples:
  overlap help report
  overlap help no_room_registers
  overlap help share
  overlap help raised stream
  overlap help keys communication.kernels"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("help", help="about a command, reasons, keys", description=__doc__, epilog=EPILOG)
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="see below")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim import cli

    topic, *more = options.topic or ["overlap"]
    tables = {"reasons": _reasons, "keys": _keys, "words": _words}
    if topic in tables:
        _about(topic, tables[topic](), more)
    elif topic in ("overlap", "overlap-run"):
        return cli.run_help([] if topic == "overlap" else ["run"])
    elif topic in ("run", *cli.COMMANDS):
        return cli.run_help(options.topic)
    else:
        _of_word(" ".join(options.topic), ["run", *cli.COMMANDS, *tables])
    return 0


def _of_word(word: str, topics: list[str]) -> None:
    """Whatever is called so: a reason, keys with that last part, other words on the screen."""
    from pyshim.policy.finding import did_you_mean

    reasons, keys, words = _reasons(), _keys(), _words()
    found = {f"reason {name}": text for name, text in reasons.items() if name == word}
    found.update((f"key {path}", text) for path, text in keys.items() if word in (path, path.rpartition(".")[2]))
    exact = {name: text for name, text in words.items() if name == word}
    found.update(exact or {name: text for name, text in words.items() if word in _parts(name)})
    if not found:
        names = [*topics, *reasons, *keys, *(path.rpartition(".")[2] for path in keys), *words]
        hint = did_you_mean(word, names) or f"topics: WORD, {', '.join(topics)}"
        raise OverlapError(f"there is no help about {word!r}", hint, USAGE)
    _show(found)


def _parts(name: str) -> set[str]:
    """Return the words of a name, as they are and without the ending of raised and shaped."""
    parts = name.replace(",", "").split()
    return {*parts, *(part[:-1] for part in parts if part.endswith("ed"))}


def _about(topic: str, sentences: dict[str, str], names: list[str]) -> None:
    from pyshim.policy.finding import did_you_mean

    for name in names:
        if name not in sentences:
            hint = did_you_mean(name, sentences) or f"overlap help {topic} lists all"
            raise OverlapError(f"{name!r} is none of the {topic}", hint, USAGE)
    _show({name: sentences[name] for name in names or sentences})


def _show(shown: dict[str, str]) -> None:
    from pyshim.cli import ui

    width = min(24, max(map(len, shown)))
    for name, sentence in shown.items():
        head = f"{name:<{width}}  "
        if len(name) > width:
            ui.show(name)
            head = " " * (width + 2)
        ui.paragraph(sentence, " " * (width + 2), head)


def _reasons() -> dict[str, str]:
    from pyshim.stats.page import sentences

    return sentences()


def _words() -> dict[str, str]:
    from pyshim.cli.words import WORDS

    return {word: f"{meaning[0].upper()}{meaning[1:]}." for word, meaning in WORDS.items()}


def _keys() -> dict[str, str]:
    from pyshim.policy.model import KEYS

    return {
        key.path: f"{key.sentence} {key.type[0].upper()}{key.type[1:]}. Default: {key.default}. Example: {key.example}"
        for key in KEYS
    }
