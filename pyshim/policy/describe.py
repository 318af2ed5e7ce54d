"""The keys of a policy file in one table: what each is called, may say, defaults to and means.

The reader takes its keys and words from here, the JSON Schema and the reference in docs/ take everything. A path names
a key from the top: `communication.streams.priority`; `compute[]` is one rule.
"""

from __future__ import annotations

from typing import NamedTuple

from pyshim.enums import DISPATCHES, KNOWN_DISPATCHES
from pyshim.policy.model import ALL

WHENS = ("overlapping", "always")
STREAM_PRIORITIES = ("highest", "inherit")
PRIORITIES = ("auto", *STREAM_PRIORITIES)
SHAPES = ("leave", "make_room", "quick_entry")
CARVEOUTS = ("max", "always", "keep")
COMMUNICATION_CARVEOUTS = ("max", "keep")
YES_NO = ("true", "false")
CRITICALS = ("auto", "off")
FOOTPRINTS = ("measured",)

# Of a kernel's own resident blocks, in per cent: less than half costs more than overlap can gain.
KEEP = 50
# Of the device's computation, in per cent: a stream that has more gains nothing from being raised.
CRITICAL_SHARE = ALL.share
REQUIRED = "required"


class Key(NamedTuple):
    path: str
    type: str  # in words
    default: str  # in words; REQUIRED
    sentence: str
    example: str  # the value, as YAML

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def parent(self) -> str:
        """The path of the mapping that holds the key; empty for the file itself."""
        return self.path.rpartition(".")[0]

    @property
    def required(self) -> bool:
        return self.default == REQUIRED


def either(words: tuple[str, ...]) -> str:
    """a, b or c"""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


_PATTERNS = "a pattern, or a list of them"
_COMPARISON = 'a number, a comparison (">=4", ">2", "<=8", "<8", "==3"), or a list of two that must both hold'
_SIZE = "bytes, or a size: 96KiB, 1MiB"

