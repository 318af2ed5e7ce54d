"""A policy as the library will see it: extends followed, defaults filled in, and where each value comes from.

What is shown is YAML that reads back to the same table. Made from the model, not from the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyshim.enums import CRITICAL_KINDS
from pyshim.policy import gpus, kernels
from pyshim.policy.describe import KEYS
from pyshim.policy.finding import printable
from pyshim.policy.model import ALL, ANY, OFF, UNLIMITED, Critical, Match, Policy, Priority, Range, Rule, Shape
from pyshim.policy.origins import Origin, Origins
from pyshim.policy.schema import VERSION

DEFAULT = "default"
_COLUMN = 46  # where comments begin, where what stands before them lets them
# What it means that a key is not there.
_ABSENT = {**{key.path: key.default for key in KEYS}, "compute[].keep_at_least": "none"}
# What YAML 1.1 and 1.2 read as a text when it stands alone; every other is quoted.
_PLAIN = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/.+-]*|[1-9][0-9]{0,17}(%|KiB|MiB)?|0")
_NOT_TEXT = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", ".inf", ".nan")


def as_values(policy: Policy) -> dict[str, Any]:
    """As a file says it, in texts, numbers, lists and mappings; None: not asked for."""
    footprint = policy.footprint
    return {
        "policy": VERSION,
        "name": policy.name,
        "gpu": list(policy.gpus) or None,
        "dispatch": policy.dispatch,
        "reads_dynamic_size": list(policy.fixed_size) or None,
        "critical": critical_value(policy.critical),
        "communication": {
            "kernels": [*(policy.families or ("all",)), *policy.kernels],
            "libraries": list(policy.libraries) or None,
            "priority": _priority(policy.priority),
            "streams": {
                "created_by": list(policy.stream_creators),
                "priority": _priority(policy.stream_priority),
            }
            if policy.stream_creators
            else None,
            "footprint": {
                "threads": footprint.threads,
                "registers": footprint.registers,
                "static_shared_memory": footprint.static_shared,
                "dynamic_shared_memory": footprint.dynamic_shared,
            }
            if footprint
            else "measured",
            "carveout": policy.communication_carveout,
            "reserve_cus": policy.reserve_cus,
            "environment": dict(policy.environment) or None,
            "all_ranks_environment": dict(policy.all_ranks_environment) or None,
        },
        "compute": [_rule(rule) for rule in policy.rules],
    }


def origin_of(path: str, origins: Origins) -> Origin | None:
    """None: a default. A rule's path begins with compute[INDEX]."""
    found = re.fullmatch(r"compute\[(\d+)\]\.?(.*)", path, re.S)
    if not found:
        return origins.values.get(path)
    inside = origins.rules[int(found[1])]
    own = inside.get(found[2])
    return origins.values.get("when") if own is None and found[2] == "when" else own


def paths(value: object, path: str = "") -> Iterable[str]:
    """Of every value that is neither a list nor a mapping, and of every list of such."""
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


def as_text(policy: Policy, origins: Origins, gpu: gpus.KnownGpu | None = None, probed: str = "") -> str:
    """gpu: on which it is shown; the policy is for it. probed: where its `dispatch` comes from, if from no file."""
    page = _Page(origins, {"dispatch": probed} if probed else {})
    page.mapping(as_values(policy), "", 0, _notes(policy, gpu))
    return page.text()


def sets(policy: Policy) -> list[tuple[str, tuple[str, ...]]]:
    """The words for sets of kernels that the policy uses, and what they stand for; "" for what is spared before the
    first rule that shapes a set."""
    used = {word for rule in policy.rules for word in rule.match.sets} | (set(policy.fixed_size) & set(kernels.SETS))
    found = [(word, patterns) for word, patterns in kernels.SETS.items() if word in used]
    if any(rule.match.sets and rule.shape.kind != "leave" for rule in policy.rules):
        found.append(("", kernels.FUSED))
    return found


class _Line(NamedTuple):
    text: str
    comment: str


