"""A policy as the library will see it: extends followed, defaults filled in, and where each value comes from.

What is shown is YAML that reads back to the same table. Made from the model, not from the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyshim.policy import gpus, kernels
from pyshim.policy.finding import printable
from pyshim.policy.key import shown
from pyshim.policy.model import KEYS, VERSION, Policy
from pyshim.policy.origins import Origin, Origins

DEFAULT = "default"
_COLUMN = 46  # where comments begin, where what stands before them lets them
# What it means that a key is not there.
_ABSENT = {**{key.path: key.default for key in KEYS}, "compute[].keep_at_least": "none"}
# What YAML 1.1 and 1.2 read as a text when it stands alone; every other is quoted.
_PLAIN = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/.+-]*|[1-9][0-9]{0,17}(%|KiB|MiB)?|0|[0-9]{1,2}\.[0-9]{1,4}%")
_NOT_TEXT = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", ".inf", ".nan")


def as_values(policy: Policy) -> dict[str, Any]:
    """Return a policy as texts, numbers, lists and mappings; None: not asked for."""
    return {"policy": VERSION, **shown(policy, "")}


def origin_of(path: str, origins: Origins) -> Origin | None:
    """Return where a value is from; None: a default. A rule's path begins with compute[INDEX]."""
    found = re.fullmatch(r"compute\[(\d+)\]\.?(.*)", path, re.S)
    if not found:
        return origins.values.get(path)
    inside = origins.rules[int(found[1])]
    own = inside.get(found[2])
    return origins.values.get("when") if own is None and found[2] == "when" else own


def paths(value: object, path: str = "") -> Iterable[str]:
    """Yield the paths of single values, and of lists of such."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from paths(inner, child(path, key))
    elif path == "compute":
        for index, rule in enumerate(value):  # type: ignore[arg-type,var-annotated]
            yield from paths(rule, f"{path}[{index}]")
    else:
        yield path


def child(path: str, key: str) -> str:
    return f"{path}[{key}]" if path.endswith("environment") else f"{path}.{key}" if path else key


def as_text(policy: Policy, origins: Origins, gpu: gpus.KnownGpu | None = None) -> str:
    """gpu: on which it is shown; the policy is for it."""
    page = _Page(origins)
    page.mapping(as_values(policy), "", 0, _notes(gpu))
    return page.text()


def sets(policy: Policy) -> list[tuple[str, tuple[str, ...]]]:
    """Return the words for sets that the policy uses, and their kernels; "" for what is spared before the first set."""
    used = {word for rule in policy.rules for word in rule.match.sets} | (set(policy.fixed_size) & set(kernels.SETS))
    found = [(word, patterns) for word, patterns in kernels.SETS.items() if word in used]
    if any(rule.match.sets and rule.shape.kind != "leave" for rule in policy.rules):
        found.append(("", kernels.FUSED))
    return found


class _Line(NamedTuple):
    text: str
    comment: str


class _Page:
    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._lines: list[_Line] = []

    def mapping(self, values: Mapping[str, Any], path: str, depth: int, notes: Mapping[str, str]) -> None:
        for key, value in values.items():
            self._entry(key, value, child(path, key), depth, notes)

    def _entry(self, key: str, value: Any, path: str, depth: int, notes: Mapping[str, str]) -> None:
        head = "  " * depth + f"{_word(key)}:"
        note = notes.get(path, "")
        if path == "compute" and value:
            self._add(head)
            for index, rule in enumerate(value):
                self._rule(rule, f"{path}[{index}]", depth + 1, notes)
        elif value is None:
            self._add("  " * depth + f"# {_word(key)}: {_ABSENT[re.sub(r'[0-9]+', '', path)]}", DEFAULT, note)
        elif isinstance(value, Mapping) and not path.endswith("shape"):
            self._add(head, "", note)
            self.mapping(value, path, depth + 1, notes)
        elif isinstance(value, list):
            self._list(head, value, path, depth, note)
        else:
            self._add(f"{head} {one_line(value)}", self._origin(path), note)

    def _rule(self, rule: Mapping[str, Any], path: str, depth: int, notes: Mapping[str, str]) -> None:
        note = notes.get(path)
        if note:
            self._add("  " * depth + f"# {note}")
        first = len(self._lines)
        self.mapping(rule, path, depth + 1, notes)
        text = self._lines[first].text
        at = 2 * depth
        self._lines[first] = self._lines[first]._replace(text=f"{text[:at]}- {text[at + 2 :]}")

    def _list(self, head: str, items: Sequence[str], path: str, depth: int, note: str) -> None:
        """On one line where it is short and of one origin."""
        own = [self._origin(f"{path}[{item}]") for item in items]
        said = [origin for origin in own if origin != DEFAULT] or [self._origin(path)]
        flow = f"{head} {one_line(items)}"
        if len(set(said)) == 1 and len(flow) <= _COLUMN + 12:
            self._add(flow, said[0], note)
            return
        self._add(head, "", note)
        for item, origin in zip(items, own):
            origin = self._origin(path) if origin == DEFAULT and len(set(said)) == 1 else origin
            self._add("  " * (depth + 1) + f"- {_word(item)}", origin)

    def _origin(self, path: str) -> str:
        found = origin_of(path, self._origins)
        return f"{printable(os.path.basename(found.file))}:{found.line}" if found else DEFAULT

    def _add(self, text: str, *comments: str) -> None:
        self._lines.append(_Line(text, "; ".join(comment for comment in comments if comment)))

    def text(self) -> str:
        widths = [len(line.text) for line in self._lines if line.comment and len(line.text) <= _COLUMN]
        column = max(widths, default=0)
        shown = [f"{line.text:{column}}  # {line.comment}" if line.comment else line.text for line in self._lines]
        return "".join(f"{line}\n" for line in shown)


def _notes(gpu: gpus.KnownGpu | None) -> dict[str, str]:
    """Return the effective value, where it differs from what is written, by path."""
    if gpu and gpu.vendor == gpus.AMD:
        return {"streams.raise": "on AMD only `created_by` acts: HIP gives a stream its priority at creation"}
    return {}


def one_line(value: Any) -> str:
    """Return a value on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_word(key)}: {one_line(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(one_line(item) for item in value) + "]"
    return str(value).lower() if isinstance(value, bool) else _word(str(value))


def _word(text: str) -> str:
    """As YAML reads it back, letter by letter."""
    if _PLAIN.fullmatch(text) and text.casefold() not in _NOT_TEXT:
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08X}"
