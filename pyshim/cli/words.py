"""What words on the screen mean: `overlap help WORD`, and the first part of the glossary in CONTRIBUTING.md.

Reasons (reason.def) and keys (policy/model.py) have their sentences there.
"""

from __future__ import annotations

WORDS = {
    "carve-out": "the part of a multiprocessor's L1 cache that is used as shared memory",
    "collective": "a communication operation of all ranks, such as an all-reduce",
    "communication launch": "a launch of a kernel that communicates: of NCCL, RCCL, NVSHMEM and others, and of those"
    " that `communication: {kernels: ...}` in the policy names",
    "dispatch rule": "what a simulated GPU does while a raised block fits nowhere: hold, drain or backfill",
    "exposed": "the time of communication that no computation overlaps",
    "footprint": "threads, registers and shared memory of one block",
    "grid": "all blocks of one launch",
    "hold, drain, backfill": "dispatch rules. hold: the GPU starts no block of lower priority while a raised block fits"
    " nowhere. drain: only one multiprocessor is kept free for it. backfill: blocks of lower priority take every room"
    " that gets free",
    "judgement": "the comparison of all streams of a device, which decides which are raised until the next one: at the"
    " 16th, 32nd, ... 1,024th wait for a stream, then every 1,024 waits",
    "launch": "one call that starts a kernel, or one kernel node of a graph",
    "layout": "the version of the format of pages; a page of another layout was written by another version of the"
    " library, and is reported by the `overlap` of that version",
    "left a page": "wrote the file with its counters into the report folder; a process that has not opened a GPU leaves"
    " none",
    "left alone": "launched as the program asked for it; the reason says why",
    "noise floor": "by how much `observe`, which changes nothing, moves a measurement",
    "occupancy": "how many blocks of a kernel fit on one multiprocessor",
    "overlap window": "the part of a program in which communication and a launch are not ordered by events and waits",
    "page": "the file that a process maps and counts into",
    "policy": "a YAML file that says what is raised and shaped",
    "priority inversion": "work that something waits for stands ready behind blocks of work that nothing waits for",
    "raised": "on a stream of a higher priority than the program gave it, so that its blocks start before other blocks"
    " that wait",
    "raised stream": "a stream with the greatest priority of the device: something waits for it, and it carries the"
    " smaller part of the computation",
    "rank": "one process of a job, and its number",
    "reason": "why a launch was changed or left alone",
    "resident": "started and not finished, on a multiprocessor",
    "shaped": "given more dynamic shared memory, which limits how many blocks of the kernel are resident",
    "wave": "as many blocks as are resident at once; a grid runs in one or more waves",
    "world size": "the number of ranks",
}
