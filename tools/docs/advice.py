"""What each reason means for somebody whose kernel was left alone, or changed, and what to do about it.

The sentences that reports print are those of shim/core/reason.def; these are longer. docs/reasons.md is made of both.
"""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    means: str
    do: str


ADVICE = {
    "shaped": Advice(
        "What the policy asks for was done: fewer blocks of this kernel sit on a multiprocessor.",
        "Compare the step's time with a run under `observe`: shaping costs the kernel time, and pays only where "
        "communication had to wait for room.",
    ),
    "capped_without_room": Advice(
        "`blocks_per_sm` or `dynamic_shared_memory` was obeyed, but by arithmetic no block of communication fits "
        "beside the blocks that are left: the kernel pays and communication gains no room, though a multiprocessor "
        "may empty sooner.",
        "Ask `overlap explain` what limits it. Usual ways out: `make_room`, which does nothing rather than this; a "
        "`-small-comm` policy with `--all-ranks`.",
    ),
    "room_already": Advice(
        "A block of communication fits beside the kernel as it is launched, or no more blocks are resident than the "
        "rule allows.",
        "Nothing. If communication still waits, it waits for priority, not for room: see the column raised.",
    ),
    "entry_already": Advice(
        "A block of communication fits as soon as one block of the kernel has ended. Shaping would only cost.",
        "Nothing, where communication is raised and the GPU holds other blocks back meanwhile (an H200 does).",
    ),
    "priority": Advice(
        "No size of shared memory lets communication in beside any number of blocks; it gets in once several have "
        "ended.",
        "Raise communication (`priority: auto` or `highest`). More takes smaller blocks of communication: `overlap "
        "explain` names the setting.",
    ),
    "no_rule": Advice(
        "No rule of the policy matches the kernel.",
        "If one should: the report and `--trace` have the name as the driver says it. Patterns match from the first "
        "to the last character, so `gemm_nn` does not match `sgemm_nn_128`; `*gemm_nn*` does.",
    ),
    "rule_leave": Advice(
        "The first rule that matches says `leave`.",
        "Nothing, if that is meant. The first match decides, so a rule for this kernel belongs above the one that "
        "matches now.",
    ),
    "observe_only": Advice(
        "The policy is `observe`, or none of the policies that were given is for this GPU.",
        "`overlap gpus` lists what is known; a policy of one's own says `gpu:` with the driver's name, or leaves it "
        "out.",
    ),
    "not_overlapping": Advice(
        "By the order of the program no communication can run beside this launch: its stream has waited for all "
        "that was launched before, or none was.",
        "Usually nothing: shaping it would only cost. If a profile shows communication beside it, it is one of the "
        "cases in shim/core/WINDOWS.md in which the library cannot know; `when: always` in a rule for this kernel "
        "overrides it.",
    ),
    "window_expired": Advice(
        "Communication was launched that nothing ever waited for, so its window was closed after 512 launches.",
        "Nothing. A program that never waits for a collective does not use its result, or waits in a way that the "
        "library cannot see.",
    ),
    "launched_before": Advice(
        "The kernel was in the queue before the communication that may run beside it, so it could not be changed "
        "any more.",
        "Priority still helps such communication. A rule that should act on this kernel needs `when: always`.",
    ),
    "same_stream": Advice(
        "The communication is on the kernel's own stream, which runs one after the other.",
        "Only the program can change that: `async_op=True`, a stream of its own for communication, the framework's "
        "setting for overlap (docs/frameworks).",
    ),
    "no_communication_seen": Advice(
        "What would have to fit beside the kernel is not known yet: sizes are taken from the communication kernels "
        "that have run.",
        "Nothing in the first steps. If it stays: `communication.footprint` gives the size, and "
        "`communication.kernels` or `libraries` name communication that is not recognised.",
    ),
    "communication": Advice(
        "The launch is communication, or computation and communication in one kernel. These are never shaped.",
        "Nothing. If it is no communication, report the name: a family's pattern is too wide.",
    ),
    "one_wave": Advice(
        "All blocks of the grid are resident at once, so they may wait for each other; with fewer resident the "
        "kernel might hang.",
        "Nothing. Persistent kernels can be told to use fewer multiprocessors by the library that launches them.",
    ),
    "one_wave_neighbour": Advice(
        "A communication launch was not raised: `priority: auto` stopped after a grid that fills the GPU in one "
        "wave was launched in an overlap window, because a raised collective may make such a grid take twice as "
        "long.",
        "Compare `priority: highest` with `inherit` on this program; keep what is faster.",
    ),
    "cooperative": Advice(
        "The launch is cooperative: with fewer resident blocks the driver would refuse it.",
        "Nothing.",
    ),
    "cluster": Advice(
        "The kernel is launched in clusters of blocks, and with the changed size no cluster of it would fit, or "
        "that cannot be asked.",
        "Nothing.",
    ),
    "programmatic": Advice(
        "The launch begins before the kernel in front of it has ended; what is resident then is not known.",
        "Nothing.",
    ),
    "occupancy_asked": Advice(
        "The program asked the driver how many blocks of this kernel fit, and may have sized its grid by the "
        "answer, which must stay true.",
        "Nothing. It says that the kernel is persistent, or that the library tunes itself.",
    ),
    "reads_dynamic_size": Advice(
        "The policy names this kernel under `reads_dynamic_size`: it computes with the size of its own dynamic "
        "shared memory.",
        "Nothing. Take the pattern out if the kernel does not.",
    ),
    "below_keep": Advice(
        "The size that would make room leaves fewer blocks resident than `keep_at_least` allows (half of the "
        "kernel's own, if it is not written).",
        "Write a smaller `keep_at_least` in that rule, and measure: `overlap explain` says what it costs in blocks.",
    ),
    "no_room_registers": Advice(
        "One block of the kernel and one of communication need more registers than a multiprocessor has. Shared "
        "memory cannot change that.",
        "Smaller blocks of communication: a `-small-comm` policy with `--all-ranks`; `overlap explain` says which "
        "setting. Else priority alone.",
    ),
    "no_room_warps": Advice(
        "Likewise for threads: one block of each is more than a multiprocessor holds.",
        "Smaller blocks of communication: a `-small-comm` policy with `--all-ranks`; `overlap explain` says which "
        "setting. Else priority alone.",
    ),
    "no_room_slots": Advice(
        "Likewise for the number of blocks that a multiprocessor holds.",
        "Priority alone.",
    ),
    "no_room_shared_memory": Advice(
        "No size between what the kernel asks for and what a block may have does what the rule says: "
        "communication's own shared memory is too large, or that of the kernel.",
        "`overlap explain` prints the windows. Where none of the usual kernels has one, docs/data/sizes.csv says so.",
    ),
    "dispatch_unknown": Advice(
        "The rule has `when_dispatch`, and the policy does not say what this GPU does while a raised block fits "
        "nowhere.",
        "`overlap probe` on that GPU, which takes about two seconds; `overlap-run` uses its answer from then on. Or "
        "write it into the policy: `dispatch: hold`, `drain` or `backfill`. An H200 holds (tools/gpu).",
    ),
    "refused": Advice(
        "The driver refused the changed launch. It was launched again as the program asked, and the kernel is left "
        "alone since.",
        "Please report it with the driver's version, the kernel and the policy: it should not happen.",
    ),
    "unknown_footprint": Advice(
        "The driver does not name all that the kernel takes (on AMD: the accumulation registers of a kernel in a "
        "compressed module, as all of rocBLAS 7.2), or the kernel's handle came from a call that the library does not "
        "intercept (cuFFT's private table of the driver).",
        "Nothing.",
    ),
    "cannot_launch": Advice(
        "Not one block of the kernel fits on the GPU as it was asked for; the driver will refuse the launch by itself.",
        "Look at the program: this launch fails without the library, too.",
    ),
    "program_sets_priority": Advice(
        "A communication launch was not raised: the program gives communication priorities of its own, and "
        "different ones together can deadlock.",
        "Nothing: it has what `auto` would give. `priority: highest` overrides it for all communication of the "
        "process.",
    ),
    "graph_priority_ignored": Advice(
        "Communication in a graph, whose node could not be given a raised priority: the driver refused it, or "
        "`CUDA_GRAPHS_USE_NODE_PRIORITY=0` forbids it.",
        "Take that variable out of the program's environment, or accept that the graph runs at its stream's priority.",
    ),
    "invalid_as_asked": Advice(
        "The driver refuses the launch as the program asks for it: a parameter is NULL, or the dynamic size is larger "
        "than the program itself allows for this kernel (`cuFuncSetAttribute`).",
        "Look at the program: this launch fails without the library, too.",
    ),
    "unknown_limits": Advice(
        "The driver did not tell how many registers, threads or bytes of shared memory a multiprocessor of this GPU "
        "has.",
        "Update the driver, or report the GPU and the driver's version.",
    ),
    "critical": Advice(
        "The launch was raised without being communication: communication runs on its stream, or the host or a stream "
        "of that kind waits for it (`critical` in the policy). The kernels in front of a collective or a copy are "
        "waited for as well. The report lists these streams.",
        "Nothing. `critical: off` leaves the stream as the program has it: compare both on this program.",
    ),
}
