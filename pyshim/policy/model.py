"""What a policy file says, after every check: frozen values, no text, no positions but the rules' lines.

Its fields are the table of keys, in the order of the reference; those of mappings inside are in critical.py,
footprint.py, trial.py and rule.py. key.py says what an entry does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyshim.policy import checks, variables
from pyshim.policy.critical import ALL, OFF, Critical, CriticalKind
from pyshim.policy.finding import quote
from pyshim.policy.footprint import Footprint, FootprintKind
from pyshim.policy.key import REQUIRED, Key, Kind, Schema, Section, all_keys, key, shown
from pyshim.policy.kinds import SINGLE, Priorities, Text, Whole, Word, single
from pyshim.policy.lists import CommunicationKernels, Families, Gpus, Kernels, Libraries, Variables
from pyshim.policy.rule import Match, Rule, Shape
from pyshim.policy.trial import Trial, TrialKind
from pyshim.policy.values import Bad
from pyshim.policy.words import (
    ANY,
    AUTO,
    COMMUNICATION_CARVEOUTS,
    CRITICALS,
    DISPATCHES,
    INHERIT,
    PRIORITIES,
    STREAM_PRIORITIES,
    UNLIMITED,
    WHENS,
    Carveout,
    Dispatch,
    Priority,
    Range,
    When,
    either,
)

# The values of a policy, for those who make or read one.
__all__ = ["ALL", "ANY", "AUTO", "KEYS", "MAX_RULES", "OFF", "UNLIMITED", "VERSION"]
__all__ += ["Critical", "Dispatch", "Footprint", "Match", "Policy", "Priority", "Range", "Rule", "Shape"]

VERSION = 1
# The table that travels in the environment holds fewer.
MAX_RULES = 600
# More than any GPU has; one that is not known by name is not compared with its own number.
_MAX_COMPUTE_UNITS = 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # the page that reports are made from holds 64 bytes
_PATTERNS = "a pattern, or a list of them"
_CARRYING = "write `critical: auto`, or `critical: {host_waits: false, feeding: false}`, at the top level"


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
    # That of rules which do not say it.
    when: ClassVar[Key] = Key("when", Word[When](WHENS, "a time", "when"), either(WHENS), "overlapping",
        "Which launches rules act on: only those in an overlap window, or every one that matches.", "overlapping")
    dispatch: Dispatch = key("unknown", "dispatch", Word(DISPATCHES, "a way of dispatching", "dispatch"),
        either(DISPATCHES), "unknown",
        "What these GPUs do while a raised block fits nowhere: hold lower-priority blocks back, only those of one"
        " multiprocessor (drain), or fill in with them. Where this says unknown, what `overlap probe` found counts.",
        "unknown")
    # Patterns, and words of kernels.py.
    fixed_size: tuple[str, ...] = key((), "reads_dynamic_size", Kernels(adds=True),
        "a pattern or a set of kernels, or a list of them", "none",
        "Kernels that read the size of their dynamic shared memory; they are never shaped.", '["*staged*"]')
    critical: Critical = key(OFF, "critical", CriticalKind(), f"{', '.join(CRITICALS)}, or a mapping", "off",
        "Which streams are raised, with all that is launched on them: those that are waited for, unless they have a"
        " large part of the device's computation. auto: all three kinds.", "auto")
    communication: ClassVar[Key] = Key("communication", Section(), "a mapping", "its keys have their defaults",
        "What is communication, and what is done to it.", "{priority: auto}")
    families: tuple[str, ...] = key((), "communication.kernels", Families())
    kernels: tuple[str, ...] = key((), "communication.kernels", CommunicationKernels(adds=True),
        "a family or a pattern, or a list of them", "every family",
        "Kernels that communicate. Known families are never shaped, whatever the list says; a list that names families"
        " without `all` raises the priority of these and of its patterns alone.", '[all, "*my_reduce*"]')
    libraries: tuple[str, ...] = key((), "communication.libraries", Libraries(adds=True), _PATTERNS, "none",
        "Whatever these libraries launch is communication. Compared with the name of the file.", '["libmycomm.so*"]')
    priority: Priority = key(AUTO, "communication.priority", Priorities(PRIORITIES, checks.launch_priority),
        f"{either(PRIORITIES)}, or a number (lower is greater)", "auto",
        "Of communication launches. auto: the greatest that the device offers, until the program shows where that may"
        " harm; inherit: as the program has it. HIP knows no priority of a launch.", "auto")
    streams: ClassVar[Key] = Key("communication.streams", Section(gone={"carrying_communication": _CARRYING}),
        "a mapping", "none", "Streams whose priority is raised when they are created.",
        '{created_by: ["libnccl.so*"], priority: highest}')
    stream_creators: tuple[str, ...] = key((), "communication.streams.created_by", Libraries(), _PATTERNS, REQUIRED,
        "Streams that these libraries create.", '["libnccl.so*", "librccl.so*"]')
    stream_priority: Priority = key(INHERIT, "communication.streams.priority", Priorities(STREAM_PRIORITIES),
        f"{either(STREAM_PRIORITIES)}, or a number (lower is greater)", REQUIRED, "The priority of those streams.",
        "highest")
    # None: measured.
    footprint: Footprint | None = key(None, "communication.footprint", FootprintKind(), "measured, or a mapping",
        "measured",
        "What one block of communication takes: the most of the communication kernels seen, or these numbers.",
        "{threads: 288, registers: 96, static_shared_memory: 21568, dynamic_shared_memory: 82240}")
    communication_carveout: Carveout = key("keep", "communication.carveout",
        Word(COMMUNICATION_CARVEOUTS, "a carve-out", "carveout"), either(COMMUNICATION_CARVEOUTS), "keep",
        "max: communication, too, asks for the largest part of a multiprocessor's memory as shared memory.", "keep",
        "carveout")
    reserve_cus: int = key(0, "communication.reserve_cus", Whole(0, _MAX_COMPUTE_UNITS, checks.reserve_cus),
        "a whole number", "0",
        "AMD: so many compute units less for streams that the program itself creates with a mask.", "8")
    environment: Mapping[str, str] = key({}, "communication.environment", Variables(variables.ENVIRONMENT),
        "a mapping of variables to texts or numbers", "none", "Each set only if the user has not.",
        "{TORCH_NCCL_HIGH_PRIORITY: 1}")
    all_ranks_environment: Mapping[str, str] = key({}, "communication.all_ranks_environment",
        Variables(variables.ALL_RANKS), "a mapping of variables to texts or numbers", "none",
        "What ranks must agree on, or the job hangs: set only with `--all-ranks`, and only if the user has not.",
        "{NCCL_ALGO: Ring, NCCL_NTHREADS: 256}")
    rules: tuple[Rule, ...] = key((), "compute", _Rules(), "a list of rules", "no rule",
        "The first rule that matches a launch decides; a launch that none matches is left alone.",
        "[{match: {kernel: gemm}, shape: make_room}]")
    trial: Trial | None = key(None, "trial", TrialKind(), "a mapping", "none",
        "Compares this policy, as the reference, with others in one process, by the program's own pace.",
        "{arms: [critical-streams, raised-communication]}")
    # fmt: on


KEYS = all_keys(Policy)
