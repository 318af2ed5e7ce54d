"""Bugs planted in the frontend of HIP: ways in, its table of functions, sizes, streams, kernels. Read by mutants.py."""

from __future__ import annotations

from tools.mutants.table import Mutant

_HIP, _COMMON, _TESTS = "shim/vendor/hip", "shim/vendor/common", "tests/interpose/hip"
_ENTRIES = f"{_TESTS}/test_hip_entry_points.py"
_WAYS = f"{_TESTS}/test_hip_ways.py"
_TABLE = f"{_TESTS}/test_hip_table.py"
_LOADING = f"{_TESTS}/test_hip_loading.py"
_LDS = f"{_TESTS}/test_hip_lds.py"
_STREAMS = f"{_TESTS}/test_hip_streams.py"
_KERNELS = f"{_TESTS}/test_hip_kernels.py"


def _one(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, ((file, old, new),), tests)


HIP_MUTANTS = [
    # ---- Ways in, and what a launch is ----
    _one(
        "what hipGetProcAddress finds by dlsym stays so",
        f"{_HIP}/lookup.c",
        "if (hip_thunk(OVERLAP_ROUTE_dlsym, (enum hook)hook) == address)",
        "if (hip_thunk(OVERLAP_ROUTE_symbol, (enum hook)hook) == NULL)",
        _WAYS,
    ),
    _one(
        "hipGetProcAddress remembers what is behind the table",
        f"{_HIP}/lookup.c",
        "real_export((enum hook)hook)))",
        "real_own((enum hook)hook)))",
        _TABLE,
    ),
    _one(
        "work-items are taken for workgroups",
        f"{_HIP}/launch.h",
        "hip_shape(&request, hip_groups(items_x, block_x),",
        "hip_shape(&request, items_x,",
        _ENTRIES,
    ),
    _one(
        "cooperative launches of HIP are like others",
        f"{_HIP}/launch.c",
        "    REQUEST(OVERLAP_LAUNCH_COOPERATIVE, arguments",
        "    REQUEST(0, arguments",
        f"{_TESTS}/test_hip_ways.py::test_cooperative_launches_are_left_alone",
    ),
    _one(
        "the thread's default stream is the device's",
        f"{_COMMON}/resolve.c",
        "? STREAM_OF_HIP_THREAD : STREAM_OF_HIP_DEVICE",
        "? STREAM_OF_HIP_DEVICE : STREAM_OF_HIP_DEVICE",
        _ENTRIES,
    ),
    _one(
        "the event of a first communication launch tells nothing",
        f"{_HIP}/launch.c",
        "        if (!recording && result == VENDOR_SUCCESS)",
        "        if (!recording && result != VENDOR_SUCCESS)",
        _WAYS,
    ),
    # ---- The table of functions ----
    _one("tables of other instances are taken", f"{_HIP}/dispatch_table.c", " && instance == 0 && ", " && ", _TABLE),
    _one("tables of odd sizes are taken", f"{_HIP}/dispatch_table.c", " || size % sizeof *table", "", _TABLE),
    _one(
        "members of tables may be anything",
        f"{_HIP}/dispatch_table.c",
        "    return in_driver(VENDOR_HIP, at) ||",
        "    return true || in_driver(VENDOR_HIP, at) ||",
        _TABLE,
    ),
    _one(
        "profilers behind us get no table",
        f"{_HIP}/dispatch_table.c",
        "    return next ? next(",
        "    return 0 && next ? next(",
        _TABLE,
    ),
    _one(
        "tools in front of us are not seen",
        f"{_HIP}/dispatch_table.c",
        "    return (first && ",
        "    return (!first && ",
        _TABLE,
    ),
    _one(
        "who calls is forgotten on the way through the table",
        f"{_HIP}/hip.h",
        "    return from ? from : site;",
        "    return from ? site : site;",
        _TABLE,
    ),
    # ---- Loading ----
    _one(
        "a machine without a runtime looks equipped",
        "shim/preload/dlsym.c",
        "        if (!real)\n            return OVERLAP_NO_SYMBOL;",
        "        if (!real)\n            return NULL;",
        _LOADING,
    ),
    _one(
        "a vendor gets another's operations",
        "shim/preload/operations.S",
        ".long cuda - .Loperations, hip - .Loperations",
        ".long cuda - .Loperations, cuda - .Loperations",
        _TABLE,
    ),
    _one(
        "devices of two vendors are one",
        f"{_COMMON}/device.c",
        "    struct device *device = &state->devices[vendor][ordinal];",
        "    struct device *device = &state->devices[0][ordinal];",
        _LOADING,
    ),
    # ---- LDS ----
    Mutant(
        "static LDS is not counted",
        (
            (f"{_HIP}/hip_ops.c", "footprint.static_shared = (uint32_t)shared;", "footprint.static_shared = 0;"),
            (
                f"{_HIP}/hip_ops.c",
                "? device->gpu.shared_optin - (uint32_t)shared : 0;",
                "? device->gpu.shared_optin : 0;",
            ),
        ),
        (_LDS,),
    ),
    # ---- Streams ----
    _one(
        "the lowest compute units are reserved",
        f"{_HIP}/stream.c",
        "first = device->gpu.multiprocessors - policy->reserve_cus;",
        "first = policy->reserve_cus;",
        _STREAMS,
    ),
    _one("long masks stay", f"{_HIP}/stream.c", "enum { MASK_WORDS = 64 }", "enum { MASK_WORDS = 32 }", _STREAMS),
    _one(
        "masks of communication are reduced", f"{_HIP}/stream.c", " || communicates(policy, site) ||", " ||", _STREAMS
    ),
    _one(
        "a raised stream is never blocking",
        f"{_HIP}/stream.c",
        "HIP_ASK(create(stream, flags, raised))",
        "HIP_ASK(create(stream, 1, raised))",
        _STREAMS,
    ),
    _one(
        "launches are said to be raised",
        f"{_HIP}/launch.c",
        "launch_communicated(request, word, overlap_word_reason(word), false);",
        "launch_communicated(request, word, overlap_word_reason(word), true);",
        _STREAMS,
    ),
    # ---- Kernels ----
    _one(
        "questions about occupancy are not noted",
        f"{_HIP}/query.c",
        "        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);",
        "        (void)handle;",
        _KERNELS,
    ),
    _one(
        "an alias is another kernel",
        f"{_HIP}/module.c",
        "handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, (void *)(uintptr_t)symbol);",
        "handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, NULL);",
        _KERNELS,
    ),
    _one(
        "registers of the metadata are believed",
        f"{_HIP}/hip_ops.c",
        "shared < 0 || may_be_too_few(handle, registers))",
        "shared < 0)",
        f"{_TESTS}/test_hip_modules.py",
    ),
]