class _Page:
    def __init__(self, origins: Origins, others: Mapping[str, str]) -> None:
        self._origins = origins
        self._others = others  # by path: of values that come from no file
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
        if path in self._others:
            return self._others[path]
        found = origin_of(path, self._origins)
        return f"{printable(os.path.basename(found.file))}:{found.line}" if found else DEFAULT

    def _add(self, text: str, *comments: str) -> None:
        self._lines.append(_Line(text, "; ".join(comment for comment in comments if comment)))

    def text(self) -> str:
        widths = [len(line.text) for line in self._lines if line.comment and len(line.text) <= _COLUMN]
        column = max(widths, default=0)
        shown = [f"{line.text:{column}}  # {line.comment}" if line.comment else line.text for line in self._lines]
        return "".join(f"{line}\n" for line in shown)


def _notes(policy: Policy, gpu: gpus.KnownGpu | None) -> dict[str, str]:
    """What a value comes to, where that is not what it says, by path."""
    found: dict[str, str] = {}
    for index, rule in enumerate(policy.rules):
        if rule.when_dispatch == "unknown" or rule.when_dispatch == policy.dispatch:
            continue
        # "unknown" leaves alone, the other one passes over: decide.c
        known = policy.dispatch != "unknown"
        does = "looked at by the rules below" if known else "left alone (overlap probe)"
        found[f"compute[{index}]"] = f"`dispatch` is {policy.dispatch}, so what this rule matches is {does}"
    if gpu and gpu.vendor == gpus.AMD:
        found["communication.priority"] = "HIP knows none"
    elif gpu and policy.reserve_cus:
        found["communication.reserve_cus"] = "for AMD only"
    return found


def critical_value(critical: Critical) -> str | dict[str, Any]:
    """`critical` as a policy says it."""
    if critical in (ALL, OFF):
        return "auto" if critical == ALL else "off"
    return {**{kind: getattr(critical, kind) for kind in CRITICAL_KINDS}, "share": f"{critical.share}%"}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "match": _match(rule.match),
        "shape": _shape(rule.shape),
        "keep_at_least": f"{rule.keep_at_least}%" if rule.keep_at_least else None,
        "when": rule.when,
        "when_dispatch": None if rule.when_dispatch == "unknown" else rule.when_dispatch,
        "carveout": rule.carveout,
    }


def _match(match: Match) -> dict[str, Any]:
    ranges = {
        "blocks": _range(match.blocks),
        "threads": _range(match.threads),
        "registers": _range(match.registers),
        "waves": _range(match.waves_percent, 100),
        "resident_blocks": _range(match.resident_blocks),
    }
    names = {"kernel": [*match.kernels, *match.sets], "library": list(match.libraries)}
    found = {key: value for key, value in {**names, **ranges}.items() if value}
    # Every key of it may ask for what every launch has.
    return found or {"waves": ">=0"}


def _range(value: Range, parts: int = 1) -> str | list[str]:
    """Empty: anything."""
    if value == ANY:
        return ""
    if value.minimum == value.maximum:
        return _decimal(value.minimum, parts)
    least = f">={_decimal(value.minimum, parts)}" if value.minimum else ""
    most = f"<={_decimal(value.maximum, parts)}" if value.maximum != UNLIMITED else ""
    return [least, most] if least and most else least or most


def _decimal(value: int, parts: int) -> str:
    whole, rest = divmod(value, parts)
    return f"{whole}.{rest:02}".rstrip("0") if rest else str(whole)


def _shape(shape: Shape) -> str | dict[str, str]:
    if shape.kind == "blocks":
        return {"blocks_per_sm": str(shape.value)}
    if shape.kind == "percent":
        return {"blocks_per_sm": f"{shape.value}%"}
    if shape.kind == "bytes":
        return {"dynamic_shared_memory": _size(shape.value)}
    return shape.kind


def _size(value: int) -> str:
    return f"{value >> 10}KiB" if value and value % 1024 == 0 else str(value)


def _priority(priority: Priority) -> str:
    return str(priority.value) if priority.kind == "number" else priority.kind


def one_line(value: Any) -> str:
    """A value on one line of YAML."""
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
