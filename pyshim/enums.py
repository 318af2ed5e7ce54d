"""Words of options and reports for members of enums: of shim/overlap_abi.h, and of the simulated GPU."""

from __future__ import annotations

# How a simulated GPU places blocks while a block of a raised stream fits nowhere (tools/simgpu). The first is the
# default, and what an H200 does.
DISPATCH_RULES = ("hold", "drain", "backfill")

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
