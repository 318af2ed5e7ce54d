"""The key `critical`: which streams are raised because something waits for them."""

from __future__ import annotations

from functools import partial

import yaml

from pyshim.enums import CRITICAL_KINDS
from pyshim.policy import values
from pyshim.policy.describe import CRITICALS, YES_NO
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.model import ALL, OFF, Critical
from pyshim.policy.nodes import Keys, has_error
from pyshim.policy.parts import PartsReader
from pyshim.policy.values import Bad

KEYS = Keys.of("critical")
_FORMS = "write auto, off, or a mapping: {host_waits: false, share: 10%}"
# What is written elsewhere for a thing that is on or off.
_MEANT = {"on": "auto", "yes": "auto", "true": "auto", "no": "off", "false": "off", "none": "off"}


class CriticalReader(PartsReader):
    def critical(self, node: yaml.Node) -> Critical | None:
        if isinstance(node, yaml.SequenceNode):
            self.note(node, "type", "`critical` must be auto, off or a mapping, not a list", _FORMS)
            return None
        if not isinstance(node, yaml.MappingNode):
            word = self.value(node, "`critical`", _word)
            return None if word is None else ALL if word == "auto" else OFF
        keys = self.mapping(node, "`critical`", KEYS)
        if keys is None:
            return None
        before = len(self.findings)
        kinds = {kind: self.optional(keys, kind, partial(self._yes, kind), "true") == "true" for kind in CRITICAL_KINDS}
        share = self.optional(keys, "share", lambda item: self.value(item, "`share`", values.percent), ALL.share)
        if not (kinds["communication"] or kinds["host_waits"]) and keys.clean and not has_error(self.findings[before:]):
            sentence = "`critical` leaves no stream to raise: `feeding` is for streams that a critical one waits for"
            self.note(node.value[0][0], "nothing-critical", sentence, "write `critical: off`")
            return None
        return Critical(**kinds, share=share)

    def _yes(self, key: str, node: yaml.Node) -> str | None:
        return self.word(node, key, YES_NO, "true or false")


def _word(text: str) -> str:
    if text in CRITICALS:
        return text
    meant = _MEANT.get(text.casefold())
    hint = f"did you mean `{meant}`?" if meant else did_you_mean(text, CRITICALS) or _FORMS
    raise Bad("value", f"{quote(text)} is not auto, off or a mapping", hint)
