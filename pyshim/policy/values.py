"""The texts of single values (words, numbers, sizes, comparisons, patterns, variables), and what they become.

Each function returns what the text means or raises Bad with the sentence and the hint. Files and positions: elsewhere.

What ranks must agree on: an algorithm, a protocol, a number of threads, channels or blocks, a size of buffers that
differs in one rank makes the job hang, because each rank works out for itself what the others will do. A policy sets
no such variable, because it may be for some of the ranks only. NCCL_CGA_CLUSTER_SIZE is not among them: it only groups
the blocks of a launch of this rank.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Literal, TypeVar

from pyshim._native import ShapeKind
from pyshim.policy.finding import did_you_mean, quote

When = Literal["overlapping", "always"]

WHENS: tuple[When, ...] = ("overlapping", "always")
SHAPES: tuple[ShapeKind, ...] = ("leave", "make_room")
FAMILIES = ("all", "nccl", "rccl", "ncclx", "torch", "nvshmem", "deep_ep", "mscclpp", "vllm", "flashinfer", "ucc")

# Of a kernel's own resident blocks, in per cent: less than half costs more than overlap can gain.
KEEP = 50
# The largest value that the table's 64-bit ranges hold: no upper limit.
UNLIMITED = 2**64 - 1
MAX_THREADS = 1024


@dataclass(frozen=True)
class Range:
    """Inclusive; the default matches everything."""

    minimum: int = 0
    maximum: int = UNLIMITED


ANY = Range()


def either(words: tuple[str, ...]) -> str:
    """Return "a, b or c"."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


# ---- texts ----


Word = TypeVar("Word", bound=str)

