"""Print the help of a command, or explain a reason in reports or a key of policy files."""

from __future__ import annotations

import argparse

from pyshim.errors import USAGE, OverlapError

EPILOG = """\
topics:
  COMMAND         as `overlap COMMAND --help`
  reasons [NAME]  why launches were left alone
  keys [KEY]      the keys of policy files

examples:
  overlap help report
  overlap help reasons same_stream
  overlap help keys communication.kernels"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("help", help="about a command, reasons, keys", description=__doc__, epilog=EPILOG)
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="see below")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim import cli

    topic, *more = options.topic or ["overlap"]
    tables = {"reasons": _reasons, "keys": _keys}
    if topic in tables:
        _about(topic, tables[topic](), more)
    elif topic in ("overlap", "overlap-run"):
        return cli.run_help([] if topic == "overlap" else ["run"])
    elif topic in ("run", *cli.COMMANDS):
        return cli.run_help(options.topic)
    else:
        from pyshim.policy.finding import did_you_mean

        known = ["run", *cli.COMMANDS, *tables]
        hint = did_you_mean(topic, known) or f"topics: {', '.join(known)}"
        raise OverlapError(f"there is no help about {topic!r}", hint, USAGE)
    return 0


def _about(topic: str, sentences: dict[str, str], names: list[str]) -> None:
    from pyshim.cli import ui
    from pyshim.policy.finding import did_you_mean

    for name in names:
        if name not in sentences:
            hint = did_you_mean(name, sentences) or f"overlap help {topic} lists all"
            raise OverlapError(f"{name!r} is none of the {topic}", hint, USAGE)
    shown = {name: sentences[name] for name in names or sentences}
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


def _keys() -> dict[str, str]:
    from pyshim.policy.describe import KEYS

    return {
        key.path: f"{key.sentence} {key.type[0].upper()}{key.type[1:]}. Default: {key.default}. Example: {key.example}"
        for key in KEYS
    }
