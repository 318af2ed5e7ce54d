/* Captures, and nodes of graphs that record events or wait: what they order. */
#include "windows.h"

/* ---- Captures ---- */

static CUresult begun(enum hook hook, CUstream stream, CUresult result) {
    struct overlap_order *order = windows();
    if (order && result == CUDA_SUCCESS)
        overlap_order_capture(order, window_stream(order, stream, hook_is_per_thread(hook)));
    return result;
}

CUresult capture_begin_v1_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream) {
    REAL_OR_RETURN(cuStreamBeginCapture);
    return begun(hook, stream, real(stream));
}

CUresult capture_begin_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, int mode) {
    REAL_OR_RETURN(cuStreamBeginCapture_v2);
    return begun(hook, stream, real(stream, mode));
}

CUresult capture_begin_graph_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, CUgraph graph,
                                  const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
                                  int mode) {
    REAL_OR_RETURN(cuStreamBeginCaptureToGraph);
    return begun(hook, stream, real(stream, graph, dependencies, edges, count, mode));
}

/* A capture that was spoiled ends with an error, but it ends; a call on the wrong stream or thread does not end it. */
CUresult capture_end_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, CUgraph *graph) {
    REAL_OR_RETURN(cuStreamEndCapture);
    struct overlap_order *order = windows();
    const bool per_thread = hook_is_per_thread(hook);
    CUresult (*ask)(CUstream, int *) = per_thread ? driver.cuStreamIsCapturing_ptsz : driver.cuStreamIsCapturing;
    CUresult result = real(stream, graph);
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (order && (result == CUDA_SUCCESS || !ask ||
                  (ask(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)))
        overlap_order_capture_ended(order, window_stream(order, stream, per_thread));
    return result;
}

/* Whatever the stream comes after now: it is behind all that was captured. */
static CUresult updated(enum hook hook, CUstream stream, CUresult result) {
    struct overlap_order *order = windows();
    if (order && result == CUDA_SUCCESS)
        overlap_order_behind_all(order, window_stream(order, stream, hook_is_per_thread(hook)));
    return result;
}

CUresult capture_update_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream,
                             CUgraphNode *dependencies, size_t count, uint32_t flags) {
    REAL_OR_RETURN(cuStreamUpdateCaptureDependencies);
    return updated(hook, stream, real(stream, dependencies, count, flags));
}

CUresult capture_update_v2_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream,
                                CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, uint32_t flags) {
    REAL_OR_RETURN(cuStreamUpdateCaptureDependencies_v2);
    return updated(hook, stream, real(stream, dependencies, edges, count, flags));
}

/* ---- Nodes ---- */

static CUresult records(CUevent event, CUresult result) {
    struct overlap_order *order = windows();
    if (order && result == CUDA_SUCCESS)
        overlap_order_event_unknown(order, (uint64_t)(uintptr_t)event);
    return result;
}

static CUresult may_wait(CUresult result) {
    if (result == CUDA_SUCCESS)
        __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
    return result;
}

void capture_node_added(const CUgraphNodeParams *params) {
    if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        records(params->event, CUDA_SUCCESS);
    else if (params->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT || params->type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT ||
             params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        may_wait(CUDA_SUCCESS);
}

CUresult graph_record_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *node, CUgraph graph,
                           const CUgraphNode *dependencies, size_t count, CUevent event) {
    REAL_OR_RETURN(cuGraphAddEventRecordNode);
    return records(event, real(node, graph, dependencies, count, event));
}

CUresult graph_record_set_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode node, CUevent event) {
    REAL_OR_RETURN(cuGraphEventRecordNodeSetEvent);
    return records(event, real(node, event));
}

CUresult graph_exec_record_set_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec exec,
                                    CUgraphNode node, CUevent event) {
    REAL_OR_RETURN(cuGraphExecEventRecordNodeSetEvent);
    return records(event, real(exec, node, event));
}

CUresult graph_wait_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *node, CUgraph graph,
                         const CUgraphNode *dependencies, size_t count, CUevent event) {
    REAL_OR_RETURN(cuGraphAddEventWaitNode);
    return may_wait(real(node, graph, dependencies, count, event));
}

CUresult graph_wait_external_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *node,
                                  CUgraph graph, const CUgraphNode *dependencies, size_t count, const void *params) {
    REAL_OR_RETURN(cuGraphAddExternalSemaphoresWaitNode);
    return may_wait(real(node, graph, dependencies, count, params));
}

CUresult graph_batch_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *node, CUgraph graph,
                          const CUgraphNode *dependencies, size_t count, const void *params) {
    REAL_OR_RETURN(cuGraphAddBatchMemOpNode);
    return may_wait(real(node, graph, dependencies, count, params));
}

void capture_dependencies_added(void) {
    struct overlap_order *order = windows();
    if (order)
        overlap_order_captures_doubted(order);
}

CUresult graph_add_dependencies_v1_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraph graph,
                                        const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    REAL_OR_RETURN(cuGraphAddDependencies);
    capture_dependencies_added();
    return real(graph, from, to, count);
}
