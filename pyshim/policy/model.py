"""What a policy file says, after every check: frozen values, no text, no positions but the rules' lines.

Its fields are the table of keys, in the order of the reference; those of mappings inside are in streams.py and rule.py.
key.py says what an entry does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyshim.policy.finding import quote
from pyshim.policy.key import REQUIRED, Key, Kind, Schema, Section, all_keys, key, shown
from pyshim.policy.kinds import SINGLE, Text, single
from pyshim.policy.lists import CommunicationKernels, Gpus, Kernels, Libraries, Variables
from pyshim.policy.rule import Match, Rule, Shape
from pyshim.policy.streams import AUTO, OFF, WORDS, RaiseKind
from pyshim.policy.values import Bad
from pyshim.policy.words import (
    ANY,
    UNLIMITED,
    Range,
    either,
)

# The values of a policy, for those who make or read one.
__all__ = ["ANY", "AUTO", "KEYS", "MAX_RULES", "OFF", "UNLIMITED", "VERSION"]
__all__ += ["Match", "Policy", "Range", "Rule", "Shape"]

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
    # Per cent; OFF: none is raised.
    raise_share: int = key(AUTO, "streams.raise", RaiseKind(), f"{', '.join(WORDS)}, or a mapping", "auto",
        "Streams that something waits for, if they carry at most a share of the device's computation: half of it"
        " (auto), or your own. A program that sets priorities itself is left alone.", "auto")
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
