/* Stream capture, and graph nodes that record events or wait: their effect on the happens-before model. */
#include "../../core/core.h"
#include "../../core/sync_model.h"
#include "arms.h"
#include "capture.h"
#include "comm_streams.h"
#include "graph_exec.h"
#include "resolve.h"
#include "sleep.h"
#include "vendor_ops.h"
#include "windows.h"

/* ---- Captures ---- */

uint32_t capture_begun;

static void note(enum hook hook, vendor_stream stream, bool begins) {
    arms_captures(stream_key(stream, hook_default(hook)), begins);
}

static vendor_result begun(enum hook hook, vendor_stream stream, vendor_result result) {
    struct overlap_sync_model *model = windows();
    if (result != VENDOR_SUCCESS) {
        note(hook, stream, false);
        return result;
    }
    __atomic_store_n(&capture_begun, 1, __ATOMIC_RELAXED);
    if (model) {
        overlap_sync_capture(model, window_stream(model, stream, hook_default(hook)));
        window_wake_if_asleep(model);
    }
    return result;
}

vendor_result capture_begin_v1_body(ENTRY, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    note(hook, stream, true);
    return begun(hook, stream, real(stream));
}

vendor_result capture_begin_body(ENTRY, vendor_stream stream, int mode) {
    BEHIND((vendor_stream stream, int mode));
    note(hook, stream, true);
    return begun(hook, stream, real(stream, mode));
}

vendor_result capture_begin_graph_body(ENTRY, vendor_stream stream, vendor_graph graph, const vendor_node *dependencies,
                                       const vendor_edge *edges, size_t count, int mode) {
    BEHIND((vendor_stream stream, vendor_graph graph, const vendor_node *dependencies, const vendor_edge *edges,
            size_t count, int mode));
    note(hook, stream, true);
    return begun(hook, stream, real(stream, graph, dependencies, edges, count, mode));
}

/* An invalidated capture ends with an error, but it ends. A call on the wrong stream or thread fails without ending
 * it. */
vendor_result capture_end_body(ENTRY, vendor_stream stream, vendor_graph *graph) {
    BEHIND((vendor_stream stream, vendor_graph * graph));
    struct overlap_sync_model *model = windows();
    const enum default_stream null_stream = hook_default(hook);
    /* Before the call: after a failure the driver must not be queried. */
    struct overlap_stream *tracked = model ? window_stream(model, stream, null_stream) : NULL;
    vendor_result result = real(stream, graph);
    if (result != VENDOR_SUCCESS && !OPERATION_OF(hook_vendor(hook), capture_ended)(stream, null_stream, result))
        return result;
    note(hook, stream, false);
    if (model)
        overlap_sync_capture_ended(model, tracked);
    return result;
}

/* The program may set any dependencies here: treat the stream as ordered after everything captured so far. */
static vendor_result updated(enum hook hook, vendor_stream stream, vendor_result result) {
    struct overlap_sync_model *model = windows();
    if (model && result == VENDOR_SUCCESS)
        overlap_sync_behind_all(model, window_stream(model, stream, hook_default(hook)));
    return result;
}

vendor_result capture_update_body(ENTRY, vendor_stream stream, vendor_node *dependencies, size_t count,
                                  uint32_t flags) {
    BEHIND((vendor_stream stream, vendor_node * dependencies, size_t count, uint32_t flags));
    return updated(hook, stream, real(stream, dependencies, count, flags));
}

vendor_result capture_update_v2_body(ENTRY, vendor_stream stream, vendor_node *dependencies, const vendor_edge *edges,
                                     size_t count, uint32_t flags) {
    BEHIND((vendor_stream stream, vendor_node * dependencies, const vendor_edge *edges, size_t count, uint32_t flags));
    return updated(hook, stream, real(stream, dependencies, edges, count, flags));
}

/* ---- Nodes ---- */

static vendor_result records(vendor_event event, vendor_result result) {
    struct overlap_sync_model *model = windows();
    if (model && result == VENDOR_SUCCESS)
        overlap_sync_event_unknown(model, (uint64_t)(uintptr_t)event);
    return result;
}

static vendor_result may_wait(vendor_result result) {
    if (result == VENDOR_SUCCESS)
        __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
    return result;
}

void capture_node_records(vendor_event event) {
    records(event, VENDOR_SUCCESS);
}

void capture_node_waits(void) {
    may_wait(VENDOR_SUCCESS);
}

vendor_result graph_record_body(ENTRY, vendor_node *node, vendor_graph graph, const vendor_node *dependencies,
                                size_t count, vendor_event event) {
    BEHIND((vendor_node * node, vendor_graph graph, const vendor_node *dependencies, size_t count, vendor_event event));
    return records(event, real(node, graph, dependencies, count, event));
}

vendor_result graph_record_set_body(ENTRY, vendor_node node, vendor_event event) {
    BEHIND((vendor_node node, vendor_event event));
    return records(event, real(node, event));
}

vendor_result graph_exec_record_set_body(ENTRY, vendor_exec exec, vendor_node node, vendor_event event) {
    BEHIND((vendor_exec exec, vendor_node node, vendor_event event));
    return records(event, real(exec, node, event));
}

vendor_result graph_wait_body(ENTRY, vendor_node *node, vendor_graph graph, const vendor_node *dependencies,
                              size_t count, vendor_event event) {
    BEHIND((vendor_node * node, vendor_graph graph, const vendor_node *dependencies, size_t count, vendor_event event));
    return may_wait(real(node, graph, dependencies, count, event));
}

vendor_result graph_wait_external_body(ENTRY, vendor_node *node, vendor_graph graph, const vendor_node *dependencies,
                                       size_t count, const void *params) {
    BEHIND((vendor_node * node, vendor_graph graph, const vendor_node *dependencies, size_t count, const void *params));
    return may_wait(real(node, graph, dependencies, count, params));
}

vendor_result graph_batch_body(ENTRY, vendor_node *node, vendor_graph graph, const vendor_node *dependencies,
                               size_t count, const void *params) {
    BEHIND((vendor_node * node, vendor_graph graph, const vendor_node *dependencies, size_t count, const void *params));
    return may_wait(real(node, graph, dependencies, count, params));
}

void capture_dependencies_added(void) {
    struct overlap_sync_model *model = windows();
    if (model)
        overlap_sync_captures_unknown(model);
}

vendor_result graph_add_dependencies_v1_body(ENTRY, vendor_graph graph, const vendor_node *from, const vendor_node *to,
                                             size_t count) {
    BEHIND((vendor_graph graph, const vendor_node *from, const vendor_node *to, size_t count));
    capture_dependencies_added();
    return real(graph, from, to, count);
}
