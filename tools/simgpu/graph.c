/* Graphs as data: nodes in the order of their making, each with what it depends on.
 *
 * Every node has a number of its own, and a copy remembers the number of what it was copied from: so an executable
 * graph finds the node that a program means, whatever was added to or taken from the graph since.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint64_t next_id;

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

/* ---- edges ---- */

struct edge sim_edge_from(CUgraphNode node, const CUgraphEdgeData *data) {
    struct edge edge = {.from = sim_handle_get(node, KIND_NODE)};
    if (data != NULL)
        edge.data = *data;
    return edge;
}

bool sim_edge_has_data(const struct edge *edge) {
    return memcmp(&edge->data, &(CUgraphEdgeData){0}, sizeof edge->data) != 0;
}

/* cuda.h, on CUgraphEdgeData and CUgraphDependencyType. */
bool sim_edge_is_good(const struct edge *edge, int type) {
    const CUgraphEdgeData *const data = &edge->data;
    const CUgraphEdgeData known = {.from_port = data->from_port, .type = data->type};
    if (memcmp(data, &known, sizeof known) != 0 || data->type > EDGE_PROGRAMMATIC ||
        data->from_port > PORT_LAUNCH_ORDER)
        return false;
    if (data->type == EDGE_PROGRAMMATIC)
        return data->from_port != PORT_END && edge->from->type == NODE_KERNEL && type == NODE_KERNEL;
    return data->from_port == PORT_END || (data->from_port == PORT_LAUNCH_ORDER && edge->from->type == NODE_KERNEL);
}

