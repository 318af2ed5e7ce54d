/* The entry points of graphs: making, reading and changing their shape. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

SIM_API CUresult cuGraphCreate(CUgraph *out, unsigned int flags) {
    SIM_CALL();
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const struct graph *const graph = sim_graph_new();
    if (graph == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = graph->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphDestroy(CUgraph handle) {
    SIM_CALL();
    struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || graph->owned || graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_free(graph);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphClone(CUgraph *out, CUgraph handle) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (out == NULL || graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct graph *const copy = sim_graph_copy(graph);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = copy->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode handle, CUgraph clone) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    const struct graph *const graph = sim_handle_get(clone, KIND_GRAPH);
    if (out == NULL || node == NULL || graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct node *const found = sim_graph_find_copy(graph, node->id);
    if (found == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = found->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphDestroyNode(CUgraphNode handle) {
    SIM_CALL();
    struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || node->graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    sim_node_remove(node);
    return CUDA_SUCCESS;
}

/* A list that the program has room for `*count` entries of. */
struct list {
    CUgraphNode *out;
    size_t found, room;
};

static void list_add(struct list *list, const struct node *node) {
    if (list->out != NULL && list->found < list->room)
        list->out[list->found] = node->handle;
    list->found++;
}

static void list_end(struct list *list, CUgraphEdgeData *data, size_t *count) {
    for (size_t i = list->found; list->out != NULL && i < list->room; i++)
        list->out[i] = NULL;
    const size_t filled = list->found < list->room ? list->found : list->room;
    if (data != NULL)
        memset(data, 0, filled * sizeof *data);
    *count = list->found;
}

static CUresult get_nodes(CUgraph handle, CUgraphNode *out, size_t *count, bool roots) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {out, 0, *count};
    for (uint32_t i = 0; i < graph->count; i++)
        if (!roots || graph->nodes[i]->before_count == 0)
            list_add(&list, graph->nodes[i]);
    list_end(&list, NULL, count);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count) {
    return get_nodes(graph, out, count, false);
}

SIM_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *count) {
    return get_nodes(graph, out, count, true);
}

static CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct list starts = {from, 0, *count}, ends = {to, 0, *count};
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->before_count; k++) {
            list_add(&starts, graph->nodes[i]->before[k]);
            list_add(&ends, graph->nodes[i]);
        }
    list_end(&starts, NULL, count);
    list_end(&ends, data, count);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    return get_edges(graph, from, to, NULL, count);
}

SIM_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                    size_t *count) {
    return get_edges(graph, from, to, data, count);
}

static CUresult get_before(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {out, 0, *count};
    for (uint32_t i = 0; i < node->before_count; i++)
        list_add(&list, node->before[i]);
    list_end(&list, data, count);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count) {
    return get_before(node, out, NULL, count);
}

SIM_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                               size_t *count) {
    return get_before(node, out, data, count);
}

/* Where `from` stands among what `to` depends on, or before_count. */
static uint32_t edge_of(const struct node *to, const struct node *from) {
    uint32_t at = 0;
    while (at < to->before_count && to->before[at] != from)
        at++;
    return at;
}

static CUresult get_after(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {out, 0, *count};
    for (uint32_t i = 0; i < node->graph->count; i++) {
        const struct node *const other = node->graph->nodes[i];
        if (edge_of(other, node) < other->before_count)
            list_add(&list, other);
    }
    list_end(&list, data, count);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count) {
    return get_after(node, out, NULL, count);
}

SIM_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                                 size_t *count) {
    return get_after(node, out, data, count);
}

SIM_API CUresult cuGraphNodeGetType(CUgraphNode handle, int *type) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || type == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

/* Adds or takes away edges; nothing is changed unless all of them are good. A cycle is found when the graph is
 * instantiated, as on the real driver. */
static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count, bool add) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || (count > 0 && (from == NULL || to == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct node *const start = sim_handle_get(from[i], KIND_NODE), *const end =
                                                                                 sim_handle_get(to[i], KIND_NODE);
        if (start == NULL || end == NULL || start == end || start->graph != graph || end->graph != graph ||
            (edge_of(end, start) == end->before_count) != add)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        struct node *const start = sim_handle_get(from[i], KIND_NODE), *const end = sim_handle_get(to[i], KIND_NODE);
        const uint32_t at = edge_of(end, start);
        if (!add && at < end->before_count)
            end->before[at] = end->before[--end->before_count];
        if (!add || at < end->before_count)
            continue;
        struct node **const grown = realloc(end->before, (end->before_count + 1) * sizeof *grown);
        if (grown == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        grown[end->before_count++] = start;
        end->before = grown;
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return change_edges(graph, from, to, count, true);
}

SIM_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           const CUgraphEdgeData *data, size_t count) {
    (void)data;
    return change_edges(graph, from, to, count, true);
}

SIM_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t count) {
    return change_edges(graph, from, to, count, false);
}

SIM_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                              const CUgraphEdgeData *data, size_t count) {
    (void)data;
    return change_edges(graph, from, to, count, false);
}
