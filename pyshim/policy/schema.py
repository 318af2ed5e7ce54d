"""The keys of a policy file, version 1: which there are, what they may say, what they become.

In this version `communication.priority` defaults to `inherit`: `auto`, the default to come, needs overlap windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

import yaml

from pyshim.policy import gpus, values
from pyshim.policy.finding import closest, did_you_mean, quote
from pyshim.policy.model import ANY, Footprint, Match, Policy, Priority, Range, Rule, Shape, When
from pyshim.policy.nodes import Keys, Nodes, Walker, has_error
from pyshim.policy.shadow import shadowed
from pyshim.policy.values import Bad, Quantity

Value = TypeVar("Value")

VERSION = 1
FAMILIES = ("all", "nccl", "rccl", "ncclx", "torch", "nvshmem", "deep_ep", "mscclpp", "vllm", "flashinfer", "ucc")
KERNEL_SETS = ("gemm", "attention", "elementwise", "norm", "optimizer")

# The table that travels in the environment holds fewer of both; beyond this a file is not worth comparing rule by rule.
MAX_RULES = 600
MAX_PATTERNS = 2000

_LATER = ("extends", "dispatch", "when_dispatch", "carveout", "environment", "all_ranks_environment")
_POLICY = Keys(("policy", "name", "gpu", "when", "communication", "compute"), ("policy", "name"), _LATER)
_COMMUNICATION = Keys(("kernels", "libraries", "priority", "streams", "footprint"), (), _LATER)
_STREAMS = Keys(("created_by", "priority"), ("created_by", "priority"), _LATER)
_FOOTPRINT_NAMES = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory")
_FOOTPRINT = Keys(_FOOTPRINT_NAMES, _FOOTPRINT_NAMES)
_RULE = Keys(("match", "shape", "keep_at_least", "when"), ("match", "shape"), _LATER)
_MATCH = Keys(("kernel", "library", "blocks", "threads", "registers", "waves", "resident_blocks"), (), _LATER)
_SHAPE = Keys(("blocks_per_sm", "dynamic_shared_memory"), (), ("make_room", "quick_entry", *_LATER))

_MAX_THREADS = 1024
_MAX_REGISTERS = 512
_BLOCKS = Quantity("blocks", lowest=1)
_THREADS = Quantity("threads", lowest=1, highest=_MAX_THREADS)
_REGISTERS = Quantity("registers", highest=_MAX_REGISTERS)
_WAVES = Quantity("waves", parts=100)
_RESIDENT = Quantity("resident_blocks", lowest=1)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # the page that reports are made from holds 64 bytes
_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,6}")
_PRIORITIES = ("highest", "inherit")
_SHAPES = "write leave, {blocks_per_sm: 1}, {blocks_per_sm: 50%} or {dynamic_shared_memory: 96KiB}"
_WHENS = ("overlapping", "always")


class PolicyReader(Walker):
    """Reads one policy; `findings` says what is wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self._gpus: tuple[str, ...] = ()
        self._patterns = 0

    def policy(self, root: yaml.Node) -> Policy | None:
        if not self._version_ok(root):
            return None
        keys = self.mapping(root, "a policy", _POLICY)
        if keys is None:
            return None
        # The GPUs come first: what a size may be depends on them.
        self._gpus = self._optional(keys, "gpu", self._gpu_patterns, ())
        name = self._optional(keys, "name", lambda node: self.value(node, "`name`", _name), "")
        when: When = self._optional(keys, "when", self._when, "overlapping")
        policy = Policy(name=name, gpus=self._gpus)
        if "communication" in keys:
            policy = self._communication(keys["communication"], policy)
        none: tuple[Rule, ...] = ()
        rules = self._optional(keys, "compute", lambda node: self._rules(node, when), none)
        if has_error(self.findings):
            return None
        return replace(policy, rules=rules)

    # ---- the policy's own keys ----

    def _version_ok(self, root: yaml.Node) -> bool:
        """Another version has other keys, so nothing else is said about such a file."""
        if not isinstance(root, yaml.MappingNode):
            return True  # told by the caller
        for key, value in root.value:
            if isinstance(key, yaml.ScalarNode) and key.value == "policy":
                before = len(self.findings)
                text = self.scalar(value, "`policy`")
                if text is not None and text != str(VERSION):
                    known = re.fullmatch(r"[0-9]{1,9}", text)
                    sentence = (
                        f"policy version {quote(text)} is not known"
                        if known
                        else f"{quote(text)} is not a policy version"
                    )
                    hint = f"this overlap-run reads version {VERSION}: `policy: {VERSION}`"
                    self.note(value, "version", sentence, hint)
                return len(self.findings) == before
        return True

    def _gpu_patterns(self, node: yaml.Node) -> tuple[str, ...] | None:
        found = self.values(node, "`gpu`", values.glob)
        if not found or not gpus.checkable():
            return found
        for item, pattern in zip(node.value if isinstance(node, yaml.SequenceNode) else [node], found):
            if gpus.matching([pattern]) or _ARCHITECTURE.fullmatch(pattern):
                continue
            sentence = f"no GPU that is known has the name {quote(pattern)}"
            self.note(item, "unknown-gpu", sentence, gpus.hint(pattern), "warning")
        return found

    def _when(self, node: yaml.Node) -> When | None:
        found = self.value(node, "`when`", lambda text: values.choice(text, _WHENS, "a time"))
        return cast("When | None", found)

    # ---- communication ----

    def _communication(self, node: yaml.Node, policy: Policy) -> Policy:
        keys = self.mapping(node, "`communication`", _COMMUNICATION)
        if keys is None:
            return policy
        streams = self._mapping_at(keys, "streams", _STREAMS)
        given = "footprint" in keys and isinstance(keys["footprint"], yaml.MappingNode)
        if "footprint" in keys and not given:
            self.value(keys["footprint"], "`footprint`", lambda text: values.choice(text, ("measured",), "a footprint"))
        return Policy(
            name=policy.name,
            gpus=policy.gpus,
            kernels=self._optional(keys, "kernels", self._communication_kernels, ()),
            libraries=self._libraries(keys, "libraries"),
            priority=self._priority(keys, "priority", auto_later=True),
            stream_creators=self._libraries(streams, "created_by"),
            stream_priority=self._priority(streams, "priority", auto_later=False),
            footprint=self._footprint(keys["footprint"]) if given else None,
        )

    def _communication_kernels(self, node: yaml.Node) -> tuple[str, ...] | None:
        found = self.values(node, "`kernels`", lambda text: (text, values.kernel_pattern(text)))
        if found is None:
            return None
        for item, (text, _) in zip(node.value if isinstance(node, yaml.SequenceNode) else [node], found):
            near = closest(text, FAMILIES)
            if near and text not in FAMILIES and not values.is_wild(text):
                sentence = (
                    f"{quote(text)} is no family of communication kernels, so it is taken as the name of one kernel"
                )
                self.note(item, "family", sentence, f"did you mean `{near}`?", "warning")
        # The library knows its families whatever the policy says, so they need no room in the table.
        return self._counted(node, tuple(pattern for text, pattern in found if text not in FAMILIES))

    def _priority(self, keys: Nodes, key: str, auto_later: bool) -> Priority:
        def parse(text: str) -> Priority:
            if text == "auto" and auto_later:
                raise Bad(
                    "not-yet", "`auto` comes with a later version of overlap-run", "write highest, inherit or a number"
                )
            if re.fullmatch(r"[-0-9].*", text):
                return Priority("number", values.number(text, -(2**31), 2**31 - 1))
            word = values.choice(text, _PRIORITIES, "a priority")
            return Priority("highest" if word == "highest" else "inherit")

        return self._optional(keys, key, lambda node: self.value(node, f"`{key}`", parse), Priority())

    def _footprint(self, node: yaml.Node) -> Footprint | None:
        keys = self.mapping(node, "`footprint`", _FOOTPRINT)
        if keys is None:
            return None

        def count(key: str, lowest: int, highest: int) -> int:
            return self._optional(
                keys,
                key,
                lambda item: self.value(item, f"`{key}`", lambda text: values.number(text, lowest, highest)),
                lowest,
            )

        return Footprint(
            count("threads", 1, _MAX_THREADS),
            count("registers", 1, _MAX_REGISTERS),
            self._optional(keys, "static_shared_memory", self._size, 0),
            self._optional(keys, "dynamic_shared_memory", self._size, 0),
        )

    # ---- rules ----

    def _rules(self, node: yaml.Node, when: When) -> tuple[Rule, ...] | None:
        items = self.items(node, "`compute`", "write each rule as `- match: ...`, or [] for none")
        if items is None:
            return None
        if len(items) > MAX_RULES:
            sentence = f"the policy has more than {MAX_RULES} rules"
            self.note(items[MAX_RULES], "too-large", sentence, "a rule may list several kernels")
            return None
        good: dict[int, tuple[Rule, yaml.Node]] = {}
        for index, item in enumerate(items):
            before = len(self.findings)
            rule = self._rule(item, when)
            if rule is not None and not has_error(self.findings[before:]):
                good[index] = (rule, item)
        # Only sound rules are compared: a key that was misspelt would make its rule look wider than it is meant.
        self._note_shadowed(list(good.values()))
        return tuple(rule for rule, _ in good.values())

    def _note_shadowed(self, good: list[tuple[Rule, yaml.Node]]) -> None:
        if self._patterns > MAX_PATTERNS:
            return
        places = {id(rule): item for rule, item in good}
        for rule, earlier in shadowed([rule for rule, _ in good]):
            sentence = f"this rule can never match: the one on line {earlier.line} takes all that it could"
            self.note(places[id(rule)], "shadowed", sentence, "the first match wins: move this rule up, or remove it")

    def _rule(self, node: yaml.Node, when: When) -> Rule | None:
        keys = self.mapping(node, "a rule", _RULE)
        if keys is None:
            return None
        match = self._optional(keys, "match", self._match, Match())
        shape = self._optional(keys, "shape", self._shape, Shape())
        keep = self._optional(keys, "keep_at_least", self._keep, 0)
        own_when = self._optional(keys, "when", self._when, when)
        return Rule(match, shape, own_when, keep, node.start_mark.line + 1)

    def _keep(self, node: yaml.Node) -> int | None:
        return self.value(node, "`keep_at_least`", values.percent)

    def _match(self, node: yaml.Node) -> Match | None:
        keys = self.mapping(node, "`match`", _MATCH)
        if keys is None:
            return None
        if isinstance(node, yaml.MappingNode) and not node.value:
            self.note(node, "type", "`match` is empty", 'for every kernel write {kernel: "*"}')
        return Match(
            kernels=self._optional(keys, "kernel", self._kernels, ()),
            libraries=self._libraries(keys, "library"),
            blocks=self._range(keys, _BLOCKS),
            threads=self._range(keys, _THREADS),
            registers=self._range(keys, _REGISTERS),
            waves_percent=self._range(keys, _WAVES),
            resident_blocks=self._range(keys, _RESIDENT),
        )

    def _kernels(self, node: yaml.Node) -> tuple[str, ...] | None:
        def parse(text: str) -> str:
            if text in KERNEL_SETS:
                hint = f'write a pattern such as "*{text}*"; for a kernel of exactly this name "[{text[0]}]{text[1:]}"'
                raise Bad("not-yet", f"the set of kernels `{text}` comes with a later version of overlap-run", hint)
            return values.kernel_pattern(text)

        return self._counted(node, self.values(node, "`kernel`", parse))

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

        return self._optional(keys, quantity.name, read, ANY)

    def _shape(self, node: yaml.Node) -> Shape | None:
        if isinstance(node, yaml.SequenceNode):
            self.note(node, "type", "`shape` must be a word or a mapping, not a list", _SHAPES)
            return None
        if not isinstance(node, yaml.MappingNode):
            return self.value(node, "`shape`", _shape_word)
        keys = self.mapping(node, "`shape`", _SHAPE)
        if keys is None or len(keys) != 1:
            if keys is not None and len(keys) == len(node.value):
                self.note(node, "value", "`shape` takes exactly one of blocks_per_sm and dynamic_shared_memory")
            return None
        if "blocks_per_sm" in keys:
            return self.value(keys["blocks_per_sm"], "`blocks_per_sm`", _blocks)
        size = self._size(keys["dynamic_shared_memory"])
        if size == 0:
            self.note(keys["dynamic_shared_memory"], "size", "0 bytes change no launch", "write `shape: leave`")
        return None if size is None else Shape("bytes", size)

    # ---- parts that several keys share ----

    def _size(self, node: yaml.Node) -> int | None:
        """A size that one block can have on some GPU that the policy is for."""
        size = self.value(node, "a size", values.size)
        fitting = gpus.matching(self._gpus) or gpus.checkable()
        if size is None or not fitting:
            return size
        largest = max(fitting, key=lambda gpu: gpu.shared_memory_per_block)
        if size > largest.shared_memory_per_block:
            most = f"{largest.shared_memory_per_block:,} ({largest.name})"
            where = f"no GPU of this policy gives a block more than {most}"
            self.note(node, "size", f"a block cannot have {size:,} bytes: {where}")
            return None
        return size

    def _libraries(self, keys: Nodes, key: str) -> tuple[str, ...]:
        return self._optional(
            keys, key, lambda node: self._counted(node, self.values(node, f"`{key}`", values.library_pattern)), ()
        )

    def _counted(self, node: yaml.Node, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        before = self._patterns
        self._patterns += len(patterns or ())
        if before <= MAX_PATTERNS < self._patterns:
            self.note(node, "too-large", f"the policy has more than {MAX_PATTERNS:,} patterns")
        return patterns

    def _mapping_at(self, keys: Nodes, key: str, inner: Keys) -> Nodes:
        return self._optional(keys, key, lambda node: self.mapping(node, f"`{key}`", inner), {})

    def _optional(self, keys: Nodes, key: str, read: Callable[[yaml.Node], Value | None], default: Value) -> Value:
        """The default also stands in for what could not be read, as the finding already stops the policy."""
        found = read(keys[key]) if key in keys else None
        return default if found is None else found


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise Bad("value", f"{quote(text)} is not a name", "use up to 63 letters, digits and . _ -")
    return text


def _shape_word(text: str) -> Shape:
    if text in ("make_room", "quick_entry"):
        hint = "write {blocks_per_sm: 50%} or leave"
        raise Bad("not-yet", f"the shape `{text}` comes with a later version of overlap-run", hint)
    if text != "leave":
        hint = did_you_mean(text, ("leave",)) or _SHAPES
        raise Bad("value", f"{quote(text)} is not a shape", hint)
    return Shape()


def _blocks(text: str) -> Shape:
    if text.endswith("%"):
        return Shape("percent", values.percent(text))
    count = values.number(text, -(2**63), 2**63)
    if count < 1:
        raise Bad("blocks", f"a multiprocessor must keep at least 1 block, not {quote(text)}")
    if count > 2**32 - 1:
        raise Bad("blocks", f"no multiprocessor holds {quote(text)} blocks")
    return Shape("blocks", count)
