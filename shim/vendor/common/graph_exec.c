/* Executable graphs. To launch one that contains communication is to launch communication. After one that waits for
 * events, memory or other processes, later launches on the stream are ordered after all of that. Graphs are inspected
 * when they are instantiated, once the process has used communication or waits in a graph. Bodies of conditional nodes
 * are not inspected. */
#include "../../core/core.h"
#include "../../core/slots.h"
#include "../../core/sync_access.h"
#include "critical_streams.h"
#include "graph_exec.h"
#include "launch_slow.h"
#include "node.h"
#include "page.h"
#include "resolve.h"
#include "sleep.h"
#include "state.h"
#include "windows.h"

uint32_t exec_may_communicate, exec_may_wait;

static uint32_t overflow; /* OR of the flags that did not fit into the table */

static void keep(const void *exec, uint32_t flags) {
    if (state_put(STATE_EXECS, (uint64_t)(uintptr_t)exec, flags) == OVERLAP_SLOTS_FULL)
        __atomic_fetch_or(&overflow, flags & (EXEC_WAITS | EXEC_UNKNOWN), __ATOMIC_RELEASE);
}

/* Launches of one executable graph run one after the other, on any streams (documented at cuGraphLaunch; assumed for
 * AMD). They are modeled as waiting for an event that the previous launch recorded. Its key is odd, because addresses
 * of events are even. */
static uint64_t event_of(const void *exec) {
    return (uint64_t)(uintptr_t)exec | 1;
}

static void exec_launched(struct overlap_sync_model *model, const void *exec, struct overlap_stream *stream,
                          uint32_t flags) {
    if (overlap_stream_here(stream) != stream) { /* captured: it becomes part of another graph */
        if (flags & (EXEC_WAITS | EXEC_UNKNOWN))
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
    } else if (stream)
        window_waits(model, stream, event_of(exec));
    overlap_sync_action(model, overlap_stream_here(stream));
    if (flags & EXEC_UNKNOWN) {
        overlap_sync_unknown(model, stream);
        window_wake_if_asleep(model);
    }
    if (flags & (EXEC_WAITS | EXEC_UNKNOWN))
        overlap_sync_behind_all(model, stream);
}

static void exec_ends(struct overlap_sync_model *model, const void *exec, struct overlap_stream *stream) {
    if (overlap_stream_here(stream) == stream)
        overlap_sync_recorded(model, overlap_sync_recording(model, event_of(exec), stream), stream, true);
    window_check_legacy(model);
}

static void note(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t flags) {
    if (windows() && (OVERLAP_RELAXED(exec_may_communicate) || OVERLAP_RELAXED(exec_may_wait)))
        flags |= node_graph_holds(vendor, graph);
    keep(exec, flags);
}

void exec_made(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t ours) {
    if (windows())
        overlap_sync_event_gone(windows(), event_of(exec));
    note(vendor, exec, graph, ours);
}

void exec_updated(enum vendor vendor, const void *exec, vendor_graph graph) {
    note(vendor, exec, graph, exec_flags(exec) & ~(uint32_t)(EXEC_COMMUNICATES | EXEC_WAITS | EXEC_UNKNOWN));
}

/* Drop the flags before the call, because the driver may reuse the address at once. */
vendor_result exec_destroy_body(ENTRY, vendor_exec exec) {
    BEHIND((vendor_exec exec));
    const uint64_t flags = state_put(STATE_EXECS, (uint64_t)(uintptr_t)exec, 0);
    const vendor_result result = real(exec);
    if (result != VENDOR_SUCCESS && flags)
        keep(exec, (uint32_t)flags);
    return result;
}

uint32_t exec_flags(const void *exec) {
    const uint64_t flags = state_get(STATE_EXECS, (uint64_t)(uintptr_t)exec);
    return flags ? (uint32_t)flags : __atomic_load_n(&overflow, __ATOMIC_ACQUIRE);
}

/* The kernels of a graph launch cannot be seen one by one, so the report counts graph launches. */
vendor_result graph_launch_body(ENTRY, vendor_exec graph, vendor_stream stream) {
    BEHIND((vendor_exec graph, vendor_stream stream));
    const enum default_stream null_stream = hook_default(hook);
    struct overlap_sync_model *model = windows();
    const uint32_t flags = model ? exec_flags(graph) : 0;
    if (overlap_armed())
        launch_count(OVERLAP_COUNTER_GRAPH_LAUNCHES);
    vendor_result result = real(graph, stream);
    if (!model || result != VENDOR_SUCCESS || (window_asleep() && !(flags & (EXEC_COMMUNICATES | EXEC_UNKNOWN))))
        return result;
    struct overlap_stream *tracked = window_stream(model, stream, null_stream);
    exec_launched(model, graph, tracked, flags);
    critical_graph(tracked);
    if (flags & EXEC_COMMUNICATES)
        window_communicates(stream, null_stream);
    exec_ends(model, graph, tracked);
    return result;
}
