/* The entry points that add a node to a graph, and that read and set the parameters of one, of every kind but the
 * kernels' own (kernel_node.c). Each puts what it was given into the form of cuGraphAddNode.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static CUresult make(CUgraph handle, const CUgraphNode *before, const CUgraphEdgeData *data, size_t count, int type,
                     struct node **out) {
    struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (graph == NULL || (count > 0 && before == NULL) || count > 1 << 20)
        return CUDA_ERROR_INVALID_VALUE;
    struct edge *const edges = calloc(count + 1, sizeof *edges);
    if (edges == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        edges[i] = sim_edge_from(before[i], data != NULL ? &data[i] : NULL);
        good = good && edges[i].from != NULL && edges[i].from->graph == graph && sim_edge_is_good(&edges[i], type);
        for (size_t k = 0; good && k < i; k++)
            good = edges[k].from != edges[i].from;
    }
    *out = good ? sim_node_new(graph, type, edges, (uint32_t)count) : NULL;
    free(edges);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data,
                       size_t count, const CUgraphNodeParams *what, const char *entry) {
    SIM_CALL();
    struct node *node;
    if (out == NULL || what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = make(graph, before, data, count, what->type, &node);
    if (result != CUDA_SUCCESS)
        return result;
    result = sim_node_write(node, what, entry);
    if (result == CUDA_SUCCESS)
        *out = node->handle;
    else
        sim_node_remove(node);
    return result;
}

static CUresult add(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                    const CUgraphNodeParams *what, const char *entry) {
    return add_v2(out, graph, before, NULL, count, what, entry);
}

static CUresult set(CUgraphNode handle, const CUgraphNodeParams *what, const char *entry) {
    SIM_CALL();
    struct node *const node = sim_handle_get(handle, KIND_NODE);
    return node != NULL && what != NULL ? sim_node_write(node, what, entry) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get(CUgraphNode handle, int type, CUgraphNodeParams *out) {
    SIM_CALL();
    struct node *const node = sim_handle_get(handle, KIND_NODE);
    return node != NULL && node->type == type ? sim_node_read(node, out) : CUDA_ERROR_INVALID_VALUE;
}

/* A child graph may only become one of the same shape. */
static CUresult set_child(CUgraphExec exec, struct node *node, const CUgraphNodeParams *what) {
    const struct graph *const graph = sim_handle_get(what->of.graph.graph, KIND_GRAPH);
    const struct node *where, *from;
    if (graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_graph_compare(sim_handle_get(exec, KIND_EXEC), node->child, graph, &where, &from) != 0)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    return sim_node_write(node, what, "");
}

static CUresult set_in_exec(CUgraphExec exec, CUgraphNode handle, const CUgraphNodeParams *what, const char *entry) {
    SIM_CALL();
    struct node *const node = sim_exec_node(exec, handle);
    if (node == NULL || what == NULL || what->type != node->type)
        return CUDA_ERROR_INVALID_VALUE;
    return node->type == NODE_CHILD ? set_child(exec, node, what) : sim_node_write(node, what, entry);
}

/* ---- any kind ---- */

SIM_API CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                CUgraphNodeParams *what) {
    return add(out, graph, before, count, what, __func__);
}

SIM_API CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                   const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *what) {
    return add_v2(out, graph, before, data, count, what, __func__);
}

SIM_API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *what) {
    return set(node, what, __func__);
}

SIM_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what) {
    return set_in_exec(exec, node, what, __func__);
}

SIM_API CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count) {
    return add(out, graph, before, count, &(CUgraphNodeParams){.type = NODE_EMPTY}, __func__);
}

/* ---- kernels ---- */

SIM_API CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = sim_kernel_node_params_v1(what);
    return add(out, graph, before, count, &params, __func__);
}

SIM_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return add(out, graph, before, count, &(CUgraphNodeParams){.type = NODE_KERNEL, .of.kernel = *what}, __func__);
}

/* ---- copies and fills; `context` is where they run, which is the same everywhere here ---- */

static CUgraphNodeParams copy_params(const CUDA_MEMCPY3D *what) {
    return (CUgraphNodeParams){.type = NODE_MEMCPY, .of.memcpy.copyParams = *what};
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *what) {
    CUgraphNodeParams params = {.type = NODE_MEMSET};
    memcpy(&params.of.memset, what, sizeof *what);
    return params;
}

static CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS *what) {
    return (CUgraphNodeParams){.type = NODE_HOST, .of.host = *what};
}

#define GET_AND_SET(name, kind, structure, params_of, member)                                                          \
    SIM_API CUresult cuGraph##name##NodeSetParams(CUgraphNode node, const structure *what) {                           \
        if (what == NULL)                                                                                              \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        const CUgraphNodeParams params = params_of(what);                                                              \
        return set(node, &params, __func__);                                                                           \
    }                                                                                                                  \
    SIM_API CUresult cuGraph##name##NodeGetParams(CUgraphNode node, structure *out) {                                  \
        CUgraphNodeParams params;                                                                                      \
        if (out == NULL)                                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        const CUresult result = get(node, kind, &params);                                                              \
        if (result == CUDA_SUCCESS)                                                                                    \
            memcpy(out, &params.of.member, sizeof *out);                                                               \
        return result;                                                                                                 \
    }

