"""Bugs planted in shim/vendor/cuda. By file: name, old text, new text, tests."""

from __future__ import annotations

ROWS: dict[str, list[tuple[str, ...]]] = {
    "shim/vendor/cuda/attribute.c": [
        (
            "clusters that are required later",
            "        handle_invalidate(known);\n",
            "        ;\n",
            "tests/interpose/test_cluster_shaping.py",
        ),
    ],
    "shim/vendor/cuda/carveout.c": [
        ("our carve-out is told", "        *answer = BY_DEFAULT;\n", "        ;\n", "tests/interpose/test_carveout.py"),
        (
            "our carve-out replaces the program's",
            "!= CUDA_SUCCESS || preferred != BY_DEFAULT) {",
            "!= CUDA_SUCCESS) {",
            "tests/interpose/test_carveout.py",
        ),
        (
            "a carve-out that the program changes later",
            "        handle_invalidate(handle);\n",
            "        ;\n",
            "tests/interpose/test_carveout.py",
        ),
    ],
    "shim/vendor/cuda/cluster.c": [
        (
            "too few clusters stay",
            "100 * (int64_t)limit_raised >= (int64_t)rule->keep_at_least * native;",
            "rule;",
            "tests/interpose/test_cluster_shaping.py",
        ),
    ],
    "shim/vendor/cuda/context.c": [
        (
            "who counts the GPUs is said to use one",
            "overlap_page_initialised();",
            "overlap_page_opened();",
            "tests/interpose/test_stderr.py",
        ),
        (
            "decisions outlive a context",
            "    handle_ended(&ending, gone);\n    if (gone)\n        window_context_gone",
            "    if (gone)\n        window_context_gone",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "decisions outlive a primary context",
            "    handle_ended(&ending, gone);\n    if (gone)\n        window_device_over",
            "    if (gone)\n        window_device_over",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "a context that was refused to end takes its kernels",
            "        result == CUDA_SUCCESS && !(hook == HOOK_cuCtxDetach",
            "        !(hook == HOOK_cuCtxDetach",
            "tests/interpose/test_unloads.py",
        ),
        (
            "one of two users of a context takes its kernels",
            "hook == HOOK_cuCtxDetach && cuda_context()",
            "0 && cuda_context()",
            "tests/interpose/test_unloads.py",
        ),
        ("a context is no GPU", "        launch_opened();\n", "        ;\n", "tests/interpose/test_ranks.py"),
    ],
    "shim/vendor/cuda/cuda_ops.c": [
        (
            "the limit is not raised",
            "    if (!limit_raise(handle, (uint32_t)(word & OVERLAP_WORD_SIZE_MASK)))",
            "    if (false)",
            "tests/interpose/test_shaping.py",
        ),
    ],
    "shim/vendor/cuda/graph.c": [
        (
            "a node shows our size",
            "        params->sharedMemBytes = asked;\n    return result;",
            "        ;\n    return result;",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "a node of a CUkernel is not known by it",
            "!(params->func && handle_find(params->func)) ? params->kern : params->func",
            "!params->func ? params->kern : params->func",
            "tests/interpose/test_graph_nodes.py",
            "tests/interpose/test_graph_priority.py",
        ),
        (
            "attributes of a node that is set do not count",
            "        .flags = flags,\n",
            "        .flags = 0,\n",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "a variable that switches node priorities off",
            'return !used || strcmp(used, "0") != 0;',
            "return !used || true;",
            "tests/interpose/test_graph_priority.py",
        ),
    ],
    "shim/vendor/cuda/instantiate.c": [
        (
            "the priorities of nodes are not honoured",
            "return ours & EXEC_FLAGGED ? CUDA_GRAPH",
            "return false ? CUDA_GRAPH",
            "tests/interpose/test_graph_priority.py",
        ),
        (
            "the priorities of all graphs are honoured",
            "if (programs || !(found & RAISED))",
            "if (programs)",
            "tests/interpose/test_graph_updates.py",
        ),
        (
            "our flag stays in the program's parameters",
            "    params->flags = flags;\n    if (",
            "    if (",
            "tests/interpose/test_graph_priority.py",
        ),
    ],
    "shim/vendor/cuda/launch.c": [
        (
            "attributes changed in place",
            "CUlaunchAttribute attributes[ATTRIBUTES], *const asked = request->config.attrs;",
            "CUlaunchAttribute own[ATTRIBUTES], *const asked = request->config.attrs, *attributes = asked ? asked : own;",
            "tests/interpose/test_priority.py",
        ),
        (
            "any error is a refusal",
            "    return result == CUDA_ERROR_INVALID_VALUE ||",
            "    return result != CUDA_SUCCESS ||",
            "tests/interpose/test_refusal.py",
        ),
        (
            "a refused priority is tried again",
            "        priority_refused();\n",
            "        ;\n",
            "tests/interpose/test_refusal.py",
        ),
        (
            "the legacy stream is asked while a stream captures",
            "if (stream == CU_STREAM_LEGACY || (stream == 0 && !default_is_thread(null_stream))) {",
            "if (false) {",
            "tests/interpose/test_auto_priority.py",
        ),
        (
            "a cooperative launch is one like others",
            "OVERLAP_LAUNCH_COOPERATIVE, 0);",
            "0, 0);",
            "tests/interpose/test_shaping.py",
        ),
        (
            "auto goes on beside priorities of the program",
            "    priority_program_sets();\n",
            "    ;\n",
            "tests/interpose/test_auto_priority.py",
        ),
    ],
    "shim/vendor/cuda/legacy.c": [
        (
            "launches by older calls are not counted",
            "        launch_count_reason(route, reason);\n",
            "        (void)route, (void)reason;\n",
            "tests/interpose/test_legacy_launches.py",
        ),
    ],
    "shim/vendor/cuda/limit.c": [
        (
            "the limit that we set is told",
            "        app_limit_of(handle, device, answer);\n",
            "        ;\n",
            "tests/interpose/test_shaping.py",
        ),
        (
            "the program takes the limit back",
            "(uint32_t)asked < needed ? (int)needed : asked;",
            "(uint32_t)asked < needed ? asked : asked;",
            "tests/interpose/test_shaping.py",
        ),
        (
            "one limit for all devices",
            "handle_kind(handle) == HANDLE_KERNEL ? device : NO_DEVICE);",
            "NO_DEVICE);",
            "tests/interpose/test_handles.py",
        ),
        (
            "raised limits of ended kernels stay",
            "        state_put(STATE_LIMITS, key_for(born, device), 0);\n",
            "        ;\n",
            "tests/interpose/test_many.py::test_modules_that_come_and_go",
        ),
    ],
    "shim/vendor/cuda/lookup.c": [
        (
            "a request for 32 bits is for 64",
            "    if (version >= SINCE_64_BIT &&\n",
            "    if (",
            "tests/clients/test_requests.py::test_functions_that_the_driver_does_not_export",
        ),
        (
            "there always were default streams of threads",
            "    if (version >= SINCE_PER_THREAD && flags",
            "    if (flags",
            "tests/clients/test_requests.py::test_functions_that_the_driver_does_not_export",
        ),
        (
            "a name may be too long",
            "enum { LONGEST = 64 };",
            "enum { LONGEST = 56 };",
            "tests/clients/test_requests.py::test_functions_that_the_driver_does_not_export",
        ),
    ],
    "shim/vendor/cuda/module.c": [
        (
            "decisions outlive an unload",
            "    CUresult result = real(module);\n    handle_ended(&ending, result == CUDA_SUCCESS);\n",
            "    CUresult result = real(module);\n    handle_ended(&ending, false);\n",
            "tests/interpose/test_handles.py",
        ),
        (
            "library decisions outlive an unload",
            "    CUresult result = real(library);\n    handle_ended(&ending, result == CUDA_SUCCESS);\n",
            "    CUresult result = real(library);\n    handle_ended(&ending, false);\n",
            "tests/interpose/test_handles.py",
        ),
        (
            "functions of a library's module outlive it",
            "        handle_learn(*module, HANDLE_MODULE, library, NULL, NULL);\n",
            "        ;\n",
            "tests/interpose/test_bad_input.py",
        ),
        (
            "a module that was refused to end takes its kernels",
            "    CUresult result = real(module);\n    handle_ended(&ending, result == CUDA_SUCCESS);\n",
            "    CUresult result = real(module);\n    handle_ended(&ending, true);\n",
            "tests/interpose/test_unloads.py",
        ),
    ],
    "shim/vendor/cuda/node_attributes.c": [
        (
            "a node that becomes a cluster stays shaped",
            "    if (forbids_shaping(attribute) && armed_and_ready(VENDOR_CUDA))\n",
            "    if (false)\n",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "a node that gets another's attributes stays shaped",
            "    if (graph_flags_of_node(from))\n",
            "    if (false)\n",
            "tests/interpose/test_graph_nodes.py",
        ),
    ],
    "shim/vendor/cuda/query.c": [
        (
            "occupancy is not noted",
            "        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);\n",
            "",
            "tests/interpose/test_occupancy_asked.py",
            "tests/interpose/test_grids.py",
        ),
        (
            "our carve-out shows in occupancy",
            "        carveout_withdraw(handle);\n",
            "",
            "tests/interpose/test_occupancy_asked.py",
        ),
        (
            "our limit shows in occupancy",
            "    return dynamic > limit && dynamic < ABOVE_LIMITS ? ABOVE_LIMITS : dynamic;",
            "    return limit == 0 && dynamic < ABOVE_LIMITS ? ABOVE_LIMITS : dynamic;",
            "tests/interpose/test_occupancy_asked.py",
        ),
        (
            "our limit is offered",
            "        *dynamic = limit;\n",
            "        ;\n",
            "tests/interpose/test_occupancy_asked.py",
        ),
        (
            "our limit shows where the program sizes blocks",
            "    return sizes_within;",
            "    return sizes;",
            "tests/interpose/test_grids.py",
        ),
    ],
    "shim/vendor/cuda/stream.c": [
        (
            "our priority, copied between two captures, is shown",
            "        critical_priority_copied(to, hook_default(hook), raised);",
            "        (void)0;",
            "tests/interpose/test_critical.py",
        ),
        (
            "a stream keeps the priority that it had",
            "        priority_changes(stream);\n",
            "        ;\n",
            "tests/interpose/test_priority.py",
        ),
    ],
    "shim/vendor/cuda/waits.c": [
        (
            "waits among other operations are overlooked",
            "        waits |= operations[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||",
            "        waits |= operations[i].operation == 99 ||",
            "tests/interpose/test_entry_points.py",
        ),
    ],
}
