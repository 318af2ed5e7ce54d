/* Kernel nodes: their parameters and attributes.
 *
 * A node is checked like a launch when it is made or changed, and is logged like one. Its attributes stay when its
 * parameters are set. The older form of the parameters is the beginning of the newer one.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void log_node(const struct launch_request *request, CUresult result) {
    sim_log_launch(&(struct launch_line){
        .request = request, .stream = "0x0", .result = result, .priority = request->set.priority, .node = true});
}

static CUresult read_request(const CUDA_KERNEL_NODE_PARAMS *what, struct launch_request *request) {
    struct context *const context =
        what->func == NULL && what->ctx != NULL ? sim_context_of(what->ctx) : sim_current_context();
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = sim_function_of(request->handle, context, true, &request->function);
    if (result == CUDA_SUCCESS)
        result = sim_launch_check(request);
    if (result == CUDA_SUCCESS)
        result = sim_launch_parameters(request, what->kernelParams, what->extra);
    return result;
}

static CUresult write_node(struct node *node, const CUDA_KERNEL_NODE_PARAMS *what) {
    struct launch_request request = node->launch;
    request.handle = what->func != NULL ? what->func : what->kern;
    request.function = NULL;
    request.turn = 0;
    memcpy(request.grid, &what->gridDimX, sizeof request.grid);
    memcpy(request.block, &what->blockDimX, sizeof request.block);
    request.dynamic = what->sharedMemBytes;
    request.parameters = NULL;
    request.parameter_bytes = 0;
    CUresult result = read_request(what, &request);
    if (result == CUDA_SUCCESS) {
        sim_node_set_launch(node, &request);
        node->context = what->func == NULL && what->ctx != NULL ? what->ctx : request.function->module->context->handle;
    }
    log_node(&request, result);
    free(request.parameters);
    return result;
}

/* The nodes of a graph that these handles are, each once; NULL: one is none. For free(). */
static struct node **nodes_of(const struct graph *graph, const CUgraphNode *handles, size_t count) {
    struct node **const nodes = sim_new(count, sizeof *nodes);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        nodes[i] = sim_handle_get(handles[i], KIND_NODE);
        good = nodes[i] != NULL && nodes[i]->graph == graph;
        for (size_t k = 0; good && k < i; k++)
            good = nodes[k] != nodes[i];
    }
    if (good)
        return nodes;
    free(nodes);
    return NULL;
}

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *before, size_t count,
                    const CUDA_KERNEL_NODE_PARAMS *what) {
    SIM_CALL();
    struct graph *const graph = sim_handle_get(handle, KIND_GRAPH);
    if (out == NULL || graph == NULL || (count > 0 && before == NULL) || count > 1 << 20)
        return CUDA_ERROR_INVALID_VALUE;
    struct node **const nodes = nodes_of(graph, before, count);
    struct node *const node = nodes != NULL ? sim_node_new(graph, NODE_KERNEL, nodes, (uint32_t)count) : NULL;
    free(nodes);
    if (node == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = write_node(node, what);
    if (result == CUDA_SUCCESS)
        *out = node->handle;
    else
        sim_node_undo(node);
    return result;
}

static CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    CUDA_KERNEL_NODE_PARAMS made = {0};
    memcpy(&made, what, sizeof *what);
    return made;
}

SIM_API CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS made = newer(what);
    SIM_NAMED(__func__);
    return add(out, graph, before, count, &made);
}

SIM_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS *what) {
    SIM_NAMED(__func__);
    return what != NULL ? add(out, graph, before, count, what) : CUDA_ERROR_INVALID_VALUE;
}

static struct node *kernel_node(CUgraphNode handle) {
    struct node *const node = sim_handle_get(handle, KIND_NODE);
    return node != NULL && node->type == NODE_KERNEL ? node : NULL;
}

static CUresult get(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    if (node == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_node_resolve(node, sim_current_context());
    if (result != CUDA_SUCCESS)
        return result;
    const struct launch_request *const request = &node->launch;
    const struct kernel_image *const image = request->function->image;
    /* The same for who asks again: it is valid until the node is changed or destroyed (cuGraphKernelNodeGetParams). */
    if (node->parameter_pointers == NULL)
        node->parameter_pointers = sim_new(image->parameters, sizeof *node->parameter_pointers);
    void **const pointers = node->parameter_pointers;
    for (uint32_t i = 0; i < image->parameters; i++)
        pointers[i] = request->parameters + image->parameter[i].offset;
    const bool kernel = sim_handle_get(request->handle, KIND_KERNEL) != NULL;
    *out = (CUDA_KERNEL_NODE_PARAMS){
        .func = request->function->handle,
        .gridDimX = request->grid[0],
        .gridDimY = request->grid[1],
        .gridDimZ = request->grid[2],
        .blockDimX = request->block[0],
        .blockDimY = request->block[1],
        .blockDimZ = request->block[2],
        .sharedMemBytes = request->dynamic,
        .kernelParams = pointers,
        .kern = kernel ? request->handle : NULL,
        .ctx = kernel ? node->context : NULL,
    };
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphKernelNodeGetParams_v2, get, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out), node, out)

