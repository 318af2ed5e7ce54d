/* Executable graphs: a copy of a graph, launched as operations of a stream, and updated by another graph of the same shape.
 *
 * Node priorities count only if the graph was instantiated with the flag for them; else every kernel runs at
 * the priority of the stream that launches the graph. Copies and host functions are done at launch, in order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

/* Sizes were checked when the nodes were made. A function that allows less by now does not matter, as on the real driver
 * (measured: 580.159). *bad: the node whose function is gone. */
static CUresult check_nodes(const struct graph *graph, struct context *context, CUgraphNode *bad) {
    for (uint32_t i = 0; i < graph->count; i++) {
        struct node *const node = graph->nodes[i];
        *bad = node->handle;
        CUresult result = node->type == NODE_KERNEL ? sim_node_resolve(node, context) : CUDA_SUCCESS;
        if (result == CUDA_SUCCESS && node->child != NULL)
            result = check_nodes(node->child, context, bad);
        if (result != CUDA_SUCCESS)
            return result;
    }
    *bad = NULL;
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags, CUgraphNode *bad) {
    *bad = NULL;
    SIM_CALL_IN_CONTEXT(context);
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (out == NULL || graph == NULL || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = check_nodes(graph, context, bad);
    if (result != CUDA_SUCCESS)
        return result;
    struct exec *const exec = sim_new(1, sizeof *exec);
    exec->graph = sim_graph_copy(graph);
    exec->handle = sim_handle_new(KIND_EXEC, exec);
    exec->flags = flags;
    *out = exec->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes) {
    CUgraphNode bad;
    const CUresult result = instantiate(out, graph, 0, &bad);
    if (error != NULL)
        *error = bad;
    if (log != NULL && bytes > 0)
        *log = '\0';
    return result;
}

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    CUgraphNode bad;
    return instantiate(out, graph, flags, &bad);
}

