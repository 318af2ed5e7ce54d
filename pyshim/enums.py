"""Members of the header's enums (shim/overlap_abi.h), by the words that policies, options and reports have for them."""

from __future__ import annotations

from typing import Literal, get_args

# How a GPU places blocks while a block of a raised stream fits nowhere.
Dispatch = Literal["unknown", "hold", "drain", "backfill"]
DISPATCHES: tuple[Dispatch, ...] = get_args(Dispatch)
KNOWN_DISPATCHES = DISPATCHES[1:]

# Why a stream is critical.
CRITICAL_KINDS = ("communication", "host_waits", "feeding")
