"""Bugs planted in shim/vendor/common. By file: name, old text, new text, tests."""

from __future__ import annotations

ROWS: dict[str, list[tuple[str, ...]]] = {
    "shim/vendor/common/armed.c": [
        (
            "no fork handler",
            "__register_atfork(NULL, NULL, in_child,",
            "__register_atfork(NULL, NULL, NULL,",
            "tests/interpose/test_processes.py",
        ),
        (
            "no fork handler but of glibc",
            "at_fork(NULL, NULL, in_child)",
            "at_fork(NULL, NULL, NULL)",
            "tests/libcs/test_launches.py",
        ),
        (
            "variables count with other rights",
            "if (__getauxval && __getauxval(AT_SECURE))",
            "if (0)",
            "tests/libcs/test_unseen.py",
        ),
    ],
    "shim/vendor/common/arms.c": [
        (
            "captures are made under the arm of the turn",
            "__atomic_load_n(&now.capturing, __ATOMIC_ACQUIRE) > 0 || OVERLAP_RELAXED(now.paused)",
            "OVERLAP_RELAXED(now.paused)",
            "tests/interpose/test_trial_captures.py",
        ),
        (
            "an arm has the decisions of the one before",
            "        overlap_cache_forget_all(&launch_cache);\n",
            "",
            "tests/interpose/test_trial.py",
        ),
        (
            "an arm has the raised streams of the one before",
            "        critical_switch(vendor);\n",
            "",
            "tests/interpose/test_trial.py",
        ),
        (
            "a trial goes on when its context has ended",
            "        return;\n    give_up();",
            "        return;",
            "tests/interpose/test_trial_processes.py",
        ),
        (
            "a trial goes on although the driver cannot time it",
            "state->trial.pace.errors >= PACE_ERRORS",
            "false",
            "tests/interpose/test_trial_captures.py",
        ),
        (
            "earlier runs do not choose the first arm",
            "            now.turn_arm = i;\n",
            "            ;\n",
            "tests/interpose/test_trial_captures.py",
        ),
    ],
    "shim/vendor/common/capture.c": [
        (
            "a capture is not seen to begin",
            "        overlap_sync_capture(model, window_stream(model, stream, hook_default(hook)));\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "a capture is not seen to end",
            "        overlap_sync_capture_ended(model, tracked);\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "new dependencies of a capture order nothing",
            "        overlap_sync_behind_all(model, window_stream(model, stream, hook_default(hook)));\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "dependencies added to a graph leave captures alone",
            "        overlap_sync_captures_unknown(model);\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "events that graphs record tell everything",
            "        overlap_sync_event_unknown(model, (uint64_t)(uintptr_t)event);\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "a capture does not wake the model",
            "        window_wake_if_asleep(model);\n",
            "",
            "tests/interpose/test_sleep.py",
        ),
    ],
    "shim/vendor/common/comm_streams.c": [
        (
            "a destroyed stream is not forgotten",
            "    stream_is_programs(stream, STREAM_OF_CONTEXT);\n",
            "        ;\n",
            "tests/interpose/test_streams.py",
        ),
    ],
    "shim/vendor/common/copy_calls.c": [
        (
            "a copy on the default stream orders nothing",
            "        overlap_sync_action(model, window_stream(model, stream, null_stream));\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "a thread's default stream is the legacy one",
            "    const enum default_stream null_stream = hook_default(hook);",
            "    const enum default_stream null_stream = STREAM_OF_CONTEXT;",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "copies tell the host nothing",
            "        window_host_waited(copy->model, &copy->completion);",
            "        ;",
            "tests/interpose/test_entry_points.py",
        ),
    ],
    "shim/vendor/common/critical_streams.c": [
        (
            "a raised stream stays so while the model sleeps",
            "        if (__atomic_add_fetch(&unwaited, 1, __ATOMIC_RELAXED) == FORGOTTEN)",
            "        if (__atomic_add_fetch(&unwaited, 1, __ATOMIC_RELAXED) == 0)",
            "tests/interpose/test_sleep.py",
        ),
        (
            "a period ends although it is in doubt whether a raised stream is waited for",
            "    } else if (get(&doubts_left) && raised_in_doubt()) {",
            "    } else if (get(&doubts_left) && false) {",
            "tests/interpose/test_sleep.py",
        ),
        (
            "an event that no period has seen is not looked at",
            "        in_period(model, true, &untracked_left);",
            "        in_period(model, false, &untracked_left);",
            "tests/interpose/test_sleep.py",
        ),
    ],
    "shim/vendor/common/device.c": [
        (
            "one-rank reductions count",
            'overlap_glob_match("*oneRankReduce*", kernel) || ',
            "",
            "tests/interpose/test_room.py",
        ),
        (
            "auto is the number 0",
            "    if (kind != OVERLAP_PRIORITY_NUMBER || value < greatest)",
            "    if (kind == OVERLAP_PRIORITY_HIGHEST || value < greatest)",
            "tests/interpose/test_auto_priority.py",
        ),
        (
            "devices of two vendors are one",
            "    struct device *device = &state->devices[vendor][ordinal];",
            "    struct device *device = &state->devices[0][ordinal];",
            "tests/interpose/hip/test_hip_loading.py",
        ),
        (
            "rules are not recorded",
            "        record_rules(device, settings);\n",
            "        ;\n",
            "tests/interpose/test_rows.py",
        ),
    ],
    "shim/vendor/common/facts.c": [
        (
            "clusters are not asked about",
            "!OPERATION_OF(facts->device->vendor, cluster_fits)(request, facts->handle, rule, decision->dynamic_shared)",
            "false",
            "tests/interpose/test_cluster_shaping.py",
        ),
        (
            "a footprint that grew is not followed",
            "        overlap_cache_forget_all(&launch_cache);\n        ++*epoch;",
            "        ++*epoch;",
            "tests/interpose/test_room.py",
        ),
        (
            "all multiprocessors, not nine of ten",
            "->multiprocessors * 9 + 9) / 10",
            "->multiprocessors * 10) / 10",
            "tests/interpose/test_auto_priority.py",
        ),
        (
            "rows beside a bare one",
            "flags & OVERLAP_WORD_WINDOWED ? OVERLAP_ROW_WINDOWED",
            "flags & OVERLAP_WORD_WINDOWED ? OVERLAP_ROW_SINGLE",
            "tests/interpose/test_rows.py",
        ),
        (
            "one row for communication that is raised",
            "flags & OVERLAP_WORD_RAISE  ? OVERLAP_ROW_RAISED",
            "flags & OVERLAP_WORD_RAISE  ? OVERLAP_ROW_SINGLE",
            "tests/interpose/test_rows.py",
        ),
        (
            "a row of the bare reason",
            "const uint32_t row = made ? row_of",
            "const uint32_t row = made && 0 ? row_of",
            "tests/interpose/test_rows.py",
        ),
        (
            "launches on the legacy stream go unseen",
            "    if (window_legacy_matters())\n",
            "    if (false)\n",
            "tests/interpose/test_shaping.py",
        ),
    ],
    "shim/vendor/common/follow.c": [
        (
            "communication on the stream of computation is not told",
            "    } else {\n        follow.computed_elsewhere = true;",
            "        follow.same_stream = false;\n    } else {\n        follow.computed_elsewhere = true;",
            "tests/interpose/test_shaping.py",
        ),
        (
            "communication that is waited for is not told",
            "            follow.waited_for = true;",
            "            ;",
            "tests/interpose/test_windows.py",
        ),
        (
            "a sample of communication counts for itself alone",
            "    follow.stands_for = follow.skipped ? ONE_OF : 1;",
            "    follow.stands_for = 1;",
            "tests/interpose/test_windows.py",
        ),
    ],
    "shim/vendor/common/handle.c": [
        (
            "a handle from the index is taken for that of the value",
            " &&\n                   OVERLAP_RELAXED(handle->value) == value\n",
            "\n",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "a kernel that was launched before it was learned stays unknown",
            "            overlap_cache_forget(&launch_cache, (uint64_t)(uintptr_t)value);\n",
            "",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "what was learned while its module ended goes with that",
            "(int32_t)(OVERLAP_RELAXED(handle->born) - born) <= 0",
            "true",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "what was learned while its module ended goes with that",
            "!is_alive(kind) || (int32_t)(OVERLAP_RELAXED(handle->born) - born) > 0 ||",
            "!is_alive(kind) ||",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "ended handles are not given out again",
            "0);\n        give_back(handle);\n",
            "0);\n",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "a free handle is given out twice",
            "1) << 32 | OVERLAP_RELAXED(handle->next_free)",
            "1) << 32 | (uint32_t)head",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "of two threads that learn an address neither keeps its handle",
            "        if (!claim(fresh, OVERLAP_RELAXED(births)))",
            "        if (claim(fresh, OVERLAP_RELAXED(births)))",
            "tests/interpose/test_handle_races.py",
        ),
    ],
    "shim/vendor/common/hook.h": [
        (
            "endings of names are not looked at",
            "    return (enum default_stream)hook_defaults[hook];",
            "    return (enum default_stream)hook_defaults[0];",
            "tests/interpose/test_entry_points.py",
        ),
    ],
    "shim/vendor/common/hot_x86_64.S": [
        (
            "the cache forgets who calls",
            "    shl $28, %r11\n    add %r11, %rax\n",
            "",
            "tests/interpose/test_priority.py",
            "tests/interpose/test_shaping.py",
        ),
        (
            "outside is counted as inside",
            "    mov %fs:48(%r11), %eax\n    incq 64(%r10, %rax, 8)\n",
            "    incq 64(%r10)\n",
            "tests/interpose/test_rows.py",
        ),
    ],
    "shim/vendor/common/launch_slow.c": [
        (
            "no relaunch after refusal",
            "    vendor_result result = as_asked(request);\n    if (!is_refusal(request, result) || !tried)",
            "    vendor_result result = VENDOR_OUT_OF_RESOURCES;\n    if (request || !tried)",
            "tests/interpose/test_refusal.py",
        ),
        (
            "a refused kernel is tried again",
            "        handle_mark(handle, HANDLE_REFUSED);\n",
            "        ;\n",
            "tests/interpose/test_refusal.py",
        ),
        ("proven while capturing", "&& !captures(request))", "&& true)", "tests/interpose/test_capture.py"),
        (
            "other clusters than those that were checked",
            "(word & OVERLAP_WORD_CLUSTER) && OPERATION_OF(hook_vendor(request->hook), cluster_is_other)(request)",
            "false",
            "tests/interpose/test_cluster_shaping.py",
        ),
        (
            "auto goes on beside a grid of one wave",
            "        if (word & OVERLAP_WORD_WATCHED && position == OVERLAP_POSITION_INSIDE)\n",
            "        if (false)\n",
            "tests/interpose/test_auto_priority.py",
        ),
        (
            "auto ends for a grid on the same stream",
            "        if (word & OVERLAP_WORD_WATCHED && position == OVERLAP_POSITION_INSIDE)\n",
            "        if (word & OVERLAP_WORD_WATCHED)\n",
            "tests/interpose/test_auto_priority.py",
        ),
        (
            "outside is counted as inside, by the slow way",
            "        return row + step;\n",
            "        return row;\n",
            "tests/interpose/test_rows.py",
        ),
        (
            "another reason has no kernel",
            "overlap_row_of_reason(overlap_current_page, row, reason)",
            "reason",
            "tests/interpose/test_rows.py",
        ),
        (
            "no time by the slow way",
            "    count_launch(request->counted, row);\n    if (overlap_sample_is_due(shard))\n"
            "        launch_sample(shard);\n",
            "    count_launch(request->counted, row);\n    (void)shard;\n",
            "tests/interpose/test_rows.py",
        ),
        (
            "outside a window as inside",
            "        outside = word & OVERLAP_WORD_WINDOWED && position != OVERLAP_POSITION_INSIDE;",
            "        outside = false;",
            "tests/interpose/test_shaping.py",
        ),
    ],
    "shim/vendor/common/launch_slow.h": [
        (
            "raised is counted as not raised",
            "row + (raised && row >= OVERLAP_REASONS)",
            "row",
            "tests/interpose/test_rows.py",
        ),
        (
            "raised where it is not",
            "row + (raised && row >= OVERLAP_REASONS)",
            "row + (!raised && row >= OVERLAP_REASONS)",
            "tests/interpose/test_rows.py",
        ),
        (
            "no time by the quick way",
            "    if (__builtin_expect(overlap_sample_is_due(shard), 0))\n        launch_sample(shard);\n",
            "",
            "tests/interpose/test_rows.py",
        ),
    ],
    "shim/vendor/common/node.c": [
        (
            "a refused node is not made again",
            "    if (!node->changed || !is_refusal(",
            "    if (true || !node->changed || !is_refusal(",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "the limit is not raised for nodes",
            "launch_prepare(&node->request, &node->word, node->cache_handle));",
            "true);",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "a graph that is not instantiated is not set back",
            "!armed_and_ready(vendor) || !node_each(vendor, graph, set_back, NULL))",
            "true)",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "graphs inside graphs are not looked at",
            "            any |= each(vendor, inner, act, of, depth + 1);",
            "            any |= depth > DEEPEST;",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "nodes are not counted",
            "    launch_count_row(OVERLAP_ROUTE_graph_node, launch_row(node->word, node->reason, raised));\n",
            "",
            "tests/interpose/test_graph_nodes.py",
        ),
        (
            "a graph that waits for an event waits for nothing",
            "    return type == NODE_WAIT_EVENT                                ? EXEC_WAITS",
            "    return type == NODE_WAIT_EVENT                                ? 0",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "a graph that waits for memory waits for nothing",
            "is_batch(vendor, type) ? EXEC_UNKNOWN",
            "is_batch(vendor, type) ? 0",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "graphs of communication open no window",
            "handle_is_marked(handle, HANDLE_COMMUNICATES) ? EXEC_COMMUNICATES : 0;",
            "false ? EXEC_COMMUNICATES : 0;",
            "tests/interpose/test_shaping.py",
        ),
    ],
    "shim/vendor/common/pace.c": [
        (
            "an event of ours is captured",
            "    if (OPERATION_OF(pace->vendor, captures)(request->config.hStream, null_stream))",
            "    if (false)",
            "tests/interpose/test_trial_captures.py",
        ),
        (
            "a turn begins where it ends",
            "turn_at(pace, pace->read - 1)->event",
            "turn_at(pace, pace->read)->event",
            "tests/interpose/test_trial.py",
        ),
    ],
    "shim/vendor/common/page.c": [
        (
            "no table in the page",
            "page->table = ((const struct overlap_table *)settings->table)->checksum;",
            "",
            "tests/interpose/test_ranks.py",
        ),
        (
            "the page changes errno",
            "        errno = saved;\n        __atomic_store_n(&state, MADE",
            "        (void)saved;\n        __atomic_store_n(&state, MADE",
            "tests/interpose/test_errno.py",
        ),
        (
            "a fork writes all counters",
            "if (page->shards[i].owner || i == OVERLAP_SHARDS_FIRST - 1)",
            "if (i < OVERLAP_SHARDS)",
            "tests/interpose/test_fork_exit.py",
        ),
    ],
    "shim/vendor/common/priority.c": [
        (
            "auto comes back",
            "? __atomic_load_n(&ended, __ATOMIC_ACQUIRE) : 0;",
            "? 0 : 0;",
            "tests/interpose/test_auto_priority.py",
        ),
    ],
    "shim/vendor/common/resolve.c": [
        (
            "the thread's default stream is the device's",
            "? STREAM_OF_HIP_THREAD : STREAM_OF_HIP_DEVICE",
            "? STREAM_OF_HIP_DEVICE : STREAM_OF_HIP_DEVICE",
            "tests/interpose/hip/test_hip_entry_points.py",
        ),
        (
            "a wrapper of one library serves all",
            "if (!OVERLAP_RELAXED(by_caller[hook]))",
            "",
            "tests/interpose/test_closing.py",
        ),
    ],
    "shim/vendor/common/size.c": [
        (
            "sizes outlive their kernel",
            "return known >> SINCE_SHIFT == known_since(root) >> SINCE_SHIFT;",
            "return known & KNOWN;",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "two sizes that become one are told for each other",
            "before >> SINCE_SHIFT == since >> SINCE_SHIFT ? since | NOT_ONE : noted",
            "noted",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "sizes of ended kernels stay",
            "    return !found;",
            "    return found && 0;",
            "tests/interpose/test_handle_races.py",
        ),
        (
            "sizes of kernels that live are taken",
            "    return !found;",
            "    return found || 1;",
            "tests/interpose/test_handle_races.py",
        ),
    ],
    "shim/vendor/common/sleep.c": [
        (
            "communication does not wake the model",
            "        window_wake(model);\n        critical_begin(model);",
            "        ;",
            "tests/interpose/test_sleep.py",
        ),
    ],
    "shim/vendor/common/state.c": [
        (
            "a full cache stays full",
            "        overlap_cache_use(&launch_cache, made);\n        overlap_empty",
            "        overlap_empty",
            "tests/interpose/test_many.py::test_modules_that_come_and_go",
        ),
    ],
    "shim/vendor/common/sync_calls.c": [
        (
            "a wait for an event orders nothing",
            "model && result == VENDOR_SUCCESS ? window_stream(model, stream, hook_default(hook)) : NULL;",
            "model && result != VENDOR_SUCCESS ? window_stream(model, stream, hook_default(hook)) : NULL;",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "a wait for memory is known to end",
            "        overlap_sync_unknown(model, tracked);\n        window_check_legacy(model);\n",
            "",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "events of other processes tell everything",
            "        overlap_sync_event_exported(model, key_of_event(event));\n",
            "        ;\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "what synchronization of a stream shows is not seen",
            "    if (!asleep && result == VENDOR_SUCCESS)\n",
            "    if (!asleep && result != VENDOR_SUCCESS)\n",
            "tests/interpose/test_entry_points.py",
        ),
        (
            "what synchronization of a context shows is not seen",
            "    vendor_result result = real();\n    if (result == VENDOR_SUCCESS)\n",
            "    vendor_result result = real();\n    if (result != VENDOR_SUCCESS)\n",
            "tests/interpose/test_entry_points.py",
            "tests/interpose/test_shaping.py",
        ),
    ],
    "shim/vendor/common/windows.c": [
        (
            "the row of another reason outside",
            "thread->step = overlap_row_step(window_reason(found.position));",
            "thread->step = 1;",
            "tests/interpose/test_windows.py",
        ),
        (
            "a grid that was launched before does not end auto",
            "    if (before.filling)\n",
            "    if (false)\n",
            "tests/interpose/test_auto_priority.py",
        ),
    ],
}
