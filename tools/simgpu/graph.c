/* Graphs as data: nodes in the order of their making, each with what it depends on. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct graph *sim_graph_new(void) {
    struct graph *const graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return NULL;
    graph->handle = sim_handle_new(KIND_GRAPH, graph);
    if (graph->handle == NULL) {
        free(graph);
        return NULL;
    }
    return graph;
}

static void node_free(struct node *node) {
    sim_handle_free(node->handle);
    free(node->before);
    free(node->launch.parameters);
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
    if ((graph->count & (graph->count - 1)) == 0) { /* room doubles at powers of two */
        struct node **const grown =
            realloc(graph->nodes, (graph->count == 0 ? 1 : 2 * (size_t)graph->count) * sizeof *grown);
        if (grown == NULL)
            return NULL;
        graph->nodes = grown;
    }
    struct node *const node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    node->handle = sim_handle_new(KIND_NODE, node);
    node->graph = graph;
    node->type = type;
    node->index = graph->count;
    if (node->handle == NULL || !sim_heads_set(&node->before, &node->before_count, before, count)) {
        sim_handle_free(node->handle);
        free(node);
        return NULL;
    }
    graph->nodes[graph->count++] = node;
    return node;
}

bool sim_node_set_launch(struct node *node, const struct launch_request *request) {
    uint8_t *const parameters = calloc(1, request->parameter_bytes + 1u);
    if (parameters == NULL)
        return false;
    if (request->parameters != NULL)
        memcpy(parameters, request->parameters, request->parameter_bytes);
    free(node->launch.parameters);
    node->launch = *request;
    node->launch.parameters = parameters;
    return true;
}

/* The function of a kernel node may be gone by now, or its attributes may have changed. */
CUresult sim_node_check(struct node *node, struct context *context) {
    if (node->type != NODE_KERNEL)
        return CUDA_SUCCESS;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct function *function;
    const CUresult result = sim_function_of(node->launch.handle, context, true, &function);
    if (result != CUDA_SUCCESS)
        return result;
    node->launch.function = function;
    return sim_launch_check(&node->launch);
}

static bool copy_node(struct graph *to, const struct node *node) {
    struct node **const before = calloc(node->before_count + 1u, sizeof(struct node *));
    if (before == NULL)
        return false;
    for (uint32_t i = 0; i < node->before_count; i++)
        before[i] = to->nodes[node->before[i]->index];
    struct node *const copy = sim_node_new(to, node->type, before, node->before_count);
    free(before);
    if (copy == NULL || (node->type == NODE_KERNEL && !sim_node_set_launch(copy, &node->launch)))
        return false;
    copy->function = node->function;
    copy->argument = node->argument;
    copy->event = node->event;
    if (node->transfer != NULL) {
        copy->transfer = malloc(sizeof *copy->transfer);
        if (copy->transfer == NULL)
            return false;
        *copy->transfer = *node->transfer;
    }
    return true;
}

struct graph *sim_graph_copy(const struct graph *graph) {
    struct graph *const copy = sim_graph_new();
    if (copy == NULL)
        return NULL;
    for (uint32_t i = 0; i < graph->count; i++) /* what a node depends on was made before it */
        if (!copy_node(copy, graph->nodes[i])) {
            sim_graph_free(copy);
            return NULL;
        }
    return copy;
}
