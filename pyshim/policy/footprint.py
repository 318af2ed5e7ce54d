"""The key `communication.footprint`: what one block of communication takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import yaml

from pyshim.policy import values
from pyshim.policy.key import REQUIRED, Key, Kind, Packed, Schema, entries, key, keys_of, made, packed, said, shown
from pyshim.policy.kinds import Size, Whole, words_form
from pyshim.policy.parts import PartsReader
from pyshim.policy.words import MAX_REGISTERS, MAX_THREADS

_PATH = "communication.footprint"
_WORDS = ("measured",)
SIZE = "bytes, or a size: 96KiB, 1MiB"


@dataclass(frozen=True)
class Footprint:
    # fmt: off
    threads: int = key(0, f"{_PATH}.threads", Whole(1, MAX_THREADS), "a whole number", REQUIRED, "Threads of a block.",
        "288")
    registers: int = key(0, f"{_PATH}.registers", Whole(1, MAX_REGISTERS), "a whole number", REQUIRED,
        "Registers of a thread.", "96")
    static_shared: int = key(0, f"{_PATH}.static_shared_memory", Size(), SIZE, REQUIRED, "Of a block.", "21568")
    dynamic_shared: int = key(0, f"{_PATH}.dynamic_shared_memory", Size(), SIZE, REQUIRED, "Of a block.", "82240")
    # fmt: on


# Stands for `footprint: measured` in one file, which must be told from nothing said.
MEASURED = Footprint()


class FootprintKind(Kind[Optional[Footprint]]):
    holder = Footprint

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Footprint | None:
        if not isinstance(node, yaml.MappingNode):
            word = reader.value(node, "`footprint`", lambda text: values.choice(text, _WORDS, "a footprint"))
            return MEASURED if word else None
        nodes = reader.mapping(node, "`footprint`", keys_of(Footprint, key.path))
        if nodes is None:
            return None
        before = len(reader.findings)
        block = made(Footprint, said(reader, nodes, entries(Footprint)))
        if before == len(reader.findings):
            _note_too_large(reader, node, block)
        return block

    def form(self) -> Schema:
        return words_form(_WORDS)

    def shown(self, value: Footprint | None) -> object:
        return shown(value, _PATH) if value else "measured"

    def packed(self, value: Footprint | None, name: str) -> dict[str, Packed]:
        return {"footprint_given": 1, name: packed(value)} if value else {}


def _note_too_large(reader: PartsReader, node: yaml.Node, block: Footprint) -> None:
    """Each number is possible; together a block may still be more than any GPU holds."""
    fitting = reader.fitting()
    shared, registers = block.static_shared + block.dynamic_shared, block.threads * block.registers
    for what, has, limit in (
        ("bytes of shared memory", shared, max((gpu.shared_memory_per_block for gpu in fitting), default=shared)),
        ("registers", registers, max((gpu.registers for gpu in fitting), default=registers)),
    ):
        if has > limit:
            sentence = f"a block of {has:,} {what} fits on no GPU of this policy: none gives more than {limit:,}"
            reader.note(node, "footprint", sentence, "leave the key out, and it is measured", "warning")
