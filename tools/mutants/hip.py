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
    "shim/vendor/hip/entry.c": [
        ("what the runtime calls by name is decided again",
         "if (in_driver(VENDOR_HIP, site) || ", "if (", "tests/interpose/hip/test_hip_itself.py"),
        ("where the runtime jumps to is decided again",
         " || overlap_is_ours(site))", ")", "tests/bench/test_hip_doors.py"),
        ("hipGetProcAddress remembers nothing",
         "hook >= 0 && real_remember(", "false && real_remember(", "tests/interpose/hip/test_hip_ways.py"),
    ],
    "shim/vendor/hip/hip.h": [
        ("what the runtime calls by its table is decided again",
         "    return hip_is_inside() ? real_known", "    return false ? real_known", "tests/interpose/hip/test_hip_table.py"),
    ],
    "shim/vendor/hip/kernels.c": [
        ("static LDS is not counted",
         "footprint.static_shared = (uint32_t)shared;", "footprint.static_shared = 0;",
         "tests/interpose/hip/test_hip_lds.py"),
        ("static LDS is not counted",
         "? device->gpu.shared_optin - (uint32_t)shared : 0;", "? device->gpu.shared_optin : 0;",
         "tests/interpose/hip/test_hip_lds.py"),
        ("registers of the metadata are believed",
         "shared < 0 || may_be_too_few(handle, registers))", "shared < 0)", "tests/interpose/hip/test_hip_modules.py"),
        ("an alias is another kernel",
         "handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, (void *)(uintptr_t)symbol);",
         "handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, NULL);", "tests/interpose/hip/test_hip_kernels.py"),
        ("a refused unload ends HIP's kernels",
         "handle_ended(&owned, result == VENDOR_SUCCESS);", "handle_ended(&owned, true);",
         "tests/interpose/hip/test_hip_modules.py"),
        ("questions about occupancy are not noted",
         "        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);", "        (void)handle;",
         "tests/interpose/hip/test_hip_kernels.py"),
    ],
    "shim/vendor/hip/launch.c": [
        ("cooperative launches of HIP are like others",
         "    return hip_launch(route, hook, site, OVERLAP_LAUNCH_COOPERATIVE, function, grid, block, shared",
         "    return hip_launch(route, hook, site, 0, function, grid, block, shared",
         "tests/interpose/hip/test_hip_ways.py::test_cooperative_launches_are_left_alone"),
        ("a launch is decided again by the table",
         "    if (by_table && hip_is_inside())", "    if (false)", "tests/interpose/hip/test_hip_table.py"),
        ("what the runtime launches by name is decided again",
         "    if (passes)\n", "    if (false)\n", "tests/interpose/hip/test_hip_itself.py"),
    ],
}
