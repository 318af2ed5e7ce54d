"""The key `critical`: which streams are raised because something waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import yaml

from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.key import Key, Kind, Packed, Schema, key, made, mapping, packed, shown
from pyshim.policy.kinds import Flag, Percent, words_form
from pyshim.policy.nodes import has_error
from pyshim.policy.parts import PartsReader
from pyshim.policy.values import Bad
from pyshim.policy.words import CRITICAL_KINDS, CRITICALS, YES_NO, either

_FORMS = "write auto, off, or a mapping: {host_waits: false, share: 10%}"
# What is written elsewhere for a thing that is on or off.
_MEANT = {"on": "auto", "yes": "auto", "true": "auto", "no": "off", "false": "off", "none": "off"}
# Per cent: a stream that has more may lose by being raised.
_SHARE = 25


@dataclass(frozen=True)
class Critical:
    """Whose streams are raised; share: per cent of the device's computation that such a stream has at most."""

    # fmt: off
    communication: bool = key(False, "critical.communication", Flag("critical", "communication"), either(YES_NO),
        "true", "Streams on which communication runs.", "true", "critical")
    host_waits: bool = key(False, "critical.host_waits", Flag("critical", "host_waits"), either(YES_NO), "true",
        "Streams that the host waits for while other streams have work that is not known to be finished.", "true",
        "critical")
    feeding: bool = key(False, "critical.feeding", Flag("critical", "feeding"), either(YES_NO), "true",
        "Streams whose events a critical stream waits for.", "true", "critical")
    share: int = key(0, "critical.share", Percent(), "a percentage", f"{_SHARE}%",
        "A stream with more than this share of the device's computation between two waits is left as it is.",
        f"{_SHARE}%", "critical_share")
    # fmt: on


OFF, ALL = Critical(), Critical(communication=True, host_waits=True, feeding=True, share=_SHARE)


class CriticalKind(Kind[Critical]):
    holder = Critical
    # Neither of the first two kinds leaves nothing for the third.
    together: ClassVar[Schema] = {
        "not": {
            "properties": {kind: {"enum": [False, YES_NO[1]]} for kind in CRITICAL_KINDS[:2]},
            "required": list(CRITICAL_KINDS[:2]),
        }
    }

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Critical | None:
        if isinstance(node, yaml.SequenceNode):
            reader.note(node, "type", "`critical` must be auto, off or a mapping, not a list", _FORMS)
            return None
        if not isinstance(node, yaml.MappingNode):
            word = reader.value(node, "`critical`", _word)
            return None if word is None else ALL if word == "auto" else OFF
        before = len(reader.findings)
        found = mapping(reader, node, "`critical`", Critical, key.path)
        if found is None:
            return None
        nodes, said = found
        value = made(Critical, {**vars(ALL), **said})
        if not (value.communication or value.host_waits) and nodes.clean and not has_error(reader.findings[before:]):
            sentence = "`critical` leaves no stream to raise: `feeding` is for streams that a critical one waits for"
            reader.note(node.value[0][0], "nothing-critical", sentence, "write `critical: off`")
            return None
        return value

    def form(self) -> Schema:
        return words_form(CRITICALS)

    def shown(self, value: Critical) -> object:
        if value in (ALL, OFF):
            return "auto" if value == ALL else "off"
        return shown(value, "critical")

    def packed(self, value: Critical, name: str) -> dict[str, Packed]:
        return packed(value)


def _word(text: str) -> str:
    if text in CRITICALS:
        return text
    meant = _MEANT.get(text.casefold())
    hint = f"did you mean `{meant}`?" if meant else did_you_mean(text, CRITICALS) or _FORMS
    raise Bad("value", f"{quote(text)} is not auto, off or a mapping", hint)
