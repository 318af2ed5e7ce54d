"""What several keys of a policy file share: patterns, sizes, priorities, keys that may be left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import yaml

from pyshim.policy import gpus, kernels, known, values
from pyshim.policy.describe import COMMUNICATION_CARVEOUTS
from pyshim.policy.finding import Severity, closest, quote
from pyshim.policy.model import Carveout, Priority
from pyshim.policy.nodes import Nodes, Walker

Value = TypeVar("Value")

# The table that travels in the environment holds fewer; beyond this a file is not worth comparing rule by rule.
MAX_PATTERNS = 2000
MAX_THREADS = 1024
MAX_REGISTERS = 512


class Remark(NamedTuple):
    node: yaml.Node
    text: str  # of a pattern, as it is written
    pattern: str  # as it is read


class PartsReader(Walker):
    def __init__(self) -> None:
        super().__init__()
        self.gpus: tuple[str, ...] = ()  # that the policy is for
        self.gpus_known = True  # all of them, so that a number can be compared with what they have
        self.patterns = 0  # read so far, sets counted in full

    def optional(self, keys: Nodes, key: str, read: Callable[[yaml.Node], Value | None], default: Value) -> Value:
        """The default also stands in for what could not be read, as the finding already stops the policy."""
        found = read(keys[key]) if key in keys else None
        return default if found is None else found

    def word(self, node: yaml.Node, key: str, words: tuple[str, ...], what: str) -> str | None:
        return self.value(node, f"`{key}`", lambda text: values.choice(text, words, what))

    def carveout(self, node: yaml.Node, words: tuple[str, ...] = COMMUNICATION_CARVEOUTS) -> Carveout | None:
        return cast("Carveout | None", self.word(node, "carveout", words, "a carve-out"))

    def size(self, node: yaml.Node) -> int | None:
        """A size that one block can have on some GPU. One that no GPU of this policy gives is only warned of: what it
        extends, or what extends it, may be for others."""
        size = self.value(node, "a size", values.size)
        if size is None or not gpus.checkable():
            return size
        checks: tuple[tuple[tuple[gpus.KnownGpu, ...], Severity], ...] = (
            (gpus.checkable(), "error"),
            (gpus.matching(self.gpus) if self.gpus_known else (), "warning"),
        )
        for fitting, severity in checks:
            most = max(fitting, key=lambda gpu: gpu.shared_memory_per_block, default=None)
            if most is None or size <= most.shared_memory_per_block:
                continue
            none = "no known GPU" if severity == "error" else "no GPU of this policy"
            limit = f"{none} gives a block more than {most.shared_memory_per_block:,} ({most.name})"
            hint = f"write at most {most.shared_memory_per_block // 1024}KiB"
            self.note(node, "size", f"a block cannot have {size:,} bytes: {limit}", hint, severity)
            return None if severity == "error" else size
        return size

    def priority(self, node: yaml.Node, words: tuple[str, ...]) -> Priority | None:
        def parse(text: str) -> Priority:
            if re.fullmatch(r"[-0-9].*", text):
                return Priority("number", values.number(text, -(2**31), 2**31 - 1))
            word = values.choice(text, words, "a priority")
            return Priority("highest" if word == "highest" else "auto" if word == "auto" else "inherit")

        return self.value(node, "`priority`", parse)

    def kernels(
        self, node: yaml.Node, key: str, unremarked: list[Remark] | None = None
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Patterns, and the sets among them by their words. unremarked: takes those of which no warning is told."""
        found = self.values(node, f"`{key}`", lambda text: (text, values.kernel_pattern(text)))
        if found is None:
            return None
        words = tuple(text for text, _ in found if text in kernels.SETS)
        for item, (text, pattern) in zip(items(node), found):
            if text in kernels.SETS or self._note_near_set(item, text):
                continue
            near = known.near_miss(text)
            self.note_bad(item, near)
            if near is None and unremarked is not None:
                unremarked.append(Remark(item, text, pattern))
        self.count(node, sum(len(kernels.SETS.get(text, "1")) for text, _ in found))
        return tuple(pattern for text, pattern in found if text not in kernels.SETS), words

    def libraries(self, keys: Nodes, key: str) -> tuple[str, ...]:
        def read(node: yaml.Node) -> tuple[str, ...] | None:
            found = self.values(node, f"`{key}`", values.library_pattern)
            self.count(node, len(found or ()))
            for item, pattern in zip(items(node), found or ()):
                self.note_bad(item, known.library_miss(pattern))
            return found

        return self.optional(keys, key, read, ())

    def count(self, node: yaml.Node, patterns: int) -> None:
        before = self.patterns
        self.patterns += patterns
        if before <= MAX_PATTERNS < self.patterns:
            hint = "one pattern with a `*` may stand for many names"
            self.note(node, "too-large", f"the policy has more than {MAX_PATTERNS:,} patterns", hint)

    def note_bad(self, node: yaml.Node, bad: values.Bad | None, severity: Severity = "warning") -> None:
        """What is told of it, where there is something."""
        if bad:
            self.note(node, bad.code, bad.sentence, bad.hint, severity)

    def _note_near_set(self, node: yaml.Node, text: str) -> bool:
        """`gemms` is a name that a kernel may have, but hardly the one that was meant; `sgemm` is one."""
        near = kernels.OTHER_NAMES.get(text.casefold(), "")
        if not near:
            near = closest(text, kernels.SETS)
            if not near or values.is_wild(text) or text[0].casefold() != near[0] or abs(len(text) - len(near)) > 1:
                return False
        sentence = f"{quote(text)} is no set of kernels, so it is taken as the name of one kernel"
        hint = f"did you mean `{near}`? or, if a kernel is called so: `[{text[0]}]{text[1:]}`"
        self.note(node, "set", sentence, hint, "warning")
        return True


def items(node: yaml.Node) -> list[yaml.Node]:
    """The nodes of a value or of a list of values."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]
