/* Executable graphs that change: one node at a time, or to the parameters of another graph of the same shape. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* The node of an executable graph that was made from `node`. */
struct node *sim_exec_node(CUgraphExec exec_handle, CUgraphNode handle) {
    const struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    return exec != NULL && node != NULL ? sim_graph_find_copy(exec->graph, node->id) : NULL;
}

/* After an update the nodes still answer for those that the graph was instantiated from. */
void sim_graph_take_origins(struct graph *to, const struct graph *from) {
    for (uint32_t i = 0; i < to->count && i < from->count; i++) {
        to->nodes[i]->origin = from->nodes[i]->origin;
        if (to->nodes[i]->child != NULL && from->nodes[i]->child != NULL)
            sim_graph_take_origins(to->nodes[i]->child, from->nodes[i]->child);
    }
}

enum {
    UPDATED = 0,
    ERROR = 1,
    TOPOLOGY_CHANGED = 2,
    TYPE_CHANGED = 3,
    PARAMETERS_CHANGED = 5,
    FUNCTION_CHANGED = 7,
    ATTRIBUTES_CHANGED = 8
};

/* cuda.h, on cuGraphExecUpdate: what may not change about a kernel node. */
static int compare_kernels(const struct exec *exec, const struct node *old, const struct node *new) {
    if (old->context != new->context)
        return FUNCTION_CHANGED;
    if (old->launch.cooperative != new->launch.cooperative ||
        (exec->node_priorities && old->launch.asked_priority != new->launch.asked_priority))
        return ATTRIBUTES_CHANGED;
    return sim_refused_in_graphs(&new->launch) ? PARAMETERS_CHANGED : UPDATED;
}

static int compare_nodes(const struct exec *exec, const struct node *old, const struct node *new,
                         const struct node **from) {
    if (old->type != new->type)
        return TYPE_CHANGED;
    if (old->before_count != new->before_count)
        return TOPOLOGY_CHANGED;
    for (uint32_t k = 0; k < old->before_count; k++)
        if (old->before[k].from->index != new->before[k].from->index ||
            memcmp(&old->before[k].data, &new->before[k].data, sizeof old->before[k].data) != 0) {
            *from = new->before[k].from;
            return TOPOLOGY_CHANGED;
        }
    return old->type == NODE_KERNEL ? compare_kernels(exec, old, new) : UPDATED;
}

/* Nodes are paired in the order of their making. `where`: the node at which they differ, `from`: its edge that does. */
int sim_graph_compare(const struct exec *exec, const struct graph *old, const struct graph *new,
                      const struct node **where, const struct node **from) {
    *where = *from = NULL;
    if (old->count != new->count)
        return TOPOLOGY_CHANGED;
    for (uint32_t i = 0; i < old->count; i++) {
        const struct node *const a = old->nodes[i], *const b = new->nodes[i];
        *where = b;
        int result = compare_nodes(exec, a, b, from);
        if (result == UPDATED && a->child != NULL)
            result = sim_graph_compare(exec, a->child, b->child, where, from);
        if (result != UPDATED)
            return result;
    }
    return UPDATED;
}

/* The handle of the node that `copy` was made from. */
static CUgraphNode original(const struct graph *graph, const struct node *copy) {
    for (uint32_t i = 0; copy != NULL && i < graph->count; i++) {
        const struct node *const node = graph->nodes[i];
        if (node->id == copy->origin)
            return node->handle;
        const CUgraphNode inside = node->child != NULL ? original(node->child, copy) : NULL;
        if (inside != NULL)
            return inside;
    }
    return NULL;
}

static CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info) {
    SIM_CALL();
    struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    const struct graph *const graph = sim_handle_get(graph_handle, KIND_GRAPH);
    *info = (CUgraphExecUpdateResultInfo){.result = ERROR};
    if (exec == NULL || graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph *const copy = sim_graph_copy(graph);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const struct node *where = NULL, *from = NULL;
    info->result = sim_graph_sort(copy) ? sim_graph_compare(exec, exec->graph, copy, &where, &from) : TOPOLOGY_CHANGED;
    if (info->result != UPDATED) {
        info->errorNode = original(graph, where);
        info->errorFromNode = original(graph, from);
        sim_graph_free(copy);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    sim_graph_take_origins(copy, exec->graph);
    sim_graph_free(exec->graph);
    exec->graph = copy;
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
