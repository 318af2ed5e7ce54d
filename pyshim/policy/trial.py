"""The key `trial`: other policies that take turns with this one in a running program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

import yaml

from pyshim.policy.finding import quote
from pyshim.policy.key import REQUIRED, Key, Kind, Schema, key, made, mapping, shown
from pyshim.policy.kinds import Number, one_or_more, single
from pyshim.policy.parts import Arm, PartsReader, items
from pyshim.policy.values import Bad

MOST = 5  # arms beside the policy itself: what a page has room for
_WORTH = 5000
_PER_CENT = 10_000  # parts per million
_SHARE = re.compile(r"(?=.*[1-9])(50(\.0{1,4})?|[1-4]?[0-9](\.[0-9]{1,4})?)%")


class Arms(Kind["tuple[Arm, ...]"]):
    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> tuple[Arm, ...] | None:
        if len(items(node)) > MOST:
            reader.note(items(node)[MOST], "too-large", f"a trial has at most {MOST} arms", "leave some of them out")
            return None
        return cast("tuple[Arm, ...] | None", reader.values(node, f"`{key.name}`", reader.arm))  # None: not good

    def form(self) -> Schema:
        return one_or_more(single(), MOST)

    def shown(self, value: tuple[Arm, ...]) -> list[str]:
        return [arm.file for arm in value]


class Worth(Number):
    """In parts per million."""

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> int | None:
        return reader.value(node, f"`{key.name}`", _share)

    def form(self) -> Schema:
        return {"type": "string", "pattern": f"^{_SHARE.pattern}$"}

    def shown(self, value: int) -> str:
        return f"{value / _PER_CENT:g}%"


@dataclass(frozen=True)
class Trial:
    # fmt: off
    arms: tuple[Arm, ...] = key((), "trial.arms", Arms(), f"a name or a path, or a list of up to {MOST}", REQUIRED,
        "Policies that take turns with this one, found as `extends` finds one. The fastest is kept to the end of the"
        " process, or this one if none is surely faster.", "[critical-streams, raised-communication]")
    worth: int = key(_WORTH, "trial.worth", Worth(), "a percentage, above 0% and at most 50%", "0.5%",
        "The smallest gain for which an arm is kept.", "0.5%")
    # fmt: on


class TrialKind(Kind["Trial | None"]):
    holder = Trial

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Trial | None:
        found = mapping(reader, node, "`trial`", Trial, key.path)
        return made(Trial, found[1]) if found and "arms" in found[1] else None

    def shown(self, value: Trial | None) -> object:
        return value and shown(value, "trial")


def _share(text: str) -> int:
    """Parse a percentage as parts per million."""
    if not _SHARE.fullmatch(text):
        raise Bad("percent", f"{quote(text)} is not a percentage above 0% and up to 50%", "write 0.5%, 2% or 0.25%")
    return round(float(text[:-1]) * _PER_CENT)
