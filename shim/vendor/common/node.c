/* Kernel nodes of graphs: see node.h. */
#include "../../core/core.h"
#include "../../sys/sys.h"
#include "capture.h"
#include "device.h"
#include "graph_exec.h"
#include "handle.h"
#include "launch_slow.h"
#include "node.h"
#include "resolve.h"
#include "size.h"
#include "traced.h"
#include "vendor_ops.h"

/* ---- The parameters of a node ---- */

/* A size is applied only if the asked one can be recovered from it, and not to clusters, because other cluster sizes
 * were not checked. */
static bool may_have(struct node *node, const struct handle *handle) {
    uint32_t asked = 0;
    return !(node->word & OVERLAP_WORD_CLUSTER) && size_asked(handle, node->dynamic, &asked) &&
           asked == node->request.config.sharedMemBytes &&
           (node->word & OVERLAP_WORD_RAISED_LIMIT || launch_prepare(&node->request, &node->word, node->cache_handle));
}

static void leave(struct node *node, uint32_t reason) {
    node->changed = false;
    node->dynamic = node->request.config.sharedMemBytes;
    node->reason = reason;
}

/* If the driver would refuse the node without us, make it refuse: we may have raised the function's limit. */
static void forbid(struct node *node, enum vendor vendor, struct handle *handle, int device) {
    device = handle && handle_kind(handle) == HANDLE_FUNCTION ? handle_device(handle) : device;
    const uint32_t over_app_limit =
        handle && device != NO_DEVICE ? OPERATION_OF(vendor, over_app_limit)(handle, device, node->dynamic) : 0;
    if (!over_app_limit)
        return;
    node->changed = over_app_limit != node->dynamic;
    node->dynamic = over_app_limit;
    node->reason = OVERLAP_REASON_invalid_as_asked;
}

bool node_plan(struct node *node, bool elsewhere, int of_device) {
    const enum vendor vendor = hook_vendor(node->request.hook);
    struct handle *handle = OPERATION_OF(vendor, handle_of)(&node->request);
    const struct device *device = device_current(vendor);
    node->request.route = OVERLAP_ROUTE_symbol;
    node->request.counted = OVERLAP_ROUTE_graph_node;
    node->cache_handle = 0;
    const bool of_one =
        handle && (handle_kind(handle) == HANDLE_FUNCTION || handle_kind(handle) == HANDLE_HIP_FUNCTION);
    /* The limits of another device are not known. */
    if (elsewhere || (of_one && device && handle_device(handle) != device->ordinal)) {
        node->word = OVERLAP_WORD_VALID;
        leave(node, OVERLAP_REASON_unknown_footprint);
        forbid(node, vendor, handle, of_device);
        return true;
    }
    node->word = launch_word(&node->request, &node->cache_handle);
    if (!node->word)
        return false;
    if (node->word & OVERLAP_WORD_TRACED)
        trace_ask(&node->request, &node->facts);
    leave(node, overlap_word_reason(node->word));
    if (!(node->word & OVERLAP_WORD_CHANGED))
        return true;
    if (node->word & OVERLAP_WORD_WINDOWED) { /* added by hand: what it overlaps is not known */
        node->reason = OVERLAP_REASON_not_overlapping;
        return true;
    }
    node->changed = true;
    node->dynamic = (uint32_t)(node->word & OVERLAP_WORD_SIZE_MASK);
    /* A size over the program's own limit is left for the driver to refuse. */
    if (node->reason != OVERLAP_REASON_invalid_as_asked && !(handle && may_have(node, handle)))
        leave(node, node->word & OVERLAP_WORD_CLUSTER ? OVERLAP_REASON_cluster : OVERLAP_REASON_unknown_footprint);
    return true;
}

static bool is_refusal(const struct node *node, vendor_result result) {
    return OPERATION_OF(hook_vendor(node->request.hook), is_refusal)(result);
}

bool node_is_refused(struct node *node, vendor_result result) {
    if (!node->changed || !is_refusal(node, result) || node->reason == OVERLAP_REASON_invalid_as_asked)
        return false;
    leave(node, OVERLAP_REASON_invalid_as_asked);
    return true;
}

void node_taken_as_asked(struct node *node, vendor_result result) {
    if (is_refusal(node, result)) /* the program's own error */
        return;
    node->reason = OVERLAP_REASON_refused;
    launch_leave_alone(&node->request, node->cache_handle, true);
}

void node_count(struct node *node, bool raised) {
    if (node->word & OVERLAP_WORD_COMMUNICATION) {
        launch_count(OVERLAP_COUNTER_COMMUNICATION);
        __atomic_store_n(&exec_may_communicate, 1, __ATOMIC_RELAXED);
    }
    if (raised)
        launch_count(OVERLAP_COUNTER_RAISED);
    launch_count_row(OVERLAP_ROUTE_graph_node, launch_row(node->word, node->reason, raised));
    if (node->word & OVERLAP_WORD_TRACED)
        launch_trace(&node->request, node->reason, node->dynamic, raised, node->word, &node->facts);
}

