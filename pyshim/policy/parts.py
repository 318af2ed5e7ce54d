"""What the kinds of keys ask the reader of a policy: its GPUs, the patterns and variables read so far."""

from __future__ import annotations

import yaml

from pyshim.policy import gpus
from pyshim.policy.nodes import Walker

# The table that travels in the environment holds fewer; beyond this a file is not worth comparing rule by rule.
MAX_PATTERNS = 2000


class PartsReader(Walker):
    def __init__(self) -> None:
        super().__init__()
        self.gpus: tuple[str, ...] = ()  # that the policy is for
        self.gpus_known = True  # all of them, so that a number can be compared with what they have
        self.patterns = 0  # read so far, sets counted in full

    def fitting(self) -> tuple[gpus.KnownGpu, ...]:
        """Return the GPUs of the policy; none where not all of them are known."""
        return gpus.matching(self.gpus) if self.gpus_known else ()

    def most_blocks(self) -> int:
        """Return the most blocks on one multiprocessor of the policy's GPUs; 0 where not all are known."""
        return max((gpu.blocks for gpu in self.fitting()), default=0)

    def count(self, node: yaml.Node, patterns: int) -> None:
        before = self.patterns
        self.patterns += patterns
        if before <= MAX_PATTERNS < self.patterns:
            hint = "one pattern with a `*` may stand for many names"
            self.note(node, "too-large", f"the policy has more than {MAX_PATTERNS:,} patterns", hint)


def items(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes of a value or of a list of values."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]