#define ADD_IN_CONTEXT(name, structure, params_of)                                                                     \
    SIM_API CUresult cuGraphAdd##name##Node(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,  \
                                            const structure *what, CUcontext context) {                                \
        (void)context;                                                                                                 \
        if (what == NULL)                                                                                              \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        const CUgraphNodeParams params = params_of(what);                                                              \
        return add(out, graph, before, count, &params, __func__);                                                      \
    }                                                                                                                  \
    SIM_API CUresult cuGraphExec##name##NodeSetParams(CUgraphExec exec, CUgraphNode node, const structure *what,       \
                                                      CUcontext context) {                                             \
        (void)context;                                                                                                 \
        if (what == NULL)                                                                                              \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        const CUgraphNodeParams params = params_of(what);                                                              \
        return set_in_exec(exec, node, &params, __func__);                                                             \
    }

GET_AND_SET(Memcpy, NODE_MEMCPY, CUDA_MEMCPY3D, copy_params, memcpy.copyParams)
ADD_IN_CONTEXT(Memcpy, CUDA_MEMCPY3D, copy_params)
GET_AND_SET(Memset, NODE_MEMSET, CUDA_MEMSET_NODE_PARAMS, fill_params, memset)
ADD_IN_CONTEXT(Memset, CUDA_MEMSET_NODE_PARAMS, fill_params)
GET_AND_SET(Host, NODE_HOST, CUDA_HOST_NODE_PARAMS, host_params, host)

SIM_API CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                    const CUDA_HOST_NODE_PARAMS *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = host_params(what);
    return add(out, graph, before, count, &params, __func__);
}

SIM_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = host_params(what);
    return set_in_exec(exec, node, &params, __func__);
}

/* ---- memory operations ---- */

static CUgraphNodeParams batch_params(const CUDA_BATCH_MEM_OP_NODE_PARAMS *what) {
    return (CUgraphNodeParams){.type = NODE_BATCH, .of.batch = *what};
}

GET_AND_SET(BatchMemOp, NODE_BATCH, CUDA_BATCH_MEM_OP_NODE_PARAMS, batch_params, batch)

SIM_API CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = batch_params(what);
    return add(out, graph, before, count, &params, __func__);
}

SIM_API CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = batch_params(what);
    return set_in_exec(exec, node, &params, __func__);
}

/* ---- events ---- */

static CUgraphNodeParams event_params(int type, CUevent event) {
    return (CUgraphNodeParams){.type = type, .of.event.event = event};
}

#define EVENT_NODE(name, kind)                                                                                         \
    SIM_API CUresult cuGraphAdd##name##Node(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,  \
                                            CUevent event) {                                                           \
        const CUgraphNodeParams params = event_params(kind, event);                                                    \
        return add(out, graph, before, count, &params, __func__);                                                      \
    }                                                                                                                  \
    SIM_API CUresult cuGraph##name##NodeGetEvent(CUgraphNode node, CUevent *out) {                                     \
        CUgraphNodeParams params;                                                                                      \
        if (out == NULL)                                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        const CUresult result = get(node, kind, &params);                                                              \
        if (result == CUDA_SUCCESS)                                                                                    \
            *out = params.of.event.event;                                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    SIM_API CUresult cuGraph##name##NodeSetEvent(CUgraphNode node, CUevent event) {                                    \
        const CUgraphNodeParams params = event_params(kind, event);                                                    \
        return set(node, &params, __func__);                                                                           \
    }                                                                                                                  \
    SIM_API CUresult cuGraphExec##name##NodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {              \
        const CUgraphNodeParams params = event_params(kind, event);                                                    \
        return set_in_exec(exec, node, &params, __func__);                                                             \
    }

EVENT_NODE(EventRecord, NODE_RECORD)
EVENT_NODE(EventWait, NODE_WAIT)

/* ---- child graphs ---- */

static CUgraphNodeParams child_params(CUgraph child) {
    return (CUgraphNodeParams){.type = NODE_CHILD, .of.graph.graph = child};
}

SIM_API CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                          CUgraph child) {
    const CUgraphNodeParams params = child_params(child);
    return add(out, graph, before, count, &params, __func__);
}

SIM_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out) {
    CUgraphNodeParams params;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = get(node, NODE_CHILD, &params);
    if (result == CUDA_SUCCESS)
        *out = params.of.graph.graph;
    return result;
}

SIM_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
    const CUgraphNodeParams params = child_params(child);
    return set_in_exec(exec, node, &params, __func__);
}
