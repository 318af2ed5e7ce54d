"""What a policy file says, after every check: frozen values, no text, no positions but the rules' lines.

The fields of Policy, Raise, Match, Shape and Rule are the table of keys, in the order of the reference; kinds.py says
what an entry does. At the end: a policy as YAML, and the JSON Schema of policy files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import yaml

from pyshim._native import ShapeKind, shape_words
from pyshim.counts import counted
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.kernel_sets import expanded
from pyshim.policy.kinds import (
    REQUIRED,
    SINGLE,
    CommunicationKernels,
    Comparison,
    Gpus,
    Kernels,
    Key,
    Kind,
    Libraries,
    Number,
    Packed,
    PartsReader,
    Percent,
    Schema,
    Section,
    Size,
    Text,
    Variables,
    Word,
    all_keys,
    any_of,
    below,
    key,
    mapping,
    member,
    packed,
    shown,
    single,
    whole_form,
    words_form,
)
from pyshim.policy.values import (
    ANY,
    KEEP,
    MAX_THREADS,
    SHAPES,
    WHENS,
    Bad,
    Range,
    When,
    either,
    number,
    percent,
)

# Per cent of the device's computation that a raised stream has at most. OBSERVED, as in the table: judged by half of
# it, and not raised.
NONE_RAISED, HALF, OBSERVED = 0, 50, 150
RAISES = {"auto": HALF, "off": NONE_RAISED, "observe": OBSERVED}
_PATH = "streams.raise"
_FORMS = f"write auto, off, observe or a share of the computation: {{share: {HALF}%}}"
# What is written elsewhere for a thing that is on or off.
_MEANT = {"on": "auto", "yes": "auto", "true": "auto", "highest": "auto", "all": "auto"}
_MEANT |= dict.fromkeys(("no", "false", "none", "never", "inherit"), "off")


@dataclass(frozen=True)
class Raise:
    # fmt: off
    share: int = key(HALF, f"{_PATH}.share", Percent(), "a percentage", REQUIRED,
        "A stream that carries more of the device's computation is not raised.", f"{HALF}%")
    # fmt: on


class RaiseKind(Number):
    """The largest share in per cent, or one of RAISES."""

    holder = Raise

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> int | None:
        if isinstance(node, yaml.SequenceNode):
            reader.note(node, "type", "`raise` must be auto, off, observe or a mapping, not a list", _FORMS)
            return None
        if not isinstance(node, yaml.MappingNode):
            word = reader.value(node, "`raise`", _word)
            return None if word is None else RAISES[word]
        found = mapping(reader, node, "`raise`", Raise, key.path)
        share = found[1].get("share") if found else None
        return share if isinstance(share, int) else None

    def form(self) -> Schema:
        return words_form(tuple(RAISES))

    def shown(self, value: int) -> object:
        words = {share: word for word, share in RAISES.items()}
        return words.get(value) or shown(Raise(value), _PATH)


def _word(text: str) -> str:
    if text in RAISES:
        return text
    meant = _MEANT.get(text.casefold()) or (f"{{share: {text}}}" if text.endswith("%") else "")
    hint = f"did you mean `{meant}`?" if meant else did_you_mean(text, tuple(RAISES)) or _FORMS
    raise Bad("value", f"{quote(text)} is not auto, off, observe or a mapping", hint)


# ---- compute ----


def resident_blocks(reader: PartsReader, node: yaml.Node, found: Range) -> Range:
    most = reader.most_blocks()
    if most and found.minimum > most:
        sentence = (
            f"no GPU of this policy holds more than {counted(most, 'block')} on a multiprocessor: this never holds"
        )
        reader.note(node, "never", sentence, f"ask for {most} or fewer", "warning")
    return found


def blocks_per_sm(reader: PartsReader, node: yaml.Node, found: int) -> None:
    most = reader.most_blocks()
    if most and found >= most:
        sentence = f"no GPU of this policy holds more than {counted(most, 'block')} at once, so this changes nothing"
        hint = f"did you mean `{found}%`, of the kernel's own?" if found <= 100 else "write fewer"
        reader.note(node, "blocks", sentence, hint, "warning")


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
    resident_blocks: Range = key(ANY, "compute[].match.resident_blocks", Comparison(1, check=resident_blocks),
        _COMPARISON, "any", "Blocks that one multiprocessor holds, as launched.", '">=2"')
    # Words of kernels.py.
    sets: tuple[str, ...] = key((), "compute[].match.kernel", Kernels(which="sets"), packed_as="kernels")
    # fmt: on

    def patterns(self) -> tuple[str, ...]:
        """Return all patterns that `kernel` stands for."""
        return self.kernels + expanded(self.sets)


class _MatchKind(Kind[Match]):
    holder = Match
    together: ClassVar[Schema] = {"minProperties": 1}

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Match | None:
        found = mapping(reader, node, "`match`", Match, key.path)
        if found is None:
            return None
        if isinstance(node, yaml.MappingNode) and not node.value:
            reader.note(node, "type", "`match` is empty", 'for every kernel write {kernel: "*"}')
        return Match(**found[1])

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
            blocks_per_sm(reader, node, found.value)
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
        words = shape_words(value.kind, value.value)
        return words if isinstance(words, str) else dict([words])

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
    if text not in SHAPES:
        raise Bad("value", f"{quote(text)} is not a shape", did_you_mean(text, SHAPES) or _SHAPES)
    return Shape(cast(ShapeKind, text))


def _blocks(text: str) -> Shape:
    if text.endswith("%"):
        return Shape("percent", percent(text))
    hint = "write 1 or more, or a percentage of the kernel's own: 50%"
    try:
        count = number(text, -(2**63), 2**63)
    except Bad as bad:
        raise Bad(bad.code, bad.sentence, hint) from bad
    if count < 1:
        raise Bad("blocks", f"a multiprocessor must keep at least 1 block, not {quote(text)}", hint)
    if count > _MAX_BLOCKS_PER_SM:
        raise Bad("blocks", f"no multiprocessor holds {quote(text)} blocks", "write a number such as 1, or 50%")
    return Shape("blocks", count)


# ---- the policy ----


VERSION = 1
# The table that travels in the environment holds fewer.
MAX_RULES = 768
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # the page that reports are made from holds 64 bytes
_PATTERNS = "a pattern, or a list of them"
_CREATORS = {"nccl": "libnccl.so*", "rccl": "librccl.so*"}


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise Bad("value", f"{quote(text)} is not a name", "use up to 63 letters, digits and . _ -")
    return text


class _Rules(Kind[tuple[Rule, ...]]):
    """Read by rules.py, packed by table.py."""

    holder = Rule

    def form(self) -> Schema:
        return {"type": "array", "maxItems": MAX_RULES}

    def shown(self, value: tuple[Rule, ...]) -> object:
        return [shown(rule, "compute[]") for rule in value]


@dataclass(frozen=True)
class Policy:
    # fmt: off
    version: ClassVar[Key] = Key("policy", Text(str, {"enum": [VERSION, str(VERSION)]}), str(VERSION), REQUIRED,
        "The version of this format.", str(VERSION))
    name: str = key("", "name", Text(_name, {"type": SINGLE, "pattern": f"^{_NAME.pattern}$", "minimum": 0}),
        "up to 63 letters, digits and . _ -", REQUIRED, "What reports call the policy.", "my-h100")
    extends: ClassVar[Key] = Key("extends", Text(str, single()), "a name or a path", "none",
        "Another policy: own rules come first, own values stand over its values; kernels, libraries and variables are"
        " added to. A name is looked for beside the file, then as `--policy` does; a path starts from its folder.",
        "h100-paper")
    gpus: tuple[str, ...] = key((), "gpu", Gpus(), _PATTERNS, "every GPU",
        "The GPUs that the policy is for: the driver's names for them, or architectures.", '["NVIDIA H100*", sm_90]')
    streams: ClassVar[Key] = Key("streams", Section(), "a mapping", "its keys have their defaults",
        "Which streams get the greatest priority of the device, with all that is launched on them.", "{raise: auto}")
    # Per cent, or one of RAISES.
    raise_share: int = key(HALF, "streams.raise", RaiseKind(), f"{', '.join(RAISES)}, or a mapping", "auto",
        "Streams that something waits for, if they carry at most a share of the device's computation: half of it"
        " (auto), or your own. A program that sets priorities itself is left alone. observe: judged as under auto,"
        " counted and not raised.", "auto")
    stream_creators: tuple[str, ...] = key((), "streams.created_by", Libraries(words=_CREATORS),
        f"{either(tuple(_CREATORS))}, or {_PATTERNS}", "none",
        "Libraries whose streams get it at their creation. Compared with the name of the file. On AMD no other stream"
        " can be raised.", "[nccl, rccl]")
    environment: Mapping[str, str] = key({}, "environment", Variables(),
        "a mapping of variables to texts or numbers", "none", "Each set only if the user has not.",
        "{TORCH_NCCL_HIGH_PRIORITY: 1}")
    communication: ClassVar[Key] = Key("communication", Section(), "a mapping",
        "its keys have their defaults", "What is communication.", '{kernels: [all, "*my_reduce*"]}')
    kernels: tuple[str, ...] = key((), "communication.kernels", CommunicationKernels(adds=True),
        "a family or a pattern, or a list of them", "every family",
        "Kernels that communicate. Known families always do, whatever the list says.", '[all, "*my_reduce*"]')
    libraries: tuple[str, ...] = key((), "communication.libraries", Libraries(adds=True), _PATTERNS, "none",
        "Whatever these libraries launch is communication. Compared with the name of the file.", '["libmycomm.so*"]')
    rules: tuple[Rule, ...] = key((), "compute", _Rules(), "a list of rules", "no rule",
        "The first rule that matches a launch decides; a launch that none matches is left alone.",
        "[{match: {kernel: gemm}, shape: make_room}]")
    # Patterns, and words of kernels.py.
    fixed_size: tuple[str, ...] = key((), "fixed_size", Kernels(adds=True),
        "a pattern or a set of kernels, or a list of them", "none",
        "Kernels that read the size of their dynamic shared memory; they are never shaped.", '["*staged*"]')
    # fmt: on


KEYS = all_keys(Policy)


# ---- as YAML, and the schema ----


def as_values(policy: Policy) -> dict[str, Any]:
    """Return a policy as texts, numbers, lists and mappings; without keys that are not said and have no default."""
    values: dict[str, Any] = _said({"policy": VERSION, **shown(policy, "")})
    return values


def as_text(policy: Policy) -> str:
    return yaml.safe_dump(as_values(policy), sort_keys=False, default_flow_style=None, width=100)


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value


def schema_text() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=True) + "\n"


def schema() -> Schema:
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "overlap-run policy", **_mapping("")}


def _mapping(path: str, together: Schema | None = None) -> Schema:
    keys = below(path, KEYS)
    required = [key.name for key in keys if key.required]
    return {
        "type": "object",
        "properties": {key.name: _described(key) for key in keys},
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **(together or {}),
    }


def _described(key: Key) -> Schema:
    default = "Required." if key.required else f"Default: {key.default}."
    return {
        "description": f"{key.sentence} {key.type[0].upper()}{key.type[1:]}. {default}",
        "examples": [yaml.safe_load(key.example)],
        **_form(key),
    }


def _form(key: Key) -> Schema:
    form = key.kind.form()
    if below(f"{key.path}[]", KEYS):
        return {**form, "items": _mapping(f"{key.path}[]")}
    if not below(key.path, KEYS):
        return form
    inside = _mapping(key.path, key.kind.together)
    return {"anyOf": [form, inside]} if form else inside