KEYS: tuple[Key, ...] = (
    Key("policy", "1", REQUIRED, "The version of this format.", "1"),
    Key("name", "up to 63 letters, digits and . _ -", REQUIRED, "What reports call the policy.", "my-h100"),
    Key(
        "extends",
        "a name or a path",
        "none",
        "Another policy: own rules come first, own values stand over its values; kernels, libraries and variables are"
        " added to. A name is looked for beside the file, then as `--policy` does; a path starts from its folder.",
        "h100-paper",
    ),
    Key(
        "gpu",
        _PATTERNS,
        "every GPU",
        "The GPUs that the policy is for: the driver's names for them, or architectures.",
        '["NVIDIA H100*", sm_90]',
    ),
    Key(
        "when",
        either(WHENS),
        "overlapping",
        "Which launches rules act on: only those in an overlap window, or every one that matches.",
        "overlapping",
    ),
    Key(
        "dispatch",
        either(DISPATCHES),
        "unknown",
        "What these GPUs do while a raised block fits nowhere: hold lower-priority blocks back, only those of one"
        " multiprocessor (drain), or fill in with them. Where this says unknown, what `overlap probe` found counts.",
        "unknown",
    ),
    Key(
        "reads_dynamic_size",
        "a pattern or a set of kernels, or a list of them",
        "none",
        "Kernels that read the size of their dynamic shared memory; they are never shaped.",
        '["*staged*"]',
    ),
    Key(
        "critical",
        f"{', '.join(CRITICALS)}, or a mapping",
        "off",
        "Which streams are raised, with all that is launched on them: those that are waited for, unless they have a"
        " large part of the device's computation. auto: all three kinds.",
        "auto",
    ),
    Key("critical.communication", either(YES_NO), "true", "Streams on which communication runs.", "true"),
    Key(
        "critical.host_waits",
        either(YES_NO),
        "true",
        "Streams that the host waits for while other streams have work that is not known to be finished.",
        "true",
    ),
    Key("critical.feeding", either(YES_NO), "true", "Streams whose events a critical stream waits for.", "true"),
    Key(
        "critical.share",
        "a percentage",
        f"{CRITICAL_SHARE}%",
        "A stream with more than this share of the device's computation between two waits is left as it is.",
        f"{CRITICAL_SHARE}%",
    ),
    Key(
        "communication",
        "a mapping",
        "its keys have their defaults",
        "What is communication, and what is done to it.",
        "{priority: auto}",
    ),
    Key(
        "communication.kernels",
        "a family or a pattern, or a list of them",
        "every family",
        "Kernels that communicate. Known families are never shaped, whatever the list says; a list that names families"
        " without `all` raises the priority of these and of its patterns alone.",
        '[all, "*my_reduce*"]',
    ),
    Key(
        "communication.libraries",
        _PATTERNS,
        "none",
        "Whatever these libraries launch is communication. Compared with the name of the file.",
        '["libmycomm.so*"]',
    ),
    Key(
        "communication.priority",
        f"{either(PRIORITIES)}, or a number (lower is greater)",
        "auto",
        "Of communication launches. auto: the greatest that the device offers, until the program shows where that may"
        " harm; inherit: as the program has it. HIP knows no priority of a launch.",
        "auto",
    ),
    Key(
        "communication.streams",
        "a mapping",
        "none",
        "Streams whose priority is raised when they are created.",
        '{created_by: ["libnccl.so*"], priority: highest}',
    ),
    Key(
        "communication.streams.created_by",
        _PATTERNS,
        REQUIRED,
        "Streams that these libraries create.",
        '["libnccl.so*", "librccl.so*"]',
    ),
    Key(
        "communication.streams.priority",
        f"{either(STREAM_PRIORITIES)}, or a number (lower is greater)",
        REQUIRED,
        "The priority of those streams.",
        "highest",
    ),
    Key(
        "communication.footprint",
        "measured, or a mapping",
        "measured",
        "What one block of communication takes: the most of the communication kernels seen, or these numbers.",
        "{threads: 288, registers: 96, static_shared_memory: 21568, dynamic_shared_memory: 82240}",
    ),
    Key("communication.footprint.threads", "a whole number", REQUIRED, "Threads of a block.", "288"),
    Key("communication.footprint.registers", "a whole number", REQUIRED, "Registers of a thread.", "96"),
    Key("communication.footprint.static_shared_memory", _SIZE, REQUIRED, "Of a block.", "21568"),
    Key("communication.footprint.dynamic_shared_memory", _SIZE, REQUIRED, "Of a block.", "82240"),
    Key(
        "communication.carveout",
        either(COMMUNICATION_CARVEOUTS),
        "keep",
        "max: communication, too, asks for the largest part of a multiprocessor's memory as shared memory.",
        "keep",
    ),
    Key(
        "communication.reserve_cus",
        "a whole number",
        "0",
        "AMD: so many compute units less for streams that the program itself creates with a mask.",
        "8",
    ),
    Key(
        "communication.environment",
        "a mapping of variables to texts or numbers",
        "none",
        "Each set only if the user has not.",
        "{TORCH_NCCL_HIGH_PRIORITY: 1}",
    ),
    Key(
        "communication.all_ranks_environment",
        "a mapping of variables to texts or numbers",
        "none",
        "What ranks must agree on, or the job hangs: set only with `--all-ranks`, and only if the user has not.",
        "{NCCL_ALGO: Ring, NCCL_NTHREADS: 256}",
    ),
    Key(
        "compute",
        "a list of rules",
        "no rule",
        "The first rule that matches a launch decides; a launch that none matches is left alone.",
        "[{match: {kernel: gemm}, shape: make_room}]",
    ),
    Key("compute[].match", "a mapping", REQUIRED, "Which launches: all of its keys must hold.", "{kernel: gemm}"),
    Key(
        "compute[].match.kernel",
        "a pattern or a set of kernels, or a list of them",
        "any",
        "The kernel's name, as the driver gives it or plain. Sets: gemm, attention, elementwise, norm, optimizer.",
        '[gemm, "*my_kernel*", "at::native::add"]',
    ),
    Key(
        "compute[].match.library",
        _PATTERNS,
        "any",
        "The name of the file of the library that launches.",
        '"libcublasLt*"',
    ),
    Key("compute[].match.blocks", _COMPARISON, "any", "Blocks of the grid.", '">=1000"'),
    Key("compute[].match.threads", _COMPARISON, "any", "Threads of a block.", '[">=128", "<=256"]'),
    Key(
        "compute[].match.registers",
        _COMPARISON,
        "any",
        "Registers of a thread; on AMD VGPRs and AGPRs together.",
        '"<=128"',
    ),
    Key(
        "compute[].match.waves",
        f"{_COMPARISON}; two decimals",
        "any",
        "The grid over what the device holds of it at once.",
        '">=2.5"',
    ),
    Key(
        "compute[].match.resident_blocks",
        _COMPARISON,
        "any",
        "Blocks that one multiprocessor holds, as launched.",
        '">=2"',
    ),
    Key(
        "compute[].shape",
        f"{either(SHAPES)}, or one of blocks_per_sm and dynamic_shared_memory",
        REQUIRED,
        "What is done: nothing; the smallest dynamic shared memory with which a block of communication fits beside the"
        " blocks that stay, or as soon as one of them has ended; or a number of your own.",
        "make_room",
    ),
    Key(
        "compute[].shape.blocks_per_sm",
        "a whole number, or a percentage of the kernel's own",
        "none",
        "The smallest size with at most so many resident blocks.",
        "50%",
    ),
    Key(
        "compute[].shape.dynamic_shared_memory",
        _SIZE,
        "none",
        "At least so much; a launch is never given less than it asked for.",
        "96KiB",
    ),
    Key(
        "compute[].keep_at_least",
        "a percentage",
        f"{KEEP}% for make_room and quick_entry, else none",
        "Leave the launch alone rather than keep less of its own resident blocks.",
        "50%",
    ),
    Key("compute[].when", either(WHENS), "the policy's", "Which launches this rule acts on.", "always"),
    Key(
        "compute[].when_dispatch",
        either(KNOWN_DISPATCHES),
        "any",
        "The rule acts only if `dispatch` says so.",
        "backfill",
    ),
    Key(
        "compute[].carveout",
        either(CARVEOUTS),
        "max, and keep for `leave`",
        "Ask for the largest part of a multiprocessor's memory as shared memory: max, for launches that the rule"
        " changes; always, also for those that have room as they are.",
        "max",
    ),
)


def below(path: str) -> tuple[Key, ...]:
    """The keys of one mapping, in the order in which they are named."""
    return tuple(key for key in KEYS if key.parent == path)
