"""What a user can do about each reason, and what its sentence in shim/core/reason.def leaves open.

docs/reference.md is made of both. Empty: nothing is to be done.
"""

from __future__ import annotations

_SMALLER = "`overlap policy room` names settings of NCCL or RCCL with smaller blocks. Otherwise only priority can help."
_PROGRAMS_OWN_FAILURE = "The launch fails without the library, too."

ADVICE = {
    "shaped": "Compare the time of a step with a run under `observe`: shaping costs the kernel time.",
    "capped_without_room": "The kernel pays for nothing: write `shape: make_room`, or `leave`.",
    "room_already": "If communication still waits, it waits for priority and not for room.",
    "priority": "Raise its stream (`streams: {raise: auto}`).",
    "no_rule": "Patterns match the whole name: `gemm_nn` is not `sgemm_nn_128`, `*gemm_nn*` is. `overlap report "
    "--full` shows the names.",
    "rule_leave": "The first rule that matches decides: a rule for this kernel belongs above this one.",
    "observe_only": "Choose another policy, or name this GPU in its `gpu`.",
    "not_overlapping": "Usually nothing. If a profiler shows communication beside this kernel, write `when: always` "
    "in its rule.",
    "no_communication_seen": "Nothing in the first steps. If it stays, "
    "name the kernels (`communication.kernels`, `communication.libraries`).",
    "communication": "If the kernel does not communicate, report its name: a pattern of ours is too wide.",
    "one_wave": "Some libraries can be told to leave multiprocessors free for communication.",
    "cooperative": "With fewer resident blocks the driver would refuse it.",
    "cluster": "With the changed size no cluster would fit, or the driver does not say.",
    "programmatic": "It begins before the kernel in front of it has ended.",
    "occupancy_asked": "The program may have sized its grid by the answer, which must stay true.",
    "reads_dynamic_size": "",
    "below_keep": "Write a smaller `keep_at_least` in the rule, and measure. `overlap policy room` says what stays.",
    "no_room_registers": _SMALLER,
    "no_room_warps": _SMALLER,
    "no_room_slots": "Only priority can help.",
    "no_room_shared_memory": "`overlap policy room` prints the sizes that would do.",
    "refused": "Report the driver's version, the kernel and the policy.",
    "unknown_footprint": "On AMD a kernel of a module, as of rocBLAS; on NVIDIA one of cuFFT.",
    "cannot_launch": _PROGRAMS_OWN_FAILURE,
    "invalid_as_asked": _PROGRAMS_OWN_FAILURE,
    "unknown_limits": "Update the driver, or report the GPU and the driver's version.",
    "raised": "`overlap report` lists the streams. To compare: `streams: {raise: off}` leaves them as they are.",
    "captured": "",
}
