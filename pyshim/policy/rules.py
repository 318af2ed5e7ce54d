"""The key `compute`: rules, each of which says for some launches what is done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import yaml

from pyshim.enums import KNOWN_DISPATCHES
from pyshim.policy import gpus, known, values
from pyshim.policy.describe import CARVEOUTS, KEEP, SHAPES, WHENS
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.model import ANY, Carveout, Dispatch, Match, Range, Rule, Shape, ShapeKind, When
from pyshim.policy.nodes import Keys, Nodes, has_error
from pyshim.policy.parts import MAX_PATTERNS, MAX_REGISTERS, MAX_THREADS, PartsReader, Remark
from pyshim.policy.shadow import shadowed
from pyshim.policy.values import Bad, Quantity

# What the table has room for.
MAX_BLOCKS_PER_SM = 2**32 - 1
# The table that travels in the environment holds fewer.
MAX_RULES = 600
RULE = Keys.of("compute[]")
MATCH = Keys.of("compute[].match")
SHAPE = Keys.of("compute[].shape")

BLOCKS = Quantity("blocks", lowest=1)
THREADS = Quantity("threads", lowest=1, highest=MAX_THREADS)
REGISTERS = Quantity("registers", highest=MAX_REGISTERS)
WAVES = Quantity("waves", parts=100)
RESIDENT = Quantity("resident_blocks", lowest=1)
QUANTITIES = (BLOCKS, THREADS, REGISTERS, WAVES, RESIDENT)
_SHAPES = (
    "write leave, make_room, quick_entry, {blocks_per_sm: 1}, {blocks_per_sm: 50%} or {dynamic_shared_memory: 96KiB}"
)


@dataclass(frozen=True)
class _Read:
    rule: Rule
    own_when: bool
    node: yaml.Node


class RuleReader(PartsReader):
    # Patterns of kernels and of libraries that the policy calls communication.
    communicating: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __init__(self) -> None:
        super().__init__()
        self._unremarked: list[Remark] = []  # patterns of kernels of which no warning has been told

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
        sound: list[_Read] = []
        for item in items:
            before = len(self.findings)
            read = self._rule(item)
            if read is None or has_error(self.findings[before:]):
                continue
            good.append(read)
            # A key that was misspelt would make its rule look wider than it is meant, and a name one that it is not.
            if before == len(self.findings):
                sound.append(read)
        self._note_useless(sound)
        return tuple((read.rule, read.own_when) for read in good)

    def when(self, node: yaml.Node) -> When | None:
        return cast("When | None", self.word(node, "when", WHENS, "a time"))

    def _note_useless(self, sound: list[_Read]) -> None:
        if self.patterns > MAX_PATTERNS:
            return
        places = {id(read.rule): read.node for read in sound}
        rules = [read.rule for read in sound]
        for rule, earlier in shadowed(rules):
            lines = [str(other.line) for other in earlier]
            takers = (
                f"the one on line {lines[0]} takes"
                if len(lines) == 1
                else f"those on lines {', '.join(lines[:-1])} and {lines[-1]} together take"
            )
            sentence = f"this rule can never match: {takers} all that it could"
            hint = "the first match wins: move this rule up, or remove it"
            self.note(places[id(rule)], "shadowed", sentence, hint, "warning")
        for rule in rules:
            pattern = known.only_communication(rule.match, *self.communicating)
            if pattern and rule.shape.kind != "leave":
                sentence = f"this rule never acts: what {quote(pattern)} matches is communication, and never shaped"
                hint = "remove the rule; what is done to communication stands under `communication`"
                self.note(places[id(rule)], "communication", sentence, hint, "warning")

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
        return cast("Dispatch | None", self.word(node, "when_dispatch", KNOWN_DISPATCHES, "a way of dispatching"))

    def _match(self, node: yaml.Node) -> Match | None:
        keys = self.mapping(node, "`match`", MATCH)
        if keys is None:
            return None
        if isinstance(node, yaml.MappingNode) and not node.value:
            self.note(node, "type", "`match` is empty", 'for every kernel write {kernel: "*"}')
        none: tuple[str, ...] = ()
        patterns, sets = self.optional(keys, "kernel", self._kernels, (none, none))
        return Match(
            kernels=patterns,
            sets=sets,
            libraries=self.libraries(keys, "library"),
            blocks=self._range(keys, BLOCKS),
            threads=self._range(keys, THREADS),
            registers=self._range(keys, REGISTERS),
            waves_percent=self._range(keys, WAVES),
            resident_blocks=self._resident(keys),
        )

    def note_unknown(self) -> None:
        """Of a policy without mistakes, whose patterns are those that are meant."""
        for node, text, pattern in self._unremarked:
            self.note_bad(node, known.unknown(text, pattern, self.communicating[0]), "note")

    def _kernels(self, node: yaml.Node) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        return self.kernels(node, "kernel", self._unremarked)

    def _resident(self, keys: Nodes) -> Range:
        found = self._range(keys, RESIDENT)
        most = self._most_blocks()
        if most and found.minimum > most:
            sentence = f"no GPU of this policy holds more than {most} blocks on a multiprocessor: this never holds"
            self.note(keys[RESIDENT.name], "never", sentence, f"ask for {most} or fewer", "warning")
        return found

    def _most_blocks(self) -> int:
        """On one multiprocessor of any GPU that the policy is for; 0 where not all of them are known."""
        fitting = gpus.matching(self.gpus) if self.gpus_known else ()
        return max((gpu.blocks for gpu in fitting), default=0)

    def _range(self, keys: Nodes, quantity: Quantity) -> Range:
        def read(node: yaml.Node) -> Range | None:
            what = f"`{quantity.name}`"
            found = self.values(node, what, lambda text: (text, values.comparison(text, quantity)))
            if found is None:
                return None
            if len(found) > 2:
                sentence = f"{what} takes one comparison, or two that must both hold"
                self.note(node, "comparison", sentence, 'a range is [">=4", "<=8"]; other values need another rule')
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
            if keys is not None and keys.clean:
                sentence = "`shape` takes exactly one of blocks_per_sm and dynamic_shared_memory"
                self.note(node, "value", sentence, "keep one of them" if keys else _SHAPES)
            return None
        if "blocks_per_sm" in keys:
            return self._blocks_shape(keys["blocks_per_sm"])
        size = self.size(keys["dynamic_shared_memory"])
        if size == 0:
            self.note(keys["dynamic_shared_memory"], "size", "0 bytes change no launch", "write `shape: leave`")
        return None if size is None else Shape("bytes", size)

    def _blocks_shape(self, node: yaml.Node) -> Shape | None:
        found = self.value(node, "`blocks_per_sm`", _blocks)
        most = self._most_blocks()
        if found and found.kind == "blocks" and most and found.value >= most:
            sentence = f"no GPU of this policy holds more than {most} blocks at once, so this changes nothing"
            hint = f"did you mean `{found.value}%`, of the kernel's own?" if found.value <= 100 else "write fewer"
            self.note(node, "blocks", sentence, hint, "warning")
        return found


def _shape_word(text: str) -> Shape:
    if text not in SHAPES:
        raise Bad("value", f"{quote(text)} is not a shape", did_you_mean(text, SHAPES) or _SHAPES)
    return Shape(cast(ShapeKind, text))


def _blocks(text: str) -> Shape:
    if text.endswith("%"):
        return Shape("percent", values.percent(text))
    hint = "write 1 or more, or a percentage of the kernel's own: 50%"
    try:
        count = values.number(text, -(2**63), 2**63)
    except Bad as bad:
        raise Bad(bad.code, bad.sentence, hint) from bad
    if count < 1:
        raise Bad("blocks", f"a multiprocessor must keep at least 1 block, not {quote(text)}", hint)
    if count > MAX_BLOCKS_PER_SM:
        raise Bad("blocks", f"no multiprocessor holds {quote(text)} blocks", "write a number such as 1, or 50%")
    return Shape("blocks", count)
