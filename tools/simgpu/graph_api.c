/* The entry points of graphs: making and reading them. */
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
    if (graph == NULL)
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

static CUresult get_nodes(CUgraph handle, CUgraphNode *out, size_t *count, bool roots) {
    SIM_CALL();
    const struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    size_t found = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        if (roots && graph->nodes[i]->before_count > 0)
            continue;
        if (out != NULL && found < *count)
            out[found] = graph->nodes[i]->handle;
        found++;
    }
    for (size_t i = found; out != NULL && i < *count; i++)
        out[i] = NULL;
    *count = found;
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
    size_t found = 0;
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->before_count; k++, found++) {
            if (found >= *count)
                continue;
            if (from != NULL)
                from[found] = graph->nodes[i]->before[k]->handle;
            if (to != NULL)
                to[found] = graph->nodes[i]->handle;
            if (data != NULL)
                memset(&data[found], 0, sizeof data[found]);
        }
    *count = found;
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
    for (size_t i = 0; i < node->before_count && i < *count; i++) {
        if (out != NULL)
            out[i] = node->before[i]->handle;
        if (data != NULL)
            memset(&data[i], 0, sizeof data[i]);
    }
    *count = node->before_count;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count) {
    return get_before(node, out, NULL, count);
}

SIM_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                               size_t *count) {
    return get_before(node, out, data, count);
}

SIM_API CUresult cuGraphNodeGetType(CUgraphNode handle, int *type) {
    SIM_CALL();
    const struct node *const node = sim_handle_get(handle, KIND_NODE);
    if (node == NULL || type == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

/* A node of a graph that the program builds itself. */
static CUresult add(CUgraph handle, int type, const CUgraphNode *before, size_t count, struct node **out) {
    struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || (count > 0 && before == NULL) || count > 1 << 20)
        return CUDA_ERROR_INVALID_VALUE;
    struct node **const nodes = calloc(count + 1, sizeof(struct node *));
    if (nodes == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        nodes[i] = sim_handle_get(before[i], KIND_NODE);
        good = good && nodes[i] != NULL && nodes[i]->graph == graph;
    }
    *out = good ? sim_node_new(graph, type, nodes, (uint32_t)count) : NULL;
    free(nodes);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count) {
    SIM_CALL();
    struct node *node;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = add(graph, NODE_EMPTY, before, count, &node);
    if (result == CUDA_SUCCESS)
        *out = node->handle;
    return result;
}

/* Reads a kernel node's parameters; `full`: the form with kern and ctx. */
CUresult sim_node_request(const CUDA_KERNEL_NODE_PARAMS *what, bool full, struct launch_request *request) {
    struct context *const context = sim_current_context();
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *request = (struct launch_request){
        .handle = what->func != NULL || !full ? what->func : what->kern,
        .grid = {what->gridDimX, what->gridDimY, what->gridDimZ},
        .block = {what->blockDimX, what->blockDimY, what->blockDimZ},
        .dynamic = what->sharedMemBytes,
    };
    CUresult result = sim_function_of(request->handle, context, true, &request->function);
    if (result == CUDA_SUCCESS)
        result = sim_launch_check(request);
    if (result == CUDA_SUCCESS)
        result = sim_launch_parameters(request, what->kernelParams, what->extra);
    return result;
}

static CUresult add_kernel(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS *what, bool full) {
    SIM_CALL();
    struct launch_request request = {0};
    struct node *node = NULL;
    if (out == NULL || what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_node_request(what, full, &request);
    if (result == CUDA_SUCCESS)
        result = add(graph, NODE_KERNEL, before, count, &node);
    if (result == CUDA_SUCCESS && !sim_node_set_launch(node, &request))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        *out = node->handle;
    free(request.parameters);
    return result;
}

SIM_API CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    return add_kernel(out, graph, before, count, (const CUDA_KERNEL_NODE_PARAMS *)(const void *)what, false);
}

SIM_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS *what) {
    return add_kernel(out, graph, before, count, what, true);
}

static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                         const CUgraphNodeParams *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (what->type == NODE_KERNEL)
        return add_kernel(out, graph, before, count, &what->of.kernel, true);
    return what->type == NODE_EMPTY ? cuGraphAddEmptyNode(out, graph, before, count) : CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                CUgraphNodeParams *what) {
    return add_node(out, graph, before, count, what);
}

SIM_API CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                   const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *what) {
    (void)data;
    return add_node(out, graph, before, count, what);
}