bool sim_edges_set(struct edge **edges, uint32_t *count, const struct edge *from, uint32_t from_count) {
    struct edge *const grown = realloc(*edges, (from_count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    if (from_count > 0)
        memmove(grown, from, from_count * sizeof *grown);
    *edges = grown;
    *count = from_count;
    return true;
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
    free(node->batch);
    free(node);
}

void sim_graph_free(struct graph *graph) {
    for (uint32_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    sim_handle_free(graph->handle);
    free(graph->nodes);
    free(graph);
}

struct node *sim_node_new(struct graph *graph, int type, const struct edge *before, uint32_t count) {
    if (graph->count == graph->room) {
        const uint32_t room = graph->room == 0 ? 8 : 2 * graph->room;
        struct node **const grown = realloc(graph->nodes, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        graph->nodes = grown;
        graph->room = room;
    }
    struct node *const node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    node->handle = sim_handle_new(KIND_NODE, node);
    node->graph = graph;
    node->type = type;
    node->index = graph->count;
    node->id = ++next_id;
    if (node->handle == NULL || !sim_edges_set(&node->before, &node->before_count, before, count)) {
        sim_handle_free(node->handle);
        free(node);
        return NULL;
    }
    graph->nodes[graph->count++] = node;
    return node;
}

/* Takes a node out of its graph, with every edge from and to it. */
void sim_node_remove(struct node *node) {
    struct graph *const graph = node->graph;
    graph->count--;
    for (uint32_t i = node->index; i < graph->count; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        struct node *const other = graph->nodes[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < other->before_count; k++)
            if (other->before[k].from != node)
                other->before[kept++] = other->before[k];
        other->before_count = kept;
    }
    node_free(node);
}

static uint32_t turn_of(CUfunction handle) {
    const uint32_t turn = sim_handle_turn(handle, KIND_FUNCTION);
    return turn != 0 ? turn : sim_handle_turn(handle, KIND_KERNEL);
}

bool sim_node_set_launch(struct node *node, const struct launch_request *request) {
    uint8_t *const parameters = calloc(1, request->parameter_bytes + 1u);
    if (parameters == NULL)
        return false;
    if (request->parameters != NULL)
        memcpy(parameters, request->parameters, request->parameter_bytes);
    free(node->launch.parameters);
    free(node->parameter_pointers); /* to those */
    node->parameter_pointers = NULL;
    node->launch = *request;
    node->launch.usable = NULL;
    node->launch.parameters = parameters;
    if (request->turn == 0)
        node->launch.turn = turn_of(request->handle);
    return true;
}

bool sim_node_keep_attribute(struct node *node, int id, const CUlaunchAttributeValue *value) {
    if (node->attributes == NULL && (node->attributes = calloc(1, sizeof *node->attributes)) == NULL)
        return false;
    node->attributes->known |= 1u << id;
    node->attributes->value[id] = *value;
    return true;
}

bool sim_node_copy_attributes(struct node *to, const struct node *from) {
    if (from->attributes != NULL && to->attributes == NULL && (to->attributes = malloc(sizeof *to->attributes)) == NULL)
        return false;
    if (from->attributes != NULL)
        *to->attributes = *from->attributes;
    else if (to->attributes != NULL)
        to->attributes->known = 0;
    to->launch.has_cluster = from->launch.has_cluster;
    memcpy(to->launch.cluster_size, from->launch.cluster_size, sizeof to->launch.cluster_size);
    memcpy(to->launch.preferred_cluster, from->launch.preferred_cluster, sizeof to->launch.preferred_cluster);
    to->launch.cluster = from->launch.cluster;
    to->launch.cooperative = from->launch.cooperative;
    to->launch.has_carveout = from->launch.has_carveout;
    to->launch.carveout = from->launch.carveout;
    to->launch.has_priority = from->launch.has_priority;
    to->launch.priority = from->launch.priority;
    to->launch.asked_priority = from->launch.asked_priority;
    return true;
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

static bool copy_payload(struct node *to, const struct node *from) {
    to->origin = from->id;
    to->context = from->context;
    to->function = from->function;
    to->argument = from->argument;
    to->event = from->event;
    if (from->type == NODE_KERNEL && (!sim_node_set_launch(to, &from->launch) || !sim_node_copy_attributes(to, from)))
        return false;
    if (from->transfer != NULL) {
        to->transfer = malloc(sizeof *to->transfer);
        if (to->transfer == NULL)
            return false;
        *to->transfer = *from->transfer;
    }
    if (from->batch != NULL && (to->batch = sim_batch_copy(from->batch)) == NULL)
        return false;
    if (from->child != NULL) {
        to->child = sim_graph_copy(from->child);
        if (to->child == NULL)
            return false;
        to->child->owned = true;
    }
    return true;
}

struct graph *sim_graph_copy(const struct graph *graph) {
    struct graph *const copy = sim_graph_new();
    if (copy == NULL)
        return NULL;
    bool good = true;
    for (uint32_t i = 0; good && i < graph->count; i++) {
        struct node *const node = sim_node_new(copy, graph->nodes[i]->type, NULL, 0);
        good = node != NULL && copy_payload(node, graph->nodes[i]);
    }
    for (uint32_t i = 0; good && i < graph->count; i++) { /* an edge may lead to a node that was made later */
        const struct node *const from = graph->nodes[i];
        struct node *const to = copy->nodes[i];
        good = sim_edges_set(&to->before, &to->before_count, from->before, from->before_count);
        for (uint32_t k = 0; good && k < to->before_count; k++)
            to->before[k].from = copy->nodes[from->before[k].from->index];
    }
    if (!good) {
        sim_graph_free(copy);
        return NULL;
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

/* Nodes that are in a good order stay in it. */
bool sim_graph_sort(struct graph *graph) {
    struct node **const sorted = calloc(graph->count + 1u, sizeof *sorted);
    bool *const placed = calloc(graph->count + 1u, sizeof *placed);
    uint32_t count = 0;
    for (bool moved = sorted != NULL && placed != NULL; moved && count < graph->count;) {
        moved = false;
        for (uint32_t i = 0; i < graph->count; i++) {
            const struct node *const node = graph->nodes[i];
            bool ready = !placed[i];
            for (uint32_t k = 0; ready && k < node->before_count; k++)
                ready = placed[node->before[k].from->index];
            if (!ready)
                continue;
            placed[i] = moved = true;
            sorted[count++] = graph->nodes[i];
        }
    }
    bool good = sorted != NULL && count == graph->count;
    for (uint32_t i = 0; good && i < count; i++) {
        graph->nodes[i] = sorted[i];
        sorted[i]->index = i;
    }
    for (uint32_t i = 0; good && i < count; i++)
        good = graph->nodes[i]->child == NULL || sim_graph_sort(graph->nodes[i]->child);
    free(sorted);
    free(placed);
    return good;
}