/* ---- Reading sizes back, and restoring nodes ---- */

bool node_asked(const struct handle *handle, uint32_t shown, uint32_t *asked) {
    return handle && size_asked(handle, shown, asked) && *asked != shown;
}

bool node_set_back(enum vendor vendor, vendor_node node) {
    uint32_t shown = 0, asked = 0;
    const struct handle *handle = OPERATION_OF(vendor, node_kernel)(node, &shown);
    return node_asked(handle, shown, &asked) && OPERATION_OF(vendor, node_resize)(node, asked);
}

/* ---- Whole graphs ---- */

enum { DEEPEST = 8, NODES = 32 }; /* fits on a small stack */

static uint32_t each(enum vendor vendor, vendor_graph graph, node_act *act, void *of, int depth) {
    vendor_node few[NODES], *nodes = few;
    size_t count = 0;
    uint32_t any = 0;
    if (depth > DEEPEST || OPERATION_OF(vendor, graph_nodes)(graph, NULL, &count) != VENDOR_SUCCESS)
        return 0;
    if (count > NODES && !(nodes = overlap_map(count * sizeof *nodes)))
        return 0;
    const size_t mapped = count;
    if (count && OPERATION_OF(vendor, graph_nodes)(graph, nodes, &count) != VENDOR_SUCCESS)
        count = 0;
    for (size_t i = 0; i < count && i < mapped; i++) {
        int type = -1;
        vendor_graph inner = NULL;
        if (OPERATION_OF(vendor, node_type)(nodes[i], &type) != VENDOR_SUCCESS)
            continue;
        any |= act(vendor, nodes[i], type, of);
        if (type == NODE_GRAPH && OPERATION_OF(vendor, node_inside)(nodes[i], &inner) == VENDOR_SUCCESS)
            any |= each(vendor, inner, act, of, depth + 1);
    }
    if (nodes != few)
        overlap_unmap(nodes, mapped * sizeof *nodes);
    return any;
}

uint32_t node_each(enum vendor vendor, vendor_graph graph, node_act *act, void *of) {
    return each(vendor, graph, act, of, 0);
}

static bool is_batch(enum vendor vendor, int type) {
    return type == (vendor == VENDOR_HIP ? NODE_BATCH_HIP : NODE_BATCH_CUDA);
}

static uint32_t holds(enum vendor vendor, vendor_node node, int type, void *of) {
    uint32_t shown;
    (void)of;
    if (type == NODE_KERNEL) {
        const struct handle *handle = OPERATION_OF(vendor, node_kernel)(node, &shown);
        return handle && handle_is_marked(handle, HANDLE_COMMUNICATES) ? EXEC_COMMUNICATES : 0;
    }
    return type == NODE_WAIT_EVENT                                ? EXEC_WAITS
           : type == NODE_EXTERNAL_WAIT || is_batch(vendor, type) ? EXEC_UNKNOWN
                                                                  : 0;
}

uint32_t node_graph_holds(enum vendor vendor, vendor_graph graph) {
    return node_each(vendor, graph, holds, NULL);
}

void node_is_other(enum vendor vendor, int type, vendor_event event) {
    if (type == NODE_EVENT_RECORD)
        capture_node_records(event);
    else if (type == NODE_WAIT_EVENT || type == NODE_EXTERNAL_WAIT || is_batch(vendor, type))
        capture_node_waits();
}

static uint32_t set_back(enum vendor vendor, vendor_node node, int type, void *of) {
    (void)of;
    return type == NODE_KERNEL && node_set_back(vendor, node);
}

bool node_set_all_back(enum vendor vendor, vendor_graph graph) {
    if (!armed_and_ready(vendor) || !node_each(vendor, graph, set_back, NULL))
        return false;
    launch_count(OVERLAP_COUNTER_REFUSED);
    return true;
}

bool node_try_again(enum vendor vendor, vendor_graph graph, vendor_result result) {
    return OPERATION_OF(vendor, is_refusal)(result) && node_set_all_back(vendor, graph);
}

bool node_try_node_again(enum vendor vendor, vendor_node node, vendor_result result) {
    return OPERATION_OF(vendor, is_refusal)(result) && armed_and_ready(vendor) && node_set_back(vendor, node);
}

vendor_result node_instantiated(enum vendor vendor, const vendor_exec *exec, vendor_graph graph, uint32_t ours,
                                vendor_result result) {
    if (result == VENDOR_SUCCESS && exec)
        exec_made(vendor, *exec, graph, ours);
    return result;
}
