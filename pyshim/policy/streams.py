"""The key `streams`: which streams are raised."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.key import REQUIRED, Key, Schema, key, mapping, shown
from pyshim.policy.kinds import Number, Percent, words_form
from pyshim.policy.parts import PartsReader
from pyshim.policy.values import Bad

OFF, AUTO = 0, 50  # per cent of the device's computation that a raised stream has at most
WORDS = ("auto", "off")
_PATH = "streams.raise"
_FORMS = f"write auto, off or a share of the computation: {{share: {AUTO}%}}"
# What is written elsewhere for a thing that is on or off.
_MEANT = {"on": "auto", "yes": "auto", "true": "auto", "highest": "auto", "all": "auto"}
_MEANT |= dict.fromkeys(("no", "false", "none", "never", "inherit"), "off")


@dataclass(frozen=True)
class Raise:
    # fmt: off
    share: int = key(AUTO, f"{_PATH}.share", Percent(), "a percentage", REQUIRED,
        "A stream that carries more of the device's computation is not raised.", f"{AUTO}%")
    # fmt: on


class RaiseKind(Number):
    """The largest share in per cent; OFF: no stream is raised."""

    holder = Raise

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> int | None:
        if isinstance(node, yaml.SequenceNode):
            reader.note(node, "type", "`raise` must be auto, off or a mapping, not a list", _FORMS)
            return None
        if not isinstance(node, yaml.MappingNode):
            word = reader.value(node, "`raise`", _word)
            return None if word is None else AUTO if word == "auto" else OFF
        found = mapping(reader, node, "`raise`", Raise, key.path)
        share = found[1].get("share") if found else None
        return share if isinstance(share, int) else None

    def form(self) -> Schema:
        return words_form(WORDS)

    def shown(self, value: int) -> object:
        return {AUTO: "auto", OFF: "off"}.get(value) or shown(Raise(value), _PATH)


def _word(text: str) -> str:
    if text in WORDS:
        return text
    meant = _MEANT.get(text.casefold()) or (f"{{share: {text}}}" if text.endswith("%") else "")
    hint = f"did you mean `{meant}`?" if meant else did_you_mean(text, WORDS) or _FORMS
    raise Bad("value", f"{quote(text)} is not auto, off or a mapping", hint)
