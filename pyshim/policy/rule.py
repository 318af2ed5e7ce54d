"""The keys of one rule of `compute`: which launches it is for, and what it does to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, cast

import yaml

from pyshim.policy import checks, gone, kernels, values
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.key import REQUIRED, Key, Kind, Packed, Schema, key, made, mapping, packed, shown
from pyshim.policy.kinds import Comparison, Percent, Size, Word, any_of, member, whole_form, words_form
from pyshim.policy.lists import Kernels, Libraries
from pyshim.policy.parts import PartsReader
from pyshim.policy.values import Bad
from pyshim.policy.words import (
    ANY,
    KEEP,
    MAX_THREADS,
    SHAPES,
    WHENS,
    Range,
    ShapeKind,
    When,
    either,
)

# What the table has room for.
_MAX_BLOCKS_PER_SM = 2**32 - 1
_SHAPES = "write leave, make_room, {blocks_per_sm: 1}, {blocks_per_sm: 50%} or {dynamic_shared_memory: 96KiB}"
_SIZE = "bytes, or a size: 96KiB, 1MiB"
_COMPARISON = "a number, a comparison, or a list of two that must both hold"


@dataclass(frozen=True)
class Match:
    """All of it must hold; an empty tuple of patterns asks for nothing. Of kernels and sets together any may match."""

    # fmt: off
    kernels: tuple[str, ...] = key((), "compute[].match.kernel", Kernels(which="patterns"),
        "a pattern or a set of kernels, or a list of them", "any",
        "The kernel's name, as the driver gives it or plain. Sets: gemm, attention, elementwise, norm, optimizer.",
        '[gemm, "*my_kernel*", "at::native::add"]')
    libraries: tuple[str, ...] = key((), "compute[].match.library", Libraries(), "a pattern, or a list of them", "any",
        "The name of the file of the library that launches.", '"libcublasLt*"')
    threads: Range = key(ANY, "compute[].match.threads", Comparison(1, MAX_THREADS), _COMPARISON, "any",
        "Threads of a block.", '[">=128", "<=256"]')
    waves_percent: Range = key(ANY, "compute[].match.waves", Comparison(parts=100), f"{_COMPARISON}; two decimals",
        "any", "The grid over what the device holds of it at once.", '">=2.5"')
    resident_blocks: Range = key(ANY, "compute[].match.resident_blocks", Comparison(1, check=checks.resident_blocks),
        _COMPARISON, "any", "Blocks that one multiprocessor holds, as launched.", '">=2"')
    # Words of kernels.py.
    sets: tuple[str, ...] = key((), "compute[].match.kernel", Kernels(which="sets"), packed_as="kernels")
    # fmt: on

    def patterns(self) -> tuple[str, ...]:
        """Return all patterns that `kernel` stands for."""
        return self.kernels + kernels.expanded(self.sets)


class _MatchKind(Kind[Match]):
    holder = Match
    together: ClassVar[Schema] = {"minProperties": 1}

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Match | None:
        found = mapping(reader, node, "`match`", Match, key.path)
        if found is None:
            return None
        if isinstance(node, yaml.MappingNode) and not node.value:
            reader.note(node, "type", "`match` is empty", 'for every kernel write {kernel: "*"}')
        return made(Match, found[1])

    def shown(self, value: Match) -> Mapping[str, object]:
        asked = {key: one for key, one in shown(value, "compute[].match").items() if one}
        # Every key of it may ask for what every launch has.
        return asked or {"waves": ">=0"}

    def packed(self, value: Match, name: str) -> dict[str, Packed]:
        return packed(value)


class _Blocks(Kind["Shape"]):
    """A number, or a percentage."""

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Shape | None:
        found = reader.value(node, f"`{key.name}`", _blocks)
        if found and found.kind == "blocks":
            checks.blocks_per_sm(reader, node, found.value)
        return found

    def form(self) -> Schema:
        return any_of(whole_form(1, _MAX_BLOCKS_PER_SM), Percent().form())


@dataclass(frozen=True)
class Shape:
    # fmt: off
    kind: ShapeKind = "leave"
    value: int = 0
    blocks_per_sm: ClassVar[Key] = Key("compute[].shape.blocks_per_sm", _Blocks(),
        "a whole number, or a percentage of the kernel's own", "none",
        "The smallest size with at most so many resident blocks.", "50%")
    dynamic_shared_memory: ClassVar[Key] = Key("compute[].shape.dynamic_shared_memory", Size(lowest=1), _SIZE, "none",
        "At least so much; a launch is never given less than it asked for.", "96KiB")
    # fmt: on


class _ShapeKind(Kind[Shape]):
    holder = Shape
    together: ClassVar[Schema] = {"minProperties": 1, "maxProperties": 1}

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Shape | None:
        if isinstance(node, yaml.SequenceNode):
            reader.note(node, "type", "`shape` must be a word or a mapping, not a list", _SHAPES)
            return None
        if not isinstance(node, yaml.MappingNode):
            return reader.value(node, "`shape`", _shape_word)
        found = mapping(reader, node, "`shape`", Shape, key.path)
        if found is None or len(found[0]) != 1:
            if found is not None and found[0].clean:
                sentence = "`shape` takes exactly one of blocks_per_sm and dynamic_shared_memory"
                reader.note(node, "value", sentence, "keep one of them" if found[0] else _SHAPES)
            return None
        ((name, inner),) = found[0].items()
        if name == Shape.blocks_per_sm.name:
            return cast("Shape | None", Shape.blocks_per_sm.kind.read(reader, inner, Shape.blocks_per_sm))
        size = Size().read(reader, inner, Shape.dynamic_shared_memory)
        if size == 0:
            reader.note(inner, "size", "0 bytes change no launch", "write `shape: leave`")
        return None if size is None else Shape("bytes", size)

    def form(self) -> Schema:
        return words_form(SHAPES)

    def shown(self, value: Shape) -> str | dict[str, str]:
        if value.kind in ("blocks", "percent"):
            return {"blocks_per_sm": f"{value.value}{'%' if value.kind == 'percent' else ''}"}
        if value.kind == "bytes":
            size = value.value
            return {"dynamic_shared_memory": f"{size >> 10}KiB" if size and size % 1024 == 0 else str(size)}
        return value.kind

    def packed(self, value: Shape, name: str) -> dict[str, Packed]:
        return {name: member("shape", value.kind), "value": value.value}


@dataclass(frozen=True)
class Rule:
    # fmt: off
    match: Match = key(Match(), "compute[].match", _MatchKind(), "a mapping", REQUIRED,
        "Which launches: all of its keys must hold.", "{kernel: gemm}")
    shape: Shape = key(Shape(), "compute[].shape", _ShapeKind(),
        f"{either(SHAPES)}, or one of blocks_per_sm and dynamic_shared_memory", REQUIRED,
        "What is done: nothing; the smallest dynamic shared memory with which a block of communication fits beside the"
        " blocks that stay; or a number of your own.", "make_room")
    # Per cent; 0: not asked for.
    keep_at_least: int = key(0, "compute[].keep_at_least", Percent(), "a percentage",
        f"{KEEP}% for make_room, else none",
        "Leave the launch alone rather than keep less of its own resident blocks.", "50%")
    when: When = key("overlapping", "compute[].when", Word(WHENS, "a time", "when"), either(WHENS), "overlapping",
        "Which launches the rule acts on: only those in an overlap window, or every one that matches.", "always")
    line: int = 0  # in the policy file, from 1
    file: str = field(default="", compare=False)  # which has that line; empty for what is in none
    depth: int = field(default=0, compare=False)  # how many `extends` lead from the policy to that file
    guard: bool = False  # added by us: spares kernels that only look like those of the next rule
    # fmt: on


def _shape_word(text: str) -> Shape:
    if text in gone.SHAPES:
        raise Bad("value", f"the shape {quote(text)} is gone", gone.SHAPES[text])
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
    if count > _MAX_BLOCKS_PER_SM:
        raise Bad("blocks", f"no multiprocessor holds {quote(text)} blocks", "write a number such as 1, or 50%")
    return Shape("blocks", count)
