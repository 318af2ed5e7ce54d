"""What is asked: options of the command line or the keys of a JSON object, which have the same names and meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyshim.explain import shape
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.values import Bad, size

NEEDED = ("gpu", "threads", "registers")
COMMUNICATION = ("comm_threads", "comm_registers")
_LARGEST = 2**32 - 1  # of a footprint's numbers; whatever is larger cannot be launched, as little as this can
_LARGEST_GRID = 2**64 - 1

# Names as in a JSON object; the options of the command line have `-` for `_`.
_COUNTS = ("threads", "registers", "barriers", "sgprs")
_SIZES = ("static_smem", "dynamic_smem")
COUNTS = (*_COUNTS, *(f"comm_{name}" for name in _COUNTS))
SIZES = (*_SIZES, *(f"comm_{name}" for name in _SIZES))
WORDS = ("gpu", "policy", "kernel", "library")
NAMES = (*COUNTS, *SIZES, *WORDS, "blocks", "shape", "keep_at_least")

_NUMBERS = frozenset((*COUNTS, *SIZES))
_KNOWN = frozenset(NAMES)
_DEFAULTS: dict[str, Any] = {name: 0 for name in (*COUNTS, *SIZES) if name not in (*NEEDED, *COMMUNICATION)}


class Mistake(Exception):
    """What is wrong with a request. name: of the option, or the empty string where it is about none."""

    def __init__(self, name: str, sentence: str, hint: str = "", missing: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.name, self.sentence, self.hint, self.missing = name, sentence, hint, missing

    def spoken(self, spell: Callable[[str], str]) -> str:
        """The sentence. spell: how an option is written."""
        if self.missing:
            return f"{self.sentence}: {', '.join(spell(name) for name in self.missing)}"
        return f"{spell(self.name)}: {self.sentence}" if self.name else self.sentence


def read(request: Mapping[str, object]) -> dict[str, Any]:
    """The request's values by name, defaults filled in; what is None counts as not said. Raises Mistake.

    Numbers are what they say, cut to 32 bits (`blocks`: 64); `asked` is the dynamic size as it was said.
    """
    values = _DEFAULTS.copy()
    for name, value in request.items():
        # The common case first: 100,000 requests take seconds.
        if type(value) is int and 0 <= value <= _LARGEST and name in _NUMBERS:
            values[name] = value
        elif name not in _KNOWN:
            raise Mistake(
                "", f"there is no {quote(name)}", did_you_mean(name, NAMES) or f"there are {', '.join(NAMES)}"
            )
        elif value is not None:
            try:
                values[name] = _value(name, value)
            except Bad as bad:
                raise Mistake(name, bad.sentence, bad.hint) from None
    values["asked"] = values["dynamic_smem"]
    if values["asked"] > _LARGEST:
        values["dynamic_smem"] = _LARGEST
    return values


def need(values: Mapping[str, object], names: tuple[str, ...]) -> None:
    """Raises Mistake where nothing was said about some of the names."""
    missing = tuple(name for name in names if name not in values)
    if missing:
        raise Mistake("", f"missing required option{'s' * (len(missing) > 1)}", "", missing)


def _value(name: str, value: object) -> object:
    if name in WORDS:
        if not isinstance(value, str):
            raise Bad("type", f"{quote(str(value))} is not a text")
        if "\0" in value:
            raise Bad("type", f"{quote(value)} holds a character that no name has")
        return value
    if name == "shape":
        return shape.parse(value)
    if name == "keep_at_least":
        return _percent(value)
    largest = _LARGEST_GRID if name == "blocks" else _LARGEST
    number = _whole(value, name in SIZES)
    return number if name == "dynamic_smem" else min(number, largest)


def _whole(value: object, is_size: bool) -> int:
    """A number from 0 on. Digits alone may be any number of them; sizes may have a unit."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise Bad("out-of-range", f"{quote(str(value))} is below 0")
        return value
    text = value.strip() if isinstance(value, str) else ""
    digits = text[1:] if text.startswith("-") else text
    if digits.isascii() and digits.isdigit() and len(digits) < 4000:
        return _whole(int(text), is_size)
    if is_size and isinstance(value, str):
        return size(text)
    raise Bad("type", f"{quote(str(value))} is not a whole number", "write decimal digits only")


def _percent(value: object) -> int:
    text = value.strip() if isinstance(value, str) else value
    number = _whole(text[:-1] if isinstance(text, str) and text.endswith("%") else text, False)
    if number > 100:
        raise Bad("percent", f"{quote(str(value))} is not between 0% and 100%")
    return number