static CUresult with_params(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *given, bool per_thread) {
    (void)per_thread; /* of the stream that the graph would be uploaded on: not done here */
    if (given == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    given->hErrNode_out = NULL;
    const CUresult result = instantiate(out, graph, given->flags, &given->hErrNode_out);
    given->result_out = result != CUDA_SUCCESS;
    return result;
}
SIM_BOTH(cuGraphInstantiateWithParams, with_params,
         (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *given), out, graph, given)

SIM_API CUresult cuGraphExecDestroy(CUgraphExec handle) {
    SIM_CALL();
    struct exec *const exec = sim_handle_get(handle, KIND_EXEC);
    if (exec == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_op_release(exec->latest);
    sim_graph_free(exec->graph);
    sim_handle_free(exec->handle);
    free(exec);
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

static void log_node(const struct launch_request *request, const struct stream *stream, int priority, CUresult result) {
    char text[32];
    snprintf(text, sizeof text, "0x%llx", sim_stream_number(stream));
    sim_log_launch(&(struct launch_line){
        .request = request, .stream = text, .result = result, .priority = priority, .graph = true});
}

static struct op *node_op(const struct node *node, struct stream *stream, bool priorities) {
    const bool transfer = node->transfer != NULL, host = node->type == NODE_HOST;
    const enum op_kind kind = node->type == NODE_KERNEL ? sim_launch_kind(&node->launch)
                              : transfer || host        ? OP_DELAY
                                                        : OP_NOTHING;
    int device = stream->context->device;
    if (node->type == NODE_KERNEL)
        device = node->launch.function->module->context->device;
    struct op *const op = sim_op_new(kind, device);
    op->queue = stream->number;
    op->node = node->id;
    if (node->type == NODE_KERNEL) {
        const int priority = priorities ? node->launch.set.priority : stream->priority;
        if (kind == OP_KERNEL)
            sim_launch_fill(op, &node->launch, priority);
        log_node(&node->launch, stream, priority, CUDA_SUCCESS);
    } else if (transfer || host) {
        op->delay_us = transfer ? node->transfer->us : HOST_FUNCTION_US;
        op->unit = transfer ? node->transfer->unit : UNIT_HOST;
        op->transfer = transfer ? node->transfer->name : NULL;
    }
    struct event *const event = node->event != NULL ? sim_handle_get(node->event, KIND_EVENT) : NULL;
    if (event != NULL && node->type == NODE_WAIT)
        sim_op_wait_for(op, event->record);
    if (event != NULL && node->type == NODE_RECORD) {
        sim_op_hold(op);
        sim_op_release(event->record);
        event->record = op;
        event->capture_id = 0;
    }
    return op;
}

/* An operation that waits for all that `ops` holds, and gives them back. */
static struct op *joined(struct op *join, struct op **ops, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        sim_op_wait_for(join, ops[i]);
        sim_op_release(ops[i]);
    }
    free(ops);
    return join;
}

/* Submits the operations of a graph, none before `first` is done. The caller joins them. */
static struct op **submit_nodes(const struct graph *graph, struct stream *stream, struct op *first, bool priorities) {
    struct op **const ops = sim_new(graph->count, sizeof *ops);
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct node *const node = graph->nodes[i];
        struct op *op = node_op(node, stream, priorities);
        sim_op_hold(op);
        sim_op_wait_for(op, node->before_count == 0 ? first : NULL);
        for (uint32_t k = 0; k < node->before_count; k++)
            sim_op_wait_for(op, ops[node->before[k]->index]);
        sim_op_submit(op);
        if (node->child != NULL) {
            struct op **const inside = submit_nodes(node->child, stream, op, priorities);
            struct op *const end = sim_op_new(OP_NOTHING, stream->context->device);
            sim_op_hold(end);
            sim_op_wait_for(end, op);
            joined(end, inside, node->child->count);
            sim_op_submit(end);
            sim_op_release(op);
            op = end;
        }
        ops[i] = op;
    }
    return ops;
}

static CUresult run(struct exec *exec, struct stream *stream) {
    CUgraphNode bad;
    const CUresult result = check_nodes(exec->graph, stream->context, &bad);
    if (result != CUDA_SUCCESS)
        return result;
    struct op *const first = sim_stream_op(stream, OP_NOTHING);
    sim_op_wait_for(first, exec->latest);
    sim_stream_submit(stream, first);
    struct op **const ops = submit_nodes(exec->graph, stream, first, (exec->flags & GRAPH_USE_NODE_PRIORITY) != 0);
    struct op *const last = sim_stream_op(stream, OP_NOTHING);
    sim_op_hold(last);
    sim_op_release(exec->latest);
    exec->latest = last;
    sim_stream_submit(stream, joined(last, ops, exec->graph->count));
    return CUDA_SUCCESS;
}

/* A graph launched into a stream that captures becomes a child graph of what is captured. */
static CUresult capture(const struct exec *exec, struct stream *stream) {
    struct node *const node = sim_capture_node(stream, NODE_CHILD);
    node->child = sim_graph_copy(exec->graph);
    node->child->owned = true;
    return CUDA_SUCCESS;
}

static CUresult launch_locked(CUgraphExec exec_handle, CUstream handle, bool per_thread, const struct graph **done) {
    SIM_CALL_WITH_STREAM(stream);
    struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    if (exec == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing;
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (capturing)
        return capture(exec, stream);
    const CUresult launched = run(exec, stream);
    if (launched == CUDA_SUCCESS)
        *done = exec->graph;
    return launched;
}

/* Without the lock: the program's functions may call the driver. */
static void run_on_host(const struct graph *graph) {
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct node *const node = graph->nodes[i];
        if (node->transfer != NULL)
            sim_transfer_run(node->transfer);
        if (node->type == NODE_HOST)
            node->function(node->argument);
        if (node->child != NULL)
            run_on_host(node->child);
    }
}

static CUresult launch(CUgraphExec exec, CUstream handle, bool per_thread) {
    const struct graph *graph = NULL;
    const CUresult result = launch_locked(exec, handle, per_thread, &graph);
    if (graph != NULL)
        run_on_host(graph);
    return result;
}
SIM_BOTH(cuGraphLaunch, launch, (CUgraphExec exec, CUstream handle), exec, handle)

/* ---- updates ---- */

enum { UPDATED = 0, ERROR = 1, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3, FUNCTION_CHANGED = 7, ATTRIBUTES_CHANGED = 8 };

/* cuda.h, on cuGraphExecUpdate: what may not change about a node. */
static int compare_nodes(const struct exec *exec, const struct node *old, const struct node *new) {
    if (old->type != new->type)
        return TYPE_CHANGED;
    if (old->before_count != new->before_count)
        return TOPOLOGY_CHANGED;
    for (uint32_t k = 0; k < old->before_count; k++)
        if (old->before[k]->index != new->before[k]->index)
            return TOPOLOGY_CHANGED;
    if (old->context != new->context)
        return FUNCTION_CHANGED;
    const bool priorities = (exec->flags & GRAPH_USE_NODE_PRIORITY) != 0;
    return priorities && old->launch.set.priority != new->launch.set.priority ? ATTRIBUTES_CHANGED : UPDATED;
}

/* Nodes are paired in the order of their making. `where`: the node at which they differ. */
static int compare(const struct exec *exec, const struct graph *old, const struct graph *new,
                   const struct node **where) {
    if (old->count != new->count)
        return TOPOLOGY_CHANGED;
    for (uint32_t i = 0; i < old->count; i++) {
        *where = new->nodes[i];
        int result = compare_nodes(exec, old->nodes[i], new->nodes[i]);
        if (result == UPDATED && old->nodes[i]->child != NULL)
            result = compare(exec, old->nodes[i]->child, new->nodes[i]->child, where);
        if (result != UPDATED)
            return result;
    }
    return UPDATED;
}

static CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info) {
    SIM_CALL();
    struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    const struct graph *const graph = sim_handle_get(graph_handle, KIND_GRAPH);
    *info = (CUgraphExecUpdateResultInfo){.result = ERROR};
    if (exec == NULL || graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct node *where = NULL;
    info->result = compare(exec, exec->graph, graph, &where);
    if (info->result != UPDATED) {
        info->errorNode = where != NULL ? where->handle : NULL;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    sim_graph_free(exec->graph);
    exec->graph = sim_graph_copy(graph);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error, int *outcome) {
    CUgraphExecUpdateResultInfo info;
    const CUresult result = update(exec, graph, &info);
    if (error != NULL)
        *error = info.errorNode;
    if (outcome != NULL)
        *outcome = info.result;
    return result;
}

SIM_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    return info != NULL ? update(exec, graph, info) : CUDA_ERROR_INVALID_VALUE;
}
