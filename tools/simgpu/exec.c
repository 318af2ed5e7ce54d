/* Executable graphs: a copy of a graph, launched as operations of a stream.
 *
 * Node priorities count only if the graph was instantiated with the flag for them; else every kernel runs at
 * the priority of the stream that launches the graph. Copies and host functions are done at launch, in order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (out == NULL || graph == NULL || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < graph->count; i++) {
        const CUresult result = sim_node_check(graph->nodes[i], sim_current_context());
        if (result != CUDA_SUCCESS)
            return result;
    }
    struct exec *const exec = calloc(1, sizeof *exec);
    if (exec == NULL || (exec->graph = sim_graph_copy(graph)) == NULL ||
        (exec->handle = sim_handle_new(KIND_EXEC, exec)) == NULL) {
        free(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->flags = flags;
    *out = exec->handle;
    return CUDA_SUCCESS;
}

static CUresult instantiate_with_log(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes) {
    if (error != NULL)
        *error = NULL;
    if (log != NULL && bytes > 0)
        *log = '\0';
    return instantiate(out, graph, 0);
}

SIM_API CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes) {
    return instantiate_with_log(out, graph, error, log, bytes);
}

SIM_API CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes) {
    return instantiate_with_log(out, graph, error, log, bytes);
}

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    return instantiate(out, graph, flags);
}

static CUresult instantiate_with_params(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *what) {
    enum { SUCCESS = 0, ERROR = 1 };
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = instantiate(out, graph, what->flags);
    what->hErrNode_out = NULL;
    what->result_out = result == CUDA_SUCCESS ? SUCCESS : ERROR;
    return result;
}

SIM_API CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *what) {
    return instantiate_with_params(out, graph, what);
}

SIM_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *what) {
    return instantiate_with_params(out, graph, what);
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec handle) {
    SIM_CALL();
    struct exec *const exec = sim_handle_get(handle, KIND_EXEC);
    if (exec == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_free(exec->graph);
    sim_handle_free(exec->handle);
    free(exec);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecGetFlags(CUgraphExec handle, uint64_t *flags) {
    SIM_CALL();
    const struct exec *const exec = sim_handle_get(handle, KIND_EXEC);
    if (exec == NULL || flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

static void log_node(const struct launch_request *request, const struct stream *stream, int priority, CUresult result) {
    char text[32];
    snprintf(text, sizeof text, "0x%llx", sim_stream_number(stream));
    sim_log_launch(&(struct launch_line){.entry = "cuGraphLaunch",
                                         .request = request,
                                         .stream = text,
                                         .result = result,
                                         .priority = priority,
                                         .graph = true});
}

static CUresult check(const struct graph *graph, const struct stream *stream) {
    for (uint32_t i = 0; i < graph->count; i++) {
        const CUresult result = sim_node_check(graph->nodes[i], stream->context);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

static struct op *node_op(const struct node *node, struct stream *stream, unsigned long long flags) {
    const bool transfer = node->transfer != NULL;
    const enum op_kind kind = node->type == NODE_KERNEL ? OP_KERNEL : transfer ? OP_DELAY : OP_NOTHING;
    struct op *const op = sim_op_new(kind, stream->context->device);
    if (kind == OP_KERNEL) {
        const int priority = (flags & GRAPH_USE_NODE_PRIORITY) != 0 ? node->launch.priority : stream->priority;
        sim_launch_fill(op, &node->launch, stream, priority);
        log_node(&node->launch, stream, priority, CUDA_SUCCESS);
    } else if (transfer)
        op->delay_us = node->transfer->us;
    struct event *const event = node->type == NODE_RECORD ? sim_handle_get(node->event, KIND_EVENT) : NULL;
    if (event != NULL) {
        sim_op_hold(op);
        sim_op_release(event->record);
        event->record = op;
        event->capture_id = 0;
    }
    return op;
}

static CUresult run(const struct exec *exec, struct stream *stream) {
    const struct graph *const graph = exec->graph;
    const CUresult result = check(graph, stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct op **const ops = calloc(graph->count + 1u, sizeof(struct op *));
    if (ops == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct op *const first = sim_stream_op(stream, OP_NOTHING);
    sim_stream_submit(stream, first);
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct node *const node = graph->nodes[i];
        ops[i] = node_op(node, stream, exec->flags);
        sim_op_hold(ops[i]);
        sim_op_wait_for(ops[i], node->before_count == 0 ? stream->tail : NULL);
        for (uint32_t k = 0; k < node->before_count; k++)
            sim_op_wait_for(ops[i], ops[node->before[k]->index]);
        sim_op_submit(ops[i]);
    }
    struct op *const last = sim_stream_op(stream, OP_NOTHING);
    for (uint32_t i = 0; i < graph->count; i++) {
        sim_op_wait_for(last, ops[i]);
        sim_op_release(ops[i]);
    }
    free(ops);
    sim_stream_submit(stream, last);
    return CUDA_SUCCESS;
}

static CUresult launch_locked(CUgraphExec exec_handle, CUstream handle, bool per_thread, const struct graph **done) {
    SIM_CALL_WITH_STREAM(stream);
    const struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    if (exec == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing;
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (capturing) { /* child graphs are not simulated */
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    const CUresult launched = run(exec, stream);
    if (launched == CUDA_SUCCESS)
        *done = exec->graph;
    return launched;
}

static CUresult launch(CUgraphExec exec, CUstream handle, bool per_thread) {
    const struct graph *graph = NULL;
    const CUresult result = launch_locked(exec, handle, per_thread, &graph);
    for (uint32_t i = 0; graph != NULL && i < graph->count; i++) {
        const struct node *const node = graph->nodes[i];
        if (node->transfer != NULL)
            sim_transfer_run(node->transfer);
        if (node->type == NODE_HOST)
            node->function(node->argument);
    }
    return result;
}
SIM_BOTH(cuGraphLaunch, launch, (CUgraphExec exec, CUstream handle), exec, handle)

static CUresult upload(CUgraphExec exec, CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    return sim_handle_get(exec, KIND_EXEC) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SIM_BOTH(cuGraphUpload, upload, (CUgraphExec exec, CUstream handle), exec, handle)

/* ---- updating ---- */

enum { UPDATED = 0, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3 };

static int compare(const struct graph *old, const struct graph *new, const struct node **where) {
    *where = NULL;
    if (old->count != new->count)
        return TOPOLOGY_CHANGED;
    for (uint32_t i = 0; i < old->count; i++) {
        const struct node *const a = old->nodes[i], *const b = new->nodes[i];
        *where = b;
        if (a->type != b->type)
            return TYPE_CHANGED;
        if (a->before_count != b->before_count)
            return TOPOLOGY_CHANGED;
        for (uint32_t k = 0; k < a->before_count; k++)
            if (a->before[k]->index != b->before[k]->index)
                return TOPOLOGY_CHANGED;
    }
    return UPDATED;
}

static CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphNode *error, int *outcome) {
    SIM_CALL();
    struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    const struct graph *const graph = sim_handle_get(graph_handle, KIND_GRAPH);
    if (exec == NULL || graph == NULL || outcome == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct node *where;
    *outcome = compare(exec->graph, graph, &where);
    if (error != NULL)
        *error = *outcome != UPDATED && where != NULL ? where->handle : NULL;
    if (*outcome != UPDATED)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    struct graph *const copy = sim_graph_copy(graph);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_graph_free(exec->graph);
    exec->graph = copy;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error, int *outcome) {
    return update(exec, graph, error, outcome);
}

SIM_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    if (info == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    info->errorFromNode = NULL;
    return update(exec, graph, &info->errorNode, &info->result);
}
