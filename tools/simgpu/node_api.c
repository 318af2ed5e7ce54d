/* The entry points of kernel nodes: their parameters and attributes. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct node *kernel_node(CUgraphNode handle) {
    struct node *const node = sim_handle_get(handle, KIND_NODE);
    return node != NULL && node->type == NODE_KERNEL ? node : NULL;
}

static CUresult get(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out, bool full) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    if (node == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_node_check(node, sim_current_context()) == CUDA_ERROR_INVALID_HANDLE)
        return CUDA_ERROR_INVALID_HANDLE; /* its module is gone */
    const struct launch_request *const request = &node->launch;
    const struct kernel_image *const image = request->function->image;
    void **const pointers = realloc(node->parameter_pointers, (image->parameters + 1) * sizeof *pointers);
    if (pointers == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->parameter_pointers = pointers;
    for (uint32_t i = 0; i < image->parameters; i++)
        pointers[i] = request->parameters + image->parameter[i].offset;
    const CUDA_KERNEL_NODE_PARAMS what = {
        .func = request->function->handle,
        .gridDimX = request->grid[0],
        .gridDimY = request->grid[1],
        .gridDimZ = request->grid[2],
        .blockDimX = request->block[0],
        .blockDimY = request->block[1],
        .blockDimZ = request->block[2],
        .sharedMemBytes = request->dynamic,
        .kernelParams = pointers,
        .kern = sim_handle_get(request->handle, KIND_KERNEL) != NULL ? request->handle : NULL,
    };
    memcpy(out, &what, full ? sizeof what : sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
    return get(node, (CUDA_KERNEL_NODE_PARAMS *)(void *)out, false);
}

SIM_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
    return get(node, out, true);
}

/* Puts new parameters in a node; its attributes stay. */
static CUresult put(struct node *node, const CUDA_KERNEL_NODE_PARAMS *what, bool full) {
    struct launch_request request = {0};
    if (node == NULL || what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_node_request(what, full, &request);
    request.cluster = node->launch.cluster;
    request.cooperative = node->launch.cooperative;
    request.has_priority = node->launch.has_priority;
    request.priority = node->launch.priority;
    if (result == CUDA_SUCCESS && !sim_node_set_launch(node, &request))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    free(request.parameters);
    return result;
}

static CUresult set(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *what, bool full) {
    SIM_CALL();
    return put(kernel_node(handle), what, full);
}

SIM_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    return set(node, (const CUDA_KERNEL_NODE_PARAMS *)(const void *)what, false);
}

SIM_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
    return set(node, what, true);
}

static CUresult set_in_exec(CUgraphExec exec_handle, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *what,
                            bool full) {
    SIM_CALL();
    const struct exec *const exec = sim_handle_get(exec_handle, KIND_EXEC);
    const struct node *const node = kernel_node(handle);
    if (exec == NULL || node == NULL || node->index >= exec->graph->count)
        return CUDA_ERROR_INVALID_VALUE;
    struct node *const own = exec->graph->nodes[node->index];
    return own->type == NODE_KERNEL ? put(own, what, full) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    return set_in_exec(exec, node, (const CUDA_KERNEL_NODE_PARAMS *)(const void *)what, false);
}

SIM_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS *what) {
    return set_in_exec(exec, node, what, true);
}

SIM_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, int id, CUlaunchAttributeValue *value) {
    SIM_CALL();
    const struct node *const node = kernel_node(handle);
    if (node == NULL || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (id == LAUNCH_PRIORITY)
        value->integer = node->launch.priority;
    else if (id == LAUNCH_COOPERATIVE)
        value->integer = node->launch.cooperative;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, int id, const CUlaunchAttributeValue *value) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    if (node == NULL || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_node_check(node, sim_current_context()) == CUDA_ERROR_INVALID_HANDLE)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUlaunchAttribute one = {.id = id, .value = *value};
    return sim_launch_attributes(&node->launch, &one, 1);
}

SIM_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    SIM_CALL();
    struct node *const target = kernel_node(to);
    const struct node *const source = kernel_node(from);
    if (target == NULL || source == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    target->launch.cluster = source->launch.cluster;
    target->launch.cooperative = source->launch.cooperative;
    target->launch.has_priority = source->launch.has_priority;
    target->launch.priority = source->launch.priority;
    return CUDA_SUCCESS;
}
