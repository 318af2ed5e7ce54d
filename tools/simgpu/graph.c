/* Graphs as data: nodes in the order of their making, each with those that it depends on. And the entry points for them.
 * Captures make nodes: kernels, copies, host functions, events and whole graphs. */
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

static uint32_t turn_of(CUfunction handle) {
    const uint32_t turn = sim_handle_turn(handle, KIND_FUNCTION);
    return turn != 0 ? turn : sim_handle_turn(handle, KIND_KERNEL);
}

void sim_node_set_launch(struct node *node, const struct launch_request *request) {
    uint8_t *const parameters = sim_new(request->parameter_bytes, 1);
    if (request->parameters != NULL)
        memcpy(parameters, request->parameters, request->parameter_bytes);
    free(node->launch.parameters);
    node->launch = *request;
    node->launch.parameters = parameters;
    if (request->turn == 0)
        node->launch.turn = turn_of(request->handle);
}

/* The function of a kernel node: it may be gone by now. What a driver does with such a node is undefined (cuModuleUnload); here it is
 * an error, also where another kernel has the handle. */
CUresult sim_node_resolve(struct node *node, struct context *context) {
    if (node->context != NULL)
        context = sim_context_of(node->context);
    const CUresult usable = sim_context_check(context);
    if (usable != CUDA_SUCCESS)
        return usable;
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
    to->context = from->context;
    to->function = from->function;
    to->argument = from->argument;
    to->event = from->event;
    if (from->type == NODE_KERNEL)
        sim_node_set_launch(to, &from->launch);
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

SIM_API CUresult cuGraphNodeGetType(CUgraphNode handle, int *out) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = node->type;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || out == NULL || node->child == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = node->child->handle;
    return CUDA_SUCCESS;
}

/* Without the parameters of the kernel. */
SIM_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *out) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || out == NULL || node->type != NODE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct launch_request *const launch = &node->launch;
    *out = (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = launch->handle,
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->dynamic,
    };
    return CUDA_SUCCESS;
}