SIM_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
    CUDA_KERNEL_NODE_PARAMS what;
    const CUresult result = get(node, out != NULL ? &what : NULL);
    if (result == CUDA_SUCCESS)
        memcpy(out, &what, sizeof *out);
    return result;
}

static CUresult set(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *what) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    return node != NULL ? write_node(node, what) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS made = newer(what);
    SIM_NAMED(__func__);
    return set(node, &made);
}

SIM_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
    SIM_NAMED(__func__);
    return what != NULL ? set(node, what) : CUDA_ERROR_INVALID_VALUE;
}

/* The node of an executable graph that was made from that of a graph. */
static CUresult set_in_exec(CUgraphExec exec_handle, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *what) {
    SIM_CALL();
    const struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    const struct node *const original = kernel_node(handle);
    struct node *const node = exec != NULL && original != NULL ? sim_graph_find_copy(exec->graph, original->id) : NULL;
    return node != NULL ? write_node(node, what) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS made = newer(what);
    SIM_NAMED(__func__);
    return set_in_exec(exec, node, &made);
}

SIM_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS *what) {
    SIM_NAMED(__func__);
    return what != NULL ? set_in_exec(exec, node, what) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- attributes ---- */

/* cuda.h: which are valid for graph nodes. */
static bool is_node_attribute(int id) {
    static const int ids[] = {
        LAUNCH_ACCESS_POLICY, LAUNCH_COOPERATIVE,      LAUNCH_CLUSTER,     LAUNCH_CLUSTER_POLICY,
        LAUNCH_PRIORITY,      LAUNCH_SYNC_DOMAIN_MAP,  LAUNCH_SYNC_DOMAIN, LAUNCH_PREFERRED_CLUSTER,
        LAUNCH_CARVEOUT,      LAUNCH_DEVICE_UPDATABLE, LAUNCH_NVLINK};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == id)
            return true;
    return false;
}

SIM_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, int id, CUlaunchAttributeValue *value) {
    SIM_CALL();
    const struct node *const node = kernel_node(handle);
    if (node == NULL || value == NULL || !is_node_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    if (id == LAUNCH_PRIORITY)
        value->integer = node->launch.set.priority;
    else if (id == LAUNCH_COOPERATIVE)
        value->integer = node->launch.set.cooperative;
    else if (node->attributes != NULL && (node->attributes->known >> id & 1) != 0)
        *value = node->attributes->value[id];
    else if (id == LAUNCH_CARVEOUT)
        value->integer = -1; /* no preference */
    return CUDA_SUCCESS;
}

/* Its kernel may have less by now: then no attribute is set, not even a cooperative one with another error (update-questions.json). */
static bool is_beyond(const struct node *node) {
    return node->launch.dynamic > (unsigned int)sim_setting(node->launch.function, FUNC_MAX_DYNAMIC);
}

SIM_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, int id, const CUlaunchAttributeValue *value) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    if (node == NULL || value == NULL || !is_node_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_node_resolve(node, sim_current_context());
    if (result != CUDA_SUCCESS)
        return result;
    const CUlaunchAttribute one = {.id = id, .value = *value};
    struct launch_request changed = node->launch;
    result = sim_launch_attributes(&changed, &one, 1);
    if (result == CUDA_SUCCESS)
        result = is_beyond(node) ? CUDA_ERROR_INVALID_VALUE : sim_launch_check(&changed);
    if (result == CUDA_SUCCESS) {
        sim_node_keep_attribute(node, id, value);
        node->launch = changed;
    }
    return result;
}

SIM_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    SIM_CALL();
    struct node *const target = kernel_node(to);
    const struct node *const source = kernel_node(from);
    if (target == NULL || source == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_node_resolve(target, sim_current_context()) == CUDA_SUCCESS && is_beyond(target))
        return CUDA_ERROR_INVALID_VALUE;
    sim_node_copy_attributes(target, source);
    return CUDA_SUCCESS;
}
