"""Words of options and reports for members of enums of shim/overlap_abi.h."""

from __future__ import annotations

from typing import Literal

ShapeKind = Literal["leave", "blocks", "percent", "bytes", "make_room"]

# What a judgement says of a stream: raised, or the first condition of the rule that did not hold.
STREAM_STATUSES = (
    "raised",
    "not_waited",
    "large",
    "graphs",
    "programs",
    "default",
    "wide",
    "together",
    "fixed",
)


def shape_words(kind: str, value: int) -> str | tuple[str, str]:
    """Return a shape as policies write it: one word, or a key and its value."""
    if kind in ("blocks", "percent"):
        return "blocks_per_sm", f"{value}{'%' if kind == 'percent' else ''}"
    if kind == "bytes":
        return "dynamic_shared_memory", f"{value >> 10}KiB" if value and value % 1024 == 0 else str(value)
    return kind
