/* Kernel nodes: their parameters and attributes.
 *
 * A node is checked like a launch when it is made or changed, and is logged like one. Its attributes stay when its
 * parameters are set.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void log_node(const struct launch_request *request, const char *entry, CUresult result) {
    sim_log_launch(&(struct launch_line){.entry = entry,
                                         .request = request,
                                         .stream = "0x0",
                                         .result = result,
                                         .priority = request->priority,
                                         .node = true});
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

CUresult sim_kernel_node_write(struct node *node, const CUDA_KERNEL_NODE_PARAMS *what, const char *entry) {
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
    if (result == CUDA_SUCCESS && !sim_node_set_launch(node, &request))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        node->context = what->func == NULL && what->ctx != NULL ? what->ctx : request.function->module->context->handle;
    log_node(&request, entry, result);
    free(request.parameters);
    return result;
}

CUresult sim_kernel_node_read(struct node *node, CUDA_KERNEL_NODE_PARAMS *out) {
    const CUresult result = sim_node_resolve(node, sim_current_context());
    if (result != CUDA_SUCCESS)
        return result;
    const struct launch_request *const request = &node->launch;
    const struct kernel_image *const image = request->function->image;
    /* The same for who asks again: it is valid until the node is changed or destroyed (cuGraphKernelNodeGetParams). */
    void **const pointers =
        node->parameter_pointers != NULL ? node->parameter_pointers : calloc(image->parameters + 1, sizeof *pointers);
    if (pointers == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->parameter_pointers = pointers;
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

/* The older form is the beginning of the newer one. */
CUgraphNodeParams sim_kernel_node_params_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    CUgraphNodeParams params = {.type = NODE_KERNEL};
    memcpy(&params.of.kernel, what, sizeof *what);
    return params;
}

static struct node *kernel_node(CUgraphNode handle) {
    struct node *const node = sim_handle_get(handle, KIND_NODE);
    return node != NULL && node->type == NODE_KERNEL ? node : NULL;
}

SIM_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    return node != NULL && out != NULL ? sim_kernel_node_read(node, out) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    CUDA_KERNEL_NODE_PARAMS what;
    if (node == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_kernel_node_read(node, &what);
    if (result == CUDA_SUCCESS)
        memcpy(out, &what, sizeof *out);
    return result;
}

static CUresult set(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *what, const char *entry) {
    SIM_CALL();
    struct node *const node = kernel_node(handle);
    return node != NULL ? sim_kernel_node_write(node, what, entry) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = sim_kernel_node_params_v1(what);
    return set(node, &params.of.kernel, __func__);
}

SIM_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
    return what != NULL ? set(node, what, __func__) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_in_exec(CUgraphExec exec, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *what,
                            const char *entry) {
    SIM_CALL();
    struct node *const node = sim_exec_node(exec, handle);
    if (node == NULL || node->type != NODE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_kernel_node_write(node, what, entry);
}

SIM_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = sim_kernel_node_params_v1(what);
    return set_in_exec(exec, node, &params.of.kernel, __func__);
}

SIM_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS *what) {
    return what != NULL ? set_in_exec(exec, node, what, __func__) : CUDA_ERROR_INVALID_VALUE;
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
        value->integer = node->launch.priority;
    else if (id == LAUNCH_COOPERATIVE)
        value->integer = node->launch.cooperative;
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
    if (result == CUDA_SUCCESS && !sim_node_keep_attribute(node, id, value))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        node->launch = changed;
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
    return sim_node_copy_attributes(target, source) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
