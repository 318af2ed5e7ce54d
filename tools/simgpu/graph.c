/* Graphs as data: nodes in the order of their making, each with those that it depends on. And the entry points for them.
 *
 * Every node has a number of its own, and a copy remembers the number of what it was copied from: so an executable graph finds the
 * node that a program means, whatever was added to the graph since. Programs add kernels; captures also copies, host functions,
 * events and whole graphs.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint64_t next_id;

struct graph *sim_graph_new(void) {
    struct graph *const graph = sim_new(1, sizeof *graph);
    graph->handle = sim_handle_new(KIND_GRAPH, graph);
    return graph;
}

void sim_nodes_set(struct node ***nodes, uint32_t *count, struct node *const *from, uint32_t from_count) {
    *nodes = sim_grow(*nodes, from_count, sizeof **nodes);
    if (from_count > 0)
        memmove(*nodes, from, from_count * sizeof **nodes);
    *count = from_count;
}

/* ---- nodes ---- */

static void node_free(struct node *node) {
    sim_handle_free(node->handle);
    if (node->child != NULL)
        sim_graph_free(node->child);
    free(node->before);
    free(node->launch.parameters);
    free(node->attributes);
    free(node->parameter_pointers);
    free(node->transfer);
    free(node);
}

void sim_graph_free(struct graph *graph) {
    for (uint32_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    sim_handle_free(graph->handle);
    free(graph->nodes);
    free(graph);
}

struct node *sim_node_new(struct graph *graph, int type, struct node *const *before, uint32_t count) {
    if (graph->count == graph->room) {
        graph->room = graph->room == 0 ? 8 : 2 * graph->room;
        graph->nodes = sim_grow(graph->nodes, graph->room, sizeof *graph->nodes);
    }
    struct node *const node = sim_new(1, sizeof *node);
    node->handle = sim_handle_new(KIND_NODE, node);
    node->graph = graph;
    node->type = type;
    node->index = graph->count;
    node->id = ++next_id;
    sim_nodes_set(&node->before, &node->before_count, before, count);
    graph->nodes[graph->count++] = node;
    return node;
}

/* Takes back the node that was made last. */
void sim_node_undo(struct node *node) {
    node->graph->count--;
    node_free(node);
}

static uint32_t turn_of(CUfunction handle) {
    const uint32_t turn = sim_handle_turn(handle, KIND_FUNCTION);
    return turn != 0 ? turn : sim_handle_turn(handle, KIND_KERNEL);
}

void sim_node_set_launch(struct node *node, const struct launch_request *request) {
    uint8_t *const parameters = sim_new(request->parameter_bytes, 1);
    if (request->parameters != NULL)
        memcpy(parameters, request->parameters, request->parameter_bytes);
    free(node->launch.parameters);
    free(node->parameter_pointers); /* to those */
    node->parameter_pointers = NULL;
    node->launch = *request;
    node->launch.parameters = parameters;
    if (request->turn == 0)
        node->launch.turn = turn_of(request->handle);
}

void sim_node_keep_attribute(struct node *node, int id, const CUlaunchAttributeValue *value) {
    if (node->attributes == NULL)
        node->attributes = sim_new(1, sizeof *node->attributes);
    node->attributes->known |= 1u << id;
    node->attributes->value[id] = *value;
}

void sim_node_copy_attributes(struct node *to, const struct node *from) {
    if (from->attributes != NULL && to->attributes == NULL)
        to->attributes = sim_new(1, sizeof *to->attributes);
    if (from->attributes != NULL)
        *to->attributes = *from->attributes;
    else if (to->attributes != NULL)
        to->attributes->known = 0;
    to->launch.set = from->launch.set;
}

/* The function of a kernel node: it may be gone by now. What a driver does with such a node is undefined (cuModuleUnload); here it is
 * an error, also where another kernel has the handle. */
CUresult sim_node_resolve(struct node *node, struct context *context) {
    if (node->context != NULL)
        context = sim_context_of(node->context);
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct function *function;
    if (turn_of(node->launch.handle) != node->launch.turn)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = sim_function_of(node->launch.handle, context, true, &function);
    if (result == CUDA_SUCCESS)
        node->launch.function = function;
    return result;
}

/* ---- copies ---- */

static void copy_payload(struct node *to, const struct node *from) {
    to->origin = from->id;
    to->context = from->context;
    to->function = from->function;
    to->argument = from->argument;
    to->event = from->event;
    if (from->type == NODE_KERNEL) {
        sim_node_set_launch(to, &from->launch);
        sim_node_copy_attributes(to, from);
    }
    if (from->transfer != NULL) {
        to->transfer = sim_new(1, sizeof *to->transfer);
        *to->transfer = *from->transfer;
    }
    if (from->child != NULL) {
        to->child = sim_graph_copy(from->child);
        to->child->owned = true;
    }
}

struct graph *sim_graph_copy(const struct graph *graph) {
    struct graph *const copy = sim_graph_new();
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct node *const from = graph->nodes[i];
        struct node *const node = sim_node_new(copy, from->type, from->before, from->before_count);
        copy_payload(node, from);
        for (uint32_t k = 0; k < node->before_count; k++) /* which were made before it */
            node->before[k] = copy->nodes[node->before[k]->index];
    }
    return copy;
}

struct node *sim_graph_find_copy(const struct graph *graph, uint64_t origin) {
    for (uint32_t i = 0; i < graph->count; i++) {
        struct node *const node = graph->nodes[i];
        if (node->origin == origin)
            return node;
        struct node *const inside = node->child != NULL ? sim_graph_find_copy(node->child, origin) : NULL;
        if (inside != NULL)
            return inside;
    }
    return NULL;
}

/* ---- entry points ---- */

SIM_API CUresult cuGraphCreate(CUgraph *out, unsigned int flags) {
    SIM_CALL();
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_graph_new()->handle;
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
    *out = sim_graph_copy(graph)->handle;
    return CUDA_SUCCESS;
}

/* As many as there is room for, and NULL behind them. */
SIM_API CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *out, size_t *count) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out != NULL && i < *count; i++)
        out[i] = i < graph->count ? graph->nodes[i]->handle : NULL;
    *count = graph->count;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeGetType(CUgraphNode handle, int *type) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || type == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}
