"""Keys and values of earlier versions, and what to write now."""

from __future__ import annotations

_WITH_ITS_STREAM = "communication is raised with its stream: write `streams: {raise: auto}` at the top level, or `off`"
# By the path of the mapping that had the key.
KEYS = {
    "": {
        "critical": "write `streams: {raise: auto}`, or `streams: {raise: off}`",
        "dispatch": "leave it out: no rule asks how a GPU dispatches blocks",
        "reads_dynamic_size": "write `fixed_size`",
        "trial": "run the whole program under each policy, and compare two reports: overlap report --compare A B",
        "when": "write `when` in each rule of `compute`",
    },
    "streams": {"priority": "leave it out: these streams get the greatest priority of the device"},
    "communication": {
        "footprint": "leave it out: it is measured at the first launches of communication",
        "priority": _WITH_ITS_STREAM,
        "streams": "write `streams: {created_by: [...]}` at the top level",
        "environment": "write `environment: {NAME: value}` at the top level",
        "all_ranks_environment": "set these variables where the job is started, for all ranks: all must agree on them",
        "reserve_cus": "leave it out: no stream loses compute units",
        "carveout": "leave it out: communication keeps the carve-out that its library sets",
    },
    "compute[]": {
        "when_dispatch": "leave it out: a rule acts on every GPU that its policy is for",
        "carveout": "leave it out: launches that are changed ask for the largest, unless the program has set one",
    },
    "compute[].match": {
        "blocks": "write `waves`: the grid over what the device holds of it at once",
        "registers": "write `resident_blocks`: what registers, threads and shared memory leave of them",
    },
}
SHAPES = {"quick_entry": "write `shape: make_room`, or `shape: leave`"}