_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")
SIZE = re.compile(r"(0|[1-9][0-9]{0,14}) ?(B|KiB|MiB|GiB)?")
_UNITS = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_COMPARISON = re.compile(r"(>=|<=|==|>|<)\s*(\S+)")
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,2}))?")
_OPERATORS = {"=": "==", "=>": ">=", "=<": "<=", "≥": ">=", "≤": "<=", "===": "==", ">>": ">", "<<": "<"}
_WILD = re.compile(r"[*?\[]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
# How the Itanium ABI spells what is not a plain identifier.
_ANONYMOUS = "12_GLOBAL__N_1"
MAX_PATTERN = 1000
_LARGEST = 10**17  # of a comparison: far beyond any grid, and far from the end of the table's 64 bits
_WIDER = "a rule that no launch matches does nothing: widen the comparison, or leave it out"


class Bad(Exception):
    """What is wrong with a value."""

    def __init__(self, code: str, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.hint = code, sentence, hint


@dataclass(frozen=True)
class Quantity:
    """What a range in `match` counts: its possible values, and in how many parts of one it is stored."""

    name: str
    lowest: int = 0
    highest: int = UNLIMITED
    parts: int = 1


def number(text: str, lowest: int, highest: int) -> int:
    """Parse a plain decimal number: readers disagree about YAML's other spellings (0x10, 010, 1_000)."""
    negative = text.startswith("-")
    if not _NUMBER.fullmatch(text[1:] if negative else text):
        raise Bad("type", f"{quote(text)} is not a whole number", "write decimal digits only")
    value = int(text)
    if not lowest <= value <= highest:
        sentence = f"{quote(text)} is not between {lowest:,} and {highest:,}"
        raise Bad("out-of-range", sentence, "write a number in between")
    return value


def size(text: str) -> int:
    found = SIZE.fullmatch(text)
    if not found:
        guess = re.fullmatch(r"([1-9][0-9]*) ?([kmg])(?:i?b?|bytes|ib?ytes)", text, re.IGNORECASE)
        hint = f"did you mean `{guess[1]}{guess[2].upper()}iB`?" if guess else "write 96KiB, 1MiB or a number of bytes"
        plain = re.fullmatch(r"([1-9][0-9]*) ?(b|bytes?)", text, re.IGNORECASE)
        hint = f"did you mean `{plain[1]}`?" if plain else hint
        raise Bad("size", f"{quote(text)} is not a size", hint)
    return int(found[1]) * _UNITS[found[2]]


def percent(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}%", text):
        guess = re.fullmatch(r"([1-9][0-9]?|100) ?%?", text)
        part = re.fullmatch(r"0?\.([0-9]{1,2})", text)
        share = int(part[1].ljust(2, "0")) if part else 0
        whole = guess[1] if guess else str(share) if share else ""
        hint = f"did you mean `{whole}%`?" if whole else "write a whole number and a per cent sign: 50%"
        raise Bad("percent", f"{quote(text)} is not a percentage", hint)
    value = int(text[:-1])
    if not 1 <= value <= 100:
        raise Bad("percent", f"{quote(text)} is not between 1% and 100%", "write a percentage in between: 50%")
    return value


def comparison(text: str, quantity: Quantity) -> Range:
    """Parse a number, or one of >= > <= < == and a number, as an inclusive range of stored values."""
    found = _COMPARISON.fullmatch(text)
    operator, operand = (found[1], found[2]) if found else ("==", text)
    decimal = _DECIMAL.fullmatch(operand)
    if not decimal or (decimal[2] and quantity.parts == 1):
        raise Bad("comparison", f"{quote(text)} is not a comparison", _comparison_hint(text, quantity))
    value = int(decimal[1]) * quantity.parts
    if decimal[2]:
        value += int(decimal[2].ljust(2, "0")) * quantity.parts // 100
    if value + (operator == ">") > _LARGEST:
        raise Bad("comparison", f"{quote(text)} is too large a number", "leave the limit out")
    if operator == ">=":
        return Range(value, UNLIMITED)
    if operator == ">":
        return Range(value + 1, UNLIMITED)
    if operator == "<=":
        return Range(0, value)
    if operator == "<":
        if value == 0:
            raise Bad("never", f"{quote(text)}: `{quantity.name}` is never below 0", _WIDER)
        return Range(0, value - 1)
    return Range(value, value)


def possible(asked: Range, text: str, quantity: Quantity) -> Range:
    """Return the range itself, if any value of the quantity lies in it."""
    minimum, maximum = max(asked.minimum, quantity.lowest), min(asked.maximum, quantity.highest)
    if minimum <= maximum:
        return asked
    if asked.minimum > asked.maximum:
        raise Bad("never", f"no number is both {text}", "look for a `<` and a `>` that have changed places")
    limit = f"at least {quantity.lowest:,}" if asked.maximum < quantity.lowest else f"at most {quantity.highest:,}"
    raise Bad("never", f"{quote(text)} never holds: `{quantity.name}` is {limit}", _WIDER)


def kernel_pattern(text: str) -> str:
    """Parse a glob on a kernel's name; a::b becomes what the mangled name holds, *1a1b*."""
    glob(text)
    if "::" not in text:
        return text
    mangled = []
    parts = text.split("::")
    for index, part in enumerate(parts):
        if part == "*" and index in (0, len(parts) - 1):
            continue  # the pattern ends in `*` on both sides anyway
        if part == "*":
            mangled.append("*")
        elif part == "(anonymous namespace)":
            mangled.append(_ANONYMOUS)
        elif part == "std" and index == 0:
            mangled.append("St")
        elif _IDENTIFIER.fullmatch(part):
            mangled.append(f"{len(part)}{part}")
        else:
            raise Bad(
                "pattern",
                f"{quote(text)}: between `::` stand whole names or a single `*`, and {quote(part)} is neither",
                "leave the namespace and the template arguments out, or match the mangled name",
            )
    return f"*{''.join(mangled)}*" if mangled else "*"


def library_pattern(text: str) -> str:
    if "/" in text:
        name = text.rsplit("/", 1)[1]
        hint = f"write {quote(name)}, without the folder" if name else "write the name of the file: libnccl.so*"
        raise Bad("pattern", f"{quote(text)}: a library is compared by its file name alone", hint)
    return glob(text)


def glob(text: str) -> str:
    if len(text) > MAX_PATTERN:
        raise Bad("pattern", f"{quote(text)} is longer than {MAX_PATTERN:,} characters", "write `*` for a part of it")
    rest = text
    while "[" in rest:
        # Behind `[` or `[!` the first character belongs to the set even if it is `]`.
        rest = rest.split("[", 1)[1]
        start = 2 if rest.startswith("!") else 1
        if "]" not in rest[start:]:
            raise Bad("pattern", f"{quote(text)} has a `[` without a `]`", "for the character itself write [[]")
        rest = rest[rest.index("]", start) + 1 :]
    return text


def is_wild(pattern: str) -> bool:
    return _WILD.search(pattern) is not None


def pattern_covers(wide: str, narrow: str) -> bool:
    """Return whether `wide` certainly matches every name that `narrow` matches."""
    if wide in (narrow, "*"):
        return True
    if not is_wild(narrow):
        return _compiled(wide).match(narrow) is not None
    # With stars alone in `wide`, wildcards of `narrow` can only fall to those stars: its text stands for all its names.
    # A set may hold a letter that `wide` asks for, so it cannot stand for itself.
    return "?" not in wide and "[" not in wide and "[" not in narrow and _compiled(wide).match(narrow) is not None


@lru_cache(maxsize=4096)  # as many as a policy may have; fnmatch itself keeps fewer
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _comparison_hint(text: str, quantity: Quantity) -> str:
    found = re.fullmatch(r"([^0-9\s]+)\s*([0-9.]+)", text)
    between = re.fullmatch(r"([0-9]+) ?(?:-|\.\.|to|:) ?([0-9]+)", text)
    if between:
        return f'did you mean [">={between[1]}", "<={between[2]}"]?'
    if found and found[1] in _OPERATORS:
        return f'did you mean "{_OPERATORS[found[1]]}{found[2]}"?'
    least = re.fullmatch(r"([0-9.]+) ?\+", text)
    if least:
        return f'did you mean ">={least[1]}"?'
    if quantity.parts > 1:
        return 'write ">=4", ">2", "<=8", "<8", "==3" or a number, with two decimals at most'
    return 'write ">=4", ">2", "<=8", "<8", "==3" or a whole number'


def choice(text: str, names: tuple[Word, ...], what: str) -> Word:
    """Parse one of a few words."""
    for name in names:
        if name == text:
            return name
    raise Bad("value", f"{quote(text)} is not {what}", did_you_mean(text, names) or f"write {either(names)}")


# ---- variables ----


VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_VARIABLE = 1000
# What YAML 1.1 reads as neither text nor number.
_BOOLEANS = ("true", "false", "yes", "no", "on", "off")

# Repeated by those who read a site's folder without Python (tests/slurm/test_readers.py names and compares them).
MUST_AGREE = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_*NTHREADS",
    "NCCL_*CTAS",
    "NCCL_CTA_POLICY",
    "NCCL_*NCHANNELS*",
    "NCCL_*NRINGS",
    "NCCL_*BUFFSIZE",
    "NCCL_*CHUNKSIZE",
    "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE",
    "RCCL_UNROLL_FACTOR",
    "RCCL_THREADS_PER_BLOCK",
    "RCCL_WARP_SPEED_*",
    "RCCL_MSCCL*",
)
# Ours, the loader's, the shell's and the interpreter's, and what launchers say to ranks.
NEVER = (
    "OVERLAP_*",
    "LD_*",
    "SIMGPU*",
    "TRITON_LIBCUDA_PATH",
    "GLIBC_TUNABLES",
    "PATH",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PYTHON*",
    "SLURM_*",
    "PMI*",
    "OMPI_*",
    "*VISIBLE_DEVICES",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
)


def variable_name(text: str) -> str:
    if not VARIABLE.fullmatch(text):
        hint = "use letters, digits and _, and begin with no digit"
        raise Bad("variable", f"{quote(text)} is not the name of a variable", hint)
    if _is_one(text, NEVER):
        raise Bad("variable", f"a policy does not set {quote(text)}", "set it where the program is started")
    if _is_one(text, MUST_AGREE):
        sentence = f"all ranks must agree on {quote(text)}, or the job hangs, and a policy may be for some of them only"
        raise Bad("must-agree", sentence, "set it where the job is started, for all ranks")
    return text


def variable_value(text: str) -> str:
    if len(text) > LONGEST_VARIABLE:
        sentence = f"{quote(text)} is longer than {LONGEST_VARIABLE:,} characters"
        raise Bad("variable", sentence, "set it where the program is started")
    if not all(" " <= character <= "~" for character in text):
        raise Bad("variable", f"{quote(text)} holds a character that not every launcher passes on", "use ASCII")
    return text


def is_boolean(text: str) -> bool:
    return text.casefold() in _BOOLEANS


def _is_one(text: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)
