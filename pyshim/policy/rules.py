"""The key `compute`: rules, each of which says for some launches what is done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import yaml

from pyshim.policy import values
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.model import ANY, Carveout, Dispatch, Match, Range, Rule, Shape, ShapeKind, When
from pyshim.policy.nodes import Keys, Nodes, has_error
from pyshim.policy.parts import MAX_PATTERNS, MAX_REGISTERS, MAX_THREADS, PartsReader
from pyshim.policy.shadow import shadowed
from pyshim.policy.values import Bad, Quantity

# The table that travels in the environment holds fewer.
MAX_RULES = 600
# Of a kernel's own resident blocks, in per cent: less than half costs more than overlap can gain.
KEEP = 50

CARVEOUTS = ("max", "always", "keep")
RULE = Keys(("match", "shape", "keep_at_least", "when", "when_dispatch", "carveout"), ("match", "shape"))
MATCH = Keys(("kernel", "library", "blocks", "threads", "registers", "waves", "resident_blocks"))
SHAPE = Keys(("blocks_per_sm", "dynamic_shared_memory"))

_BLOCKS = Quantity("blocks", lowest=1)
_THREADS = Quantity("threads", lowest=1, highest=MAX_THREADS)
_REGISTERS = Quantity("registers", highest=MAX_REGISTERS)
_WAVES = Quantity("waves", parts=100)
_RESIDENT = Quantity("resident_blocks", lowest=1)
_SHAPES = (
    "write leave, make_room, quick_entry, {blocks_per_sm: 1}, {blocks_per_sm: 50%} or {dynamic_shared_memory: 96KiB}"
)
_SHAPE_WORDS = ("leave", "make_room", "quick_entry")
_WHENS = ("overlapping", "always")


@dataclass(frozen=True)
class _Read:
    rule: Rule
    own_when: bool
    node: yaml.Node


class RuleReader(PartsReader):
    def rules(self, node: yaml.Node) -> tuple[tuple[Rule, bool], ...] | None:
        """Each rule, and whether it has its own `when`."""
        items = self.items(node, "`compute`", "write each rule as `- match: ...`, or [] for none")
        if items is None:
            return None
        if len(items) > MAX_RULES:
            sentence = f"the policy has more than {MAX_RULES} rules"
            self.note(items[MAX_RULES], "too-large", sentence, "a rule may list several kernels")
            return None
        good: list[_Read] = []
        for item in items:
            before = len(self.findings)
            read = self._rule(item)
            if read is not None and not has_error(self.findings[before:]):
                good.append(read)
        # Only sound rules are compared: a key that was misspelt would make its rule look wider than it is meant.
        self._note_shadowed(good)
        return tuple((read.rule, read.own_when) for read in good)

    def when(self, node: yaml.Node) -> When | None:
        return cast("When | None", self.word(node, "when", _WHENS, "a time"))

    def _note_shadowed(self, good: list[_Read]) -> None:
        if self.patterns > MAX_PATTERNS:
            return
        places = {id(read.rule): read.node for read in good}
        for rule, earlier in shadowed([read.rule for read in good]):
            sentence = f"this rule can never match: the one on line {earlier.line} takes all that it could"
            hint = "the first match wins: move this rule up, or remove it"
            self.note(places[id(rule)], "shadowed", sentence, hint, "warning")

    def _rule(self, node: yaml.Node) -> _Read | None:
        keys = self.mapping(node, "a rule", RULE)
        if keys is None:
            return None
        none: When | None = None
        match = self.optional(keys, "match", self._match, Match())
        shape = self.optional(keys, "shape", self._shape, Shape())
        keep = self.optional(keys, "keep_at_least", lambda item: self.value(item, "`keep_at_least`", values.percent), 0)
        own_when = self.optional(keys, "when", self.when, none)
        anywhere: Dispatch = "unknown"
        dispatch = self.optional(keys, "when_dispatch", self._when_dispatch, anywhere)
        usual: Carveout = "keep" if shape.kind == "leave" else "max"
        carveout = self.optional(keys, "carveout", lambda item: self.carveout(item, CARVEOUTS), usual)
        if shape.kind in ("make_room", "quick_entry") and "keep_at_least" not in keys:
            keep = KEEP
        when, line = own_when or "overlapping", node.start_mark.line + 1
        return _Read(Rule(match, shape, when, keep, line, dispatch, carveout), own_when is not None, node)

    def _when_dispatch(self, node: yaml.Node) -> Dispatch | None:
        return cast("Dispatch | None", self.word(node, "when_dispatch", ("hold", "backfill"), "a way of dispatching"))

    def _match(self, node: yaml.Node) -> Match | None:
        keys = self.mapping(node, "`match`", MATCH)
        if keys is None:
            return None
        if isinstance(node, yaml.MappingNode) and not node.value:
            self.note(node, "type", "`match` is empty", 'for every kernel write {kernel: "*"}')
        none: tuple[str, ...] = ()
        patterns, sets = self.optional(keys, "kernel", lambda item: self.kernels(item, "kernel"), (none, none))
        return Match(
            kernels=patterns,
            sets=sets,
            libraries=self.libraries(keys, "library"),
            blocks=self._range(keys, _BLOCKS),
            threads=self._range(keys, _THREADS),
            registers=self._range(keys, _REGISTERS),
            waves_percent=self._range(keys, _WAVES),
            resident_blocks=self._range(keys, _RESIDENT),
        )

    def _range(self, keys: Nodes, quantity: Quantity) -> Range:
        def read(node: yaml.Node) -> Range | None:
            what = f"`{quantity.name}`"
            found = self.values(node, what, lambda text: (text, values.comparison(text, quantity)))
            if found is None:
                return None
            if len(found) > 2:
                self.note(node, "comparison", f"{what} takes one comparison or two that must both hold")
                return None
            both = Range(max(item.minimum for _, item in found), min(item.maximum for _, item in found))
            return self.attempt(node, lambda: values.possible(both, " and ".join(text for text, _ in found), quantity))

        return self.optional(keys, quantity.name, read, ANY)

    def _shape(self, node: yaml.Node) -> Shape | None:
        if isinstance(node, yaml.SequenceNode):
            self.note(node, "type", "`shape` must be a word or a mapping, not a list", _SHAPES)
            return None
        if not isinstance(node, yaml.MappingNode):
            return self.value(node, "`shape`", _shape_word)
        keys = self.mapping(node, "`shape`", SHAPE)
        if keys is None or len(keys) != 1:
            if keys is not None and len(keys) == len(node.value):
                self.note(node, "value", "`shape` takes exactly one of blocks_per_sm and dynamic_shared_memory")
            return None
        if "blocks_per_sm" in keys:
            return self.value(keys["blocks_per_sm"], "`blocks_per_sm`", _blocks)
        size = self.size(keys["dynamic_shared_memory"])
        if size == 0:
            self.note(keys["dynamic_shared_memory"], "size", "0 bytes change no launch", "write `shape: leave`")
        return None if size is None else Shape("bytes", size)


def _shape_word(text: str) -> Shape:
    if text not in _SHAPE_WORDS:
        raise Bad("value", f"{quote(text)} is not a shape", did_you_mean(text, _SHAPE_WORDS) or _SHAPES)
    return Shape(cast(ShapeKind, text))


def _blocks(text: str) -> Shape:
    if text.endswith("%"):
        return Shape("percent", values.percent(text))
    count = values.number(text, -(2**63), 2**63)
    if count < 1:
        raise Bad("blocks", f"a multiprocessor must keep at least 1 block, not {quote(text)}")
    if count > 2**32 - 1:
        raise Bad("blocks", f"no multiprocessor holds {quote(text)} blocks")
    return Shape("blocks", count)
