"""Bugs planted in shim/vendor/hip. By file: name, old text, new text, tests."""

from __future__ import annotations

ROWS: dict[str, list[tuple[str, ...]]] = {
    "shim/vendor/hip/dispatch_table.c": [
        ("tables of other instances are taken",
         " && instance == 0 && ", " && ", "tests/interpose/hip/test_hip_table.py"),
        ("tables of odd sizes are taken", " || size % sizeof *table", "", "tests/interpose/hip/test_hip_table.py"),
        ("members of tables may be anything",
         "    return in_driver(VENDOR_HIP, at) ||", "    return true || in_driver(VENDOR_HIP, at) ||",
         "tests/interpose/hip/test_hip_table.py"),
        ("profilers behind us get no table",
         "    return next ? next(", "    return 0 && next ? next(", "tests/interpose/hip/test_hip_table.py"),
        ("tools in front of us are not seen",
         "    return (first && ", "    return (!first && ", "tests/interpose/hip/test_hip_table.py"),
    ],
    "shim/vendor/hip/hip_ops.c": [
        ("static LDS is not counted",
         "footprint.static_shared = (uint32_t)shared;", "footprint.static_shared = 0;",
         "tests/interpose/hip/test_hip_lds.py"),
        ("static LDS is not counted",
         "? device->gpu.shared_optin - (uint32_t)shared : 0;", "? device->gpu.shared_optin : 0;",
         "tests/interpose/hip/test_hip_lds.py"),
        ("registers of the metadata are believed",
         "shared < 0 || may_be_too_few(handle, registers))", "shared < 0)", "tests/interpose/hip/test_hip_modules.py"),
    ],
    "shim/vendor/hip/launch.c": [
        ("cooperative launches of HIP are like others",
         "    REQUEST(OVERLAP_LAUNCH_COOPERATIVE, arguments", "    REQUEST(0, arguments",
         "tests/interpose/hip/test_hip_ways.py::test_cooperative_launches_are_left_alone"),
        ("the event of a first communication launch tells nothing",
         "        if (!recording && result == VENDOR_SUCCESS)", "        if (!recording && result != VENDOR_SUCCESS)",
         "tests/interpose/hip/test_hip_ways.py"),
        ("launches are said to be raised",
         "launch_communicated(request, word, overlap_word_reason(word), false);",
         "launch_communicated(request, word, overlap_word_reason(word), true);",
         "tests/interpose/hip/test_hip_streams.py"),
    ],
    "shim/vendor/hip/launch.h": [
        ("work-items are taken for workgroups",
         "hip_shape(&request, hip_groups(items_x, block_x),", "hip_shape(&request, items_x,",
         "tests/interpose/hip/test_hip_entry_points.py"),
    ],
    "shim/vendor/hip/lookup.c": [
        ("hipGetProcAddress remembers what is behind the table",
         "real_export((enum hook)hook)))", "real_own((enum hook)hook)))", "tests/interpose/hip/test_hip_table.py"),
    ],
    "shim/vendor/hip/module.c": [
        ("an alias is another kernel",
         "handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, (void *)(uintptr_t)symbol);",
         "handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, NULL);", "tests/interpose/hip/test_hip_kernels.py"),
        ("a refused unload ends HIP's kernels",
         "handle_ended(&ending->owned, result == VENDOR_SUCCESS);", "handle_ended(&ending->owned, true);",
         "tests/interpose/hip/test_hip_modules.py"),
    ],
    "shim/vendor/hip/query.c": [
        ("questions about occupancy are not noted",
         "        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);", "        (void)handle;",
         "tests/interpose/hip/test_hip_kernels.py"),
    ],
    "shim/vendor/hip/stream.c": [
        ("the lowest compute units are reserved",
         "first = device->gpu.multiprocessors - policy->reserve_cus;", "first = policy->reserve_cus;",
         "tests/interpose/hip/test_hip_streams.py"),
        ("long masks stay",
         "enum { MASK_WORDS = 64 }", "enum { MASK_WORDS = 32 }", "tests/interpose/hip/test_hip_streams.py"),
        ("masks of communication are reduced",
         " || communicates(policy, site) ||", " ||", "tests/interpose/hip/test_hip_streams.py"),
        ("a raised stream is never blocking",
         "HIP_ASK(create(stream, flags, raised))", "HIP_ASK(create(stream, 1, raised))",
         "tests/interpose/hip/test_hip_streams.py"),
    ],
    "shim/vendor/hip/thunks_x86_64.S": [
        ("who calls is forgotten on the way through the table",
         "    cmovz \\at, %rdx\n", "    mov \\at, %rdx\n", "tests/interpose/hip/test_hip_table.py"),
    ],
}
