"""Members of the header's enums (shim/overlap_abi.h), by the words that policies, options and reports have for them."""

from __future__ import annotations

from typing import Literal, get_args

# How a GPU places blocks while a block of a raised stream fits nowhere.
Dispatch = Literal["unknown", "hold", "drain", "backfill"]
DISPATCHES: tuple[Dispatch, ...] = get_args(Dispatch)
KNOWN_DISPATCHES = DISPATCHES[1:]

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
