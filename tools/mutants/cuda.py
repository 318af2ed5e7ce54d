"""Bugs planted in shim/vendor/cuda, one or more for every rule of what must never happen."""

from __future__ import annotations

from tools.mutants.table import Mutant

_CUDA, _TESTS = "shim/vendor/cuda", "tests/interpose"


def _one(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    path = f"shim/vendor/{file}.c" if "/" in file else f"{_CUDA}/{file}.c"
    return Mutant(name, ((path, old, new),), tuple(f"{_TESTS}/test_{test}.py" for test in tests))


CUDA_MUTANTS = [
    _one(
        "who counts the GPUs is said to use one",
        "context",
        "overlap_page_initialised();",
        "overlap_page_opened();",
        "stderr",
    ),
    _one(
        "our priority, copied between two captures, is shown",
        "stream",
        "        critical_priority_copied(to, hook_default(hook), raised);",
        "        (void)0;",
        "critical",
    ),
    # ---- A changed launch that the driver refuses is launched again as asked ----
    _one(
        "any error is a refusal",
        "launch",
        "    return result == CUDA_ERROR_INVALID_VALUE ||",
        "    return result != CUDA_SUCCESS ||",
        "refusal",
    ),
    _one("a refused priority is tried again", "launch", "        priority_refused();\n", "        ;\n", "refusal"),
    _one(
        "a refused node is not made again",
        "common/node",
        "    if (!node->changed || !is_refusal(",
        "    if (true || !node->changed || !is_refusal(",
        "graph_nodes",
    ),
    _one(
        "the limit is not raised for nodes",
        "common/node",
        "launch_prepare(&node->request, &node->word, node->cache_handle));",
        "true);",
        "graph_nodes",
    ),
    _one(
        "a graph that is not instantiated is not set back",
        "common/node",
        "!armed_and_ready(vendor) || !node_each(vendor, graph, set_back, NULL))",
        "true)",
        "graph_nodes",
    ),
    _one(
        "graphs inside graphs are not looked at",
        "common/node",
        "            any |= each(vendor, inner, act, of, depth + 1);",
        "            any |= depth > DEEPEST;",
        "graph_nodes",
    ),
    _one(
        "the legacy stream is asked while a stream captures",
        "launch",
        "if (stream == CU_STREAM_LEGACY || (stream == 0 && !default_is_thread(null_stream))) {",
        "if (false) {",
        "auto_priority",
    ),
    # ---- What the program asks about itself stays true ----
    _one(
        "a node shows our size",
        "graph",
        "        params->sharedMemBytes = asked;\n    return result;",
        "        ;\n    return result;",
        "graph_nodes",
    ),
    _one(
        "a node of a CUkernel is not known by it",
        "graph",
        "!(params->func && handle_find(params->func)) ? params->kern : params->func",
        "!params->func ? params->kern : params->func",
        "graph_nodes",
        "graph_priority",
    ),
    _one(
        "two sizes that become one are told for each other",
        "common/size",
        "before >> SINCE_SHIFT == since >> SINCE_SHIFT ? since | NOT_ONE : noted",
        "noted",
        "handle_races",
    ),
    _one("our carve-out is told", "carveout", "        *answer = BY_DEFAULT;\n", "        ;\n", "carveout"),
    _one(
        "our carve-out replaces the program's",
        "carveout",
        "!= CUDA_SUCCESS || preferred != BY_DEFAULT) {",
        "!= CUDA_SUCCESS) {",
        "carveout",
    ),
    _one(
        "occupancy is not noted",
        "query",
        "        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);\n",
        "",
        "occupancy_asked",
        "grids",
    ),
    _one("our carve-out shows in occupancy", "query", "        carveout_withdraw(handle);\n", "", "occupancy_asked"),
    _one(
        "our limit shows in occupancy",
        "query",
        "    return dynamic > limit && dynamic < ABOVE_LIMITS ? ABOVE_LIMITS : dynamic;",
        "    return limit == 0 && dynamic < ABOVE_LIMITS ? ABOVE_LIMITS : dynamic;",
        "occupancy_asked",
    ),
    _one("our limit is offered", "query", "        *dynamic = limit;\n", "        ;\n", "occupancy_asked"),
    _one(
        "our limit shows where the program sizes blocks",
        "query",
        "    return sizes_within;",
        "    return sizes;",
        "grids",
    ),
    # ---- Never shaped ----
    _one(
        "clusters are not asked about",
        "common/facts",
        "!OPERATION_OF(facts->device->vendor, cluster_fits)(request, facts->handle, rule, decision->dynamic_shared)",
        "false",
        "cluster_shaping",
    ),
    _one(
        "too few clusters stay",
        "cluster",
        "100 * (int64_t)limit_raised >= (int64_t)rule->keep_at_least * native;",
        "rule;",
        "cluster_shaping",
    ),
    _one(
        "other clusters than those that were checked",
        "common/launch_slow",
        "(word & OVERLAP_WORD_CLUSTER) && OPERATION_OF(hook_vendor(request->hook), cluster_is_other)(request)",
        "false",
        "cluster_shaping",
    ),
    _one(
        "clusters that are required later",
        "attribute",
        "        handle_invalidate(known);\n",
        "        ;\n",
        "cluster_shaping",
    ),
    _one("a cooperative launch is one like others", "launch", "OVERLAP_LAUNCH_COOPERATIVE, 0);", "0, 0);", "shaping"),
    _one(
        "a node that becomes a cluster stays shaped",
        "node_attributes",
        "    if (forbids_shaping(attribute) && armed_and_ready(VENDOR_CUDA))\n",
        "    if (false)\n",
        "graph_nodes",
    ),
    _one(
        "a node that gets another's attributes stays shaped",
        "node_attributes",
        "    if (graph_flags_of_node(from))\n",
        "    if (false)\n",
        "graph_nodes",
    ),
    _one(
        "attributes of a node that is set do not count",
        "graph",
        "        .flags = flags,\n",
        "        .flags = 0,\n",
        "graph_nodes",
    ),
    # ---- Sizes and rooms ----
    _one(
        "a footprint that grew is not followed",
        "common/facts",
        "        overlap_cache_forget_all(&launch_cache);\n        ++*epoch;",
        "        ++*epoch;",
        "room",
    ),
    _one("one-rank reductions count", "common/device", 'overlap_glob_match("*oneRankReduce*", kernel) || ', "", "room"),
    _one(
        "a carve-out that the program changes later",
        "carveout",
        "        handle_invalidate(handle);\n",
        "        ;\n",
        "carveout",
    ),
    # ---- One priority for all communication ----
    _one(
        "auto is the number 0",
        "common/device",
        "    if (kind != OVERLAP_PRIORITY_NUMBER || value < greatest)",
        "    if (kind == OVERLAP_PRIORITY_HIGHEST || value < greatest)",
        "auto_priority",
    ),
    _one(
        "auto goes on beside priorities of the program",
        "launch",
        "    priority_program_sets();\n",
        "    ;\n",
        "auto_priority",
    ),
    _one(
        "auto goes on beside a grid of one wave",
        "common/launch_slow",
        "        if (word & OVERLAP_WORD_WATCHED && position == OVERLAP_POSITION_INSIDE)\n",
        "        if (false)\n",
        "auto_priority",
    ),
    _one(
        "auto ends for a grid on the same stream",
        "common/launch_slow",
        "        if (word & OVERLAP_WORD_WATCHED && position == OVERLAP_POSITION_INSIDE)\n",
        "        if (word & OVERLAP_WORD_WATCHED)\n",
        "auto_priority",
    ),
    _one(
        "auto comes back",
        "common/priority",
        "? __atomic_load_n(&ended, __ATOMIC_ACQUIRE) : 0;",
        "? 0 : 0;",
        "auto_priority",
    ),
    _one(
        "all multiprocessors, not nine of ten",
        "common/facts",
        "->multiprocessors * 9 + 9) / 10",
        "->multiprocessors * 10) / 10",
        "auto_priority",
    ),
    _one(
        "the priorities of nodes are not honoured",
        "instantiate",
        "return ours & EXEC_FLAGGED ? CUDA_GRAPH",
        "return false ? CUDA_GRAPH",
        "graph_priority",
    ),
    _one(
        "the priorities of all graphs are honoured",
        "instantiate",
        "if (programs || !(found & RAISED))",
        "if (programs)",
        "graph_updates",
    ),
    _one(
        "our flag stays in the program's parameters",
        "instantiate",
        "    params->flags = flags;\n    if (",
        "    if (",
        "graph_priority",
    ),
    _one(
        "a variable that switches node priorities off",
        "graph",
        'return !used || strcmp(used, "0") != 0;',
        "return !used || true;",
        "graph_priority",
    ),
    # ---- Handles ----
    _one(
        "a destroyed stream is not forgotten",
        "common/comm_streams",
        "    stream_is_programs(stream, STREAM_OF_CONTEXT);\n",
        "        ;\n",
        "streams",
    ),
    _one(
        "functions of a library's module outlive it",
        "module",
        "        handle_learn(*module, HANDLE_MODULE, library, NULL, NULL);\n",
        "        ;\n",
        "bad_input",
    ),
    _one(
        "decisions outlive a context",
        "context",
        "    handle_ended(&ending, gone);\n    if (gone)\n        window_context_gone",
        "    if (gone)\n        window_context_gone",
        "entry_points",
    ),
    _one(
        "decisions outlive a primary context",
        "context",
        "    handle_ended(&ending, gone);\n    if (gone)\n        window_device_over",
        "    if (gone)\n        window_device_over",
        "entry_points",
    ),
    _one(
        "a context that was refused to end takes its kernels",
        "context",
        "        result == CUDA_SUCCESS && !(hook == HOOK_cuCtxDetach",
        "        !(hook == HOOK_cuCtxDetach",
        "unloads",
    ),
    _one(
        "one of two users of a context takes its kernels",
        "context",
        "hook == HOOK_cuCtxDetach && cuda_context()",
        "0 && cuda_context()",
        "unloads",
    ),
    _one(
        "a module that was refused to end takes its kernels",
        "module",
        "    CUresult result = real(module);\n    handle_ended(&ending, result == CUDA_SUCCESS);\n",
        "    CUresult result = real(module);\n    handle_ended(&ending, true);\n",
        "unloads",
    ),
    _one("a context is no GPU", "context", "        launch_opened();\n", "        ;\n", "ranks"),
    # ---- Nothing goes uncounted ----
    _one(
        "launches by older calls are not counted",
        "legacy",
        "        launch_count_reason(route, reason);\n",
        "        (void)route, (void)reason;\n",
        "legacy_launches",
    ),
    _one(
        "nodes are not counted",
        "common/node",
        "    launch_count_row(OVERLAP_ROUTE_graph_node, launch_row(node->word, node->reason, raised));\n",
        "",
        "graph_nodes",
    ),
]
