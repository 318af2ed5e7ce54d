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
    CUgraphEdgeData *data; /* of the edges that lead there; or NULL */
    size_t found, room;
};

static void list_add(struct list *list, const struct node *node, const struct edge *edge) {
    if (list->out != NULL && list->found < list->room)
        list->out[list->found] = node->handle;
    if (list->data != NULL && list->found < list->room)
        list->data[list->found] = edge->data;
    list->found++;
}

static void list_end(struct list *list, size_t *count) {
    for (size_t i = list->found; list->out != NULL && i < list->room; i++)
        list->out[i] = NULL;
    *count = list->found;
}

/* Whether an edge to the node has data, which a call without room for it would lose. */
static bool would_lose(const struct node *node) {
    bool found = false;
    for (uint32_t i = 0; i < node->before_count; i++)
        found = found || sim_edge_has_data(&node->before[i]);
    return found;
}

static CUresult get_nodes(CUgraph handle, CUgraphNode *out, size_t *count, bool roots) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.out = out, .room = *count};
    for (uint32_t i = 0; i < graph->count; i++)
        if (!roots || graph->nodes[i]->before_count == 0)
            list_add(&list, graph->nodes[i], NULL);
    list_end(&list, count);
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
    if (graph == NULL || count == NULL || (data != NULL && (from == NULL || to == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; data == NULL && (from != NULL || to != NULL) && i < graph->count; i++)
        if (would_lose(graph->nodes[i]))
            return CUDA_ERROR_LOSSY_QUERY;
    struct list starts = {.out = from, .data = data, .room = *count}, ends = {.out = to, .room = *count};
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->before_count; k++) {
            const struct edge *const edge = &graph->nodes[i]->before[k];
            list_add(&starts, edge->from, edge);
            list_add(&ends, graph->nodes[i], edge);
        }
    list_end(&starts, count);
    list_end(&ends, count);
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
    if (node == NULL || count == NULL || (data != NULL && out == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (data == NULL && out != NULL && would_lose(node))
        return CUDA_ERROR_LOSSY_QUERY;
    struct list list = {.out = out, .data = data, .room = *count};
    for (uint32_t i = 0; i < node->before_count; i++)
        list_add(&list, node->before[i].from, &node->before[i]);
    list_end(&list, count);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count) {
    return get_before(node, out, NULL, count);
}

SIM_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                               size_t *count) {
    return get_before(node, out, data, count);
}

/* The edge to a node from another, or NULL. */
static struct edge *edge_of(const struct node *to, const struct node *from) {
    for (uint32_t i = 0; i < to->before_count; i++)
        if (to->before[i].from == from)
            return &to->before[i];
    return NULL;
}

static CUresult get_after(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || count == NULL || (data != NULL && out == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; data == NULL && out != NULL && i < node->graph->count; i++) {
        const struct edge *const edge = edge_of(node->graph->nodes[i], node);
        if (edge != NULL && sim_edge_has_data(edge))
            return CUDA_ERROR_LOSSY_QUERY;
    }
    struct list list = {.out = out, .data = data, .room = *count};
    for (uint32_t i = 0; i < node->graph->count; i++) {
        const struct edge *const edge = edge_of(node->graph->nodes[i], node);
        if (edge != NULL)
            list_add(&list, node->graph->nodes[i], edge);
    }
    list_end(&list, count);
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

static bool add_edge(struct node *to, const struct edge *edge) {
    if (edge_of(to, edge->from) != NULL) /* twice in one call */
        return true;
    struct edge *const grown = realloc(to->before, (to->before_count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    grown[to->before_count++] = *edge;
    to->before = grown;
    return true;
}

/* Only one with the same data is there to be taken away. */
static bool may_change(const struct graph *graph, const struct node *to, const struct edge *edge, bool add) {
    if (edge->from == NULL || to == NULL || edge->from == to || edge->from->graph != graph || to->graph != graph)
        return false;
    const struct edge *const old = edge_of(to, edge->from);
    if (add)
        return old == NULL && sim_edge_is_good(edge, to->type);
    return old != NULL && memcmp(&old->data, &edge->data, sizeof old->data) == 0;
}

/* Adds or takes away edges; nothing is changed unless all of them are good. A cycle is found when the graph is
 * instantiated, as on the real driver. */
static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                             const CUgraphEdgeData *data, size_t count, bool add) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || (count > 0 && (from == NULL || to == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct edge edge = sim_edge_from(from[i], data != NULL ? &data[i] : NULL);
        if (!may_change(graph, sim_handle_get(to[i], KIND_NODE), &edge, add))
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        const struct edge edge = sim_edge_from(from[i], data != NULL ? &data[i] : NULL);
        struct node *const end = sim_handle_get(to[i], KIND_NODE);
        struct edge *const old = edge_of(end, edge.from);
        if (!add && old != NULL)
            *old = end->before[--end->before_count];
        if (add && !add_edge(end, &edge))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return change_edges(graph, from, to, NULL, count, true);
}

SIM_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           const CUgraphEdgeData *data, size_t count) {
    return change_edges(graph, from, to, data, count, true);
}

SIM_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t count) {
    return change_edges(graph, from, to, NULL, count, false);
}

SIM_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                              const CUgraphEdgeData *data, size_t count) {
    return change_edges(graph, from, to, data, count, false);
}
