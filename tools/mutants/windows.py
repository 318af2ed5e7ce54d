"""Bugs planted in overlap windows: what orders streams, and what becomes of launches."""

from __future__ import annotations

from tools.mutants.table import Mutant

_CORE, _CUDA, _COMMON = "shim/core", "shim/vendor/cuda", "shim/vendor/common"
_SLEEP = "tests/interpose/test_sleep.py"
_ENTRIES = "tests/interpose/test_entry_points.py"
_SHAPING = "tests/interpose/test_shaping.py"
_AUTO = "tests/interpose/test_auto_priority.py"
_REQUESTS = "tests/clients/test_requests.py::test_functions_that_the_driver_does_not_export"


def _one(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, ((file, old, new),), tests)


WINDOW_MUTANTS = [
    # ---- Events and waits ----
    _one(
        "an event carries no clock",
        f"{_CORE}/event.c",
        "__atomic_store_n(&event->clock.entry[communication], OVERLAP_LOAD(domain->now",
        "__atomic_store_n(&event->clock.entry[communication], 0 * OVERLAP_LOAD(domain->now",
        _ENTRIES,
    ),
    _one(
        "a wait for an event orders nothing",
        f"{_COMMON}/sync_calls.c",
        "model && result == VENDOR_SUCCESS ? window_stream(model, stream, hook_default(hook)) : NULL;",
        "model && result != VENDOR_SUCCESS ? window_stream(model, stream, hook_default(hook)) : NULL;",
        _ENTRIES,
    ),
    _one(
        "a wait for memory is known to end",
        f"{_COMMON}/sync_calls.c",
        "        overlap_sync_unknown(model, tracked);\n        window_check_legacy(model);\n",
        "",
        _ENTRIES,
    ),
    _one(
        "waits among other operations are overlooked",
        f"{_CUDA}/waits.c",
        "        waits |= operations[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||",
        "        waits |= operations[i].operation == 99 ||",
        _ENTRIES,
    ),
    _one(
        "events of other processes tell everything",
        f"{_COMMON}/sync_calls.c",
        "        overlap_sync_event_exported(model, key_of_event(event));\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "what synchronization of a stream shows is not seen",
        f"{_COMMON}/sync_calls.c",
        "    if (!asleep && result == VENDOR_SUCCESS)\n",
        "    if (!asleep && result != VENDOR_SUCCESS)\n",
        _ENTRIES,
    ),
    _one(
        "what synchronization of a context shows is not seen",
        f"{_COMMON}/sync_calls.c",
        "    vendor_result result = real();\n    if (result == VENDOR_SUCCESS)\n",
        "    vendor_result result = real();\n    if (result != VENDOR_SUCCESS)\n",
        _ENTRIES,
        _SHAPING,
    ),
    _one(
        "the host's wait leaves computation running",
        f"{_CORE}/knowledge.c",
        "overlap_context_of_entry(&model->eager, e) == completion->context\n",
        "overlap_context_of_entry(&model->eager, e) == completion->context && e < OVERLAP_CLOCK_COMMUNICATION\n",
        _SHAPING,
    ),
    # ---- Default streams ----
    _one(
        "blocking streams do not wait for the legacy one",
        f"{_CORE}/sync_access.h",
        "    if (sight.legacy)\n",
        "    if (false)\n",
        _ENTRIES,
    ),
    _one(
        "the legacy stream does not wait for blocking ones",
        f"{_CORE}/sync_model.c",
        "        news |= overlap_stream_learns(model, stream, e, OVERLAP_LOAD(stream->context->blocking.entry[e]));\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "launches on the legacy stream go unseen",
        f"{_COMMON}/facts.c",
        "    if (window_legacy_matters())\n",
        "    if (false)\n",
        _SHAPING,
    ),
    _one(
        "a copy on the default stream orders nothing",
        f"{_COMMON}/copy_calls.c",
        "        overlap_sync_action(model, window_stream(model, stream, null_stream));\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "a thread's default stream is the legacy one",
        f"{_COMMON}/copy_calls.c",
        "    const enum default_stream null_stream = hook_default(hook);",
        "    const enum default_stream null_stream = STREAM_OF_CONTEXT;",
        _ENTRIES,
    ),
    _one(
        "copies tell the host nothing",
        f"{_COMMON}/copy_calls.c",
        "        window_host_waited(copy->model, &copy->completion);",
        "        ;",
        _ENTRIES,
    ),
    _one(
        "endings of names are not looked at",
        f"{_COMMON}/hook.h",
        "    return (enum default_stream)hook_defaults[hook];",
        "    return (enum default_stream)hook_defaults[0];",
        _ENTRIES,
    ),
    # ---- Captures and graphs ----
    _one(
        "a capture is not seen to begin",
        f"{_COMMON}/capture.c",
        "        overlap_sync_capture(model, window_stream(model, stream, hook_default(hook)));\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "a capture is not seen to end",
        f"{_COMMON}/capture.c",
        "        overlap_sync_capture_ended(model, tracked);\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "new dependencies of a capture order nothing",
        f"{_COMMON}/capture.c",
        "        overlap_sync_behind_all(model, window_stream(model, stream, hook_default(hook)));\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "dependencies added to a graph leave captures alone",
        f"{_COMMON}/capture.c",
        "        overlap_sync_captures_unknown(model);\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "events that graphs record tell everything",
        f"{_COMMON}/capture.c",
        "        overlap_sync_event_unknown(model, (uint64_t)(uintptr_t)event);\n",
        "        ;\n",
        _ENTRIES,
    ),
    _one(
        "a graph that waits for an event waits for nothing",
        f"{_COMMON}/node.c",
        "    return type == NODE_WAIT_EVENT                                ? EXEC_WAITS",
        "    return type == NODE_WAIT_EVENT                                ? 0",
        _ENTRIES,
    ),
    _one(
        "a graph that waits for memory waits for nothing",
        f"{_COMMON}/node.c",
        "is_batch(vendor, type) ? EXEC_UNKNOWN",
        "is_batch(vendor, type) ? 0",
        _ENTRIES,
    ),
    _one(
        "graphs of communication open no window",
        f"{_COMMON}/node.c",
        "handle_is_marked(handle, HANDLE_COMMUNICATES) ? EXEC_COMMUNICATES : 0;",
        "false ? EXEC_COMMUNICATES : 0;",
        _SHAPING,
    ),
    # ---- Windows ----
    _one(
        "outside a window as inside",
        f"{_COMMON}/launch_slow.c",
        "        outside = word & OVERLAP_WORD_WINDOWED && position != OVERLAP_POSITION_INSIDE;",
        "        outside = false;",
        _SHAPING,
    ),
    _one(
        "a window stays open",
        f"{_CORE}/window.c",
        "    if (inside >= OVERLAP_WINDOW_LAUNCHES)\n        return 0;\n",
        "    if (inside >= OVERLAP_WINDOW_LAUNCHES)\n        return wanted;\n",
        _SHAPING,
    ),
    _one(
        "the stream of communication is any other",
        f"{_CORE}/window.c",
        "            found->position = OVERLAP_POSITION_SAME_STREAM;",
        "            ;",
        _SHAPING,
    ),
    _one(
        "what was launched before counts for every communication",
        f"{_CORE}/window.c",
        "    overlap_raise(counted, now);\n",
        "    ;\n",
        _SHAPING,
    ),
    _one(
        "a grid that was launched before does not end auto",
        f"{_COMMON}/windows.c",
        "    if (before.filling)\n",
        "    if (false)\n",
        _AUTO,
    ),
    _one(
        "communication on the stream of computation is not told",
        f"{_COMMON}/follow.c",
        "    } else {\n        follow.computed_elsewhere = true;",
        "        follow.same_stream = false;\n    } else {\n        follow.computed_elsewhere = true;",
        _SHAPING,
    ),
    _one(
        "communication that is waited for is not told",
        f"{_COMMON}/follow.c",
        "            follow.waited_for = true;",
        "            ;",
        "tests/interpose/test_windows.py",
    ),
    _one(
        "a sample of communication counts for itself alone",
        f"{_COMMON}/follow.c",
        "    follow.stands_for = follow.skipped ? ONE_OF : 1;",
        "    follow.stands_for = 1;",
        "tests/interpose/test_windows.py",
    ),
    _one(
        "communication that overlaps takes back what was said before",
        f"{_CORE}/window.c",
        "    if (since >= open)\n        return;\n",
        "    if (since >= open + 1000)\n        return;\n",
        "tests/interpose/test_windows.py",
    ),
    _one(
        "a stream keeps the priority that it had",
        f"{_CUDA}/stream.c",
        "        priority_changes(stream);\n",
        "        ;\n",
        "tests/interpose/test_priority.py",
    ),
    # ---- While nothing can follow from the model ----
    _one(
        "an event that was recorded before the model slept tells of it",
        "shim/core/knowledge.c",
        "    if (domain == &model->eager && copy->generation != era) {",
        "    if (era == UINT64_MAX) {",
        _SLEEP,
    ),
    _one(
        "windows stay open while the model sleeps",
        "shim/core/knowledge.c",
        "void overlap_sync_sleep(struct overlap_sync_model *model) {\n    finish_all(model);\n",
        "void overlap_sync_sleep(struct overlap_sync_model *model) {\n    (void)model;\n",
        _SLEEP,
    ),
    _one(
        "communication does not wake the model",
        f"{_COMMON}/sleep.c",
        "        window_wake(model);\n        critical_begin(model);",
        "        ;",
        _SLEEP,
    ),
    _one(
        "a capture does not wake the model",
        f"{_COMMON}/capture.c",
        "        window_wake_if_asleep(model);\n",
        "",
        _SLEEP,
    ),
    _one(
        "a raised stream stays so while the model sleeps",
        f"{_COMMON}/critical_streams.c",
        "        if (__atomic_add_fetch(&unwaited, 1, __ATOMIC_RELAXED) == FORGOTTEN)",
        "        if (__atomic_add_fetch(&unwaited, 1, __ATOMIC_RELAXED) == 0)",
        _SLEEP,
    ),
    _one(
        "a period ends although it is in doubt whether a raised stream is waited for",
        f"{_COMMON}/critical_streams.c",
        "    } else if (get(&doubts_left) && raised_in_doubt()) {",
        "    } else if (get(&doubts_left) && false) {",
        _SLEEP,
    ),
    _one(
        "an event that no period has seen is not looked at",
        f"{_COMMON}/critical_streams.c",
        "        in_period(model, true, &untracked_left);",
        "        in_period(model, false, &untracked_left);",
        _SLEEP,
    ),
    # ---- Which function a request means ----
    _one(
        "a request for 32 bits is for 64",
        f"{_CUDA}/lookup.c",
        "    if (version >= SINCE_64_BIT &&\n",
        "    if (",
        _REQUESTS,
    ),
    _one(
        "there always were default streams of threads",
        f"{_CUDA}/lookup.c",
        "    if (version >= SINCE_PER_THREAD && flags",
        "    if (flags",
        _REQUESTS,
    ),
    _one("a name may be too long", f"{_CUDA}/lookup.c", "enum { LONGEST = 64 };", "enum { LONGEST = 56 };", _REQUESTS),
]
