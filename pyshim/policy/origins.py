"""Where each value of a policy comes from: which file says it, on which line. What nothing says is a default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from pyshim.policy import values
from pyshim.policy.key import entries
from pyshim.policy.lists import Libraries, Patterns
from pyshim.policy.model import KEYS, Policy
from pyshim.policy.nodes import pairs_of

# Lists that add to those of the other policy: each item has an origin of its own, under PATH[ITEM].
_ADDED = {key.path: key.kind for key in KEYS if isinstance(key.kind, Patterns) and key.kind.adds}
# Mappings that are taken whole from one of two policies.
_WHOLE = tuple(key.path for key in entries(Policy) if key.kind.holder and key.field != "rules")


class Origin(NamedTuple):
    file: str
    line: int  # from 1


@dataclass(frozen=True)
class Origins:
    """Where the values of a policy come from.

    values: by path, as model.py names it (`streams.raise`), with `environment[NAME]` for a variable. rules: for each
    rule by path inside it (`match.kernel`); the empty path is the rule."""

    values: Mapping[str, Origin] = field(default_factory=dict)
    rules: tuple[Mapping[str, Origin], ...] = ()

    def over(self, base: Origins) -> Origins:
        """Put the origins of a file over those of the one that it extends."""
        taken = [path for path in _WHOLE if path in self.values]
        kept = {
            path: origin
            for path, origin in base.values.items()
            if not any(path == whole or path.startswith(f"{whole}.") for whole in taken)
        }
        return Origins({**kept, **self.values}, self.rules + base.rules)


def of(root: yaml.Node, file: str) -> Origins:
    """Return the origins of a file in which nothing is wrong."""
    found: dict[str, Origin] = {}
    rules: list[Mapping[str, Origin]] = []
    for key_node, key, node in pairs_of(root):
        if key == "compute":
            rules = [_walk(rule, "", rule, file) for rule in node.value]
        else:
            found.update(_walk(node, key, key_node, file))
    return Origins(found, tuple(rules))


def _walk(node: yaml.Node, path: str, place: yaml.Node, file: str) -> dict[str, Origin]:
    found = {path: _at(place, file)}
    if path in _ADDED:
        for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            name = item.value if isinstance(_ADDED[path], Libraries) else values.kernel_pattern(item.value)
            found.setdefault(f"{path}[{name}]", _at(item, file))
    elif isinstance(node, yaml.MappingNode):
        for key_node, key, inner in pairs_of(node):
            name = f"{path}[{key}]" if path.endswith("environment") else f"{path}.{key}" if path else key
            found.update(_walk(inner, name, key_node, file))
    return found


def _at(node: yaml.Node, file: str) -> Origin:
    return Origin(file, node.start_mark.line + 1)
