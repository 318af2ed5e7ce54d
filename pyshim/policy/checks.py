"""Values that can be read and yet do nothing, or too much, on the GPUs of their policy."""

from __future__ import annotations

import yaml

from pyshim.policy.parts import PartsReader
from pyshim.policy.words import Range


def resident_blocks(reader: PartsReader, node: yaml.Node, found: Range) -> Range:
    most = reader.most_blocks()
    if most and found.minimum > most:
        sentence = f"no GPU of this policy holds more than {most} blocks on a multiprocessor: this never holds"
        reader.note(node, "never", sentence, f"ask for {most} or fewer", "warning")
    return found


def blocks_per_sm(reader: PartsReader, node: yaml.Node, found: int) -> None:
    most = reader.most_blocks()
    if most and found >= most:
        sentence = f"no GPU of this policy holds more than {most} blocks at once, so this changes nothing"
        hint = f"did you mean `{found}%`, of the kernel's own?" if found <= 100 else "write fewer"
        reader.note(node, "blocks", sentence, hint, "warning")
