/* HIP's part of kernel nodes in graphs that the program builds explicitly (common/node.h); they have no priority
 * here. How the runtime handles nodes: hipamd/src/hip_graph_internal.hpp of ROCm's clr. */
#include <string.h>

#include "../../core/core.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/node.h"
#include "../common/request.h"
#include "hip.h"

/* Make a call with our parameters; a refusal leaves no last error, because the call is then repeated as asked. */
#define HIP_TRY(call)                                                                                                  \
    __extension__({                                                                                                    \
        const hipError_t before_ = hip_pending(), result_ = (call);                                                    \
        hip_is_refusal(result_) ? hip_settle(before_, result_) : result_;                                              \
    })

/* ---- Operations for the shared part ---- */

hipError_t hip_graph_nodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
    return hip.hipGraphGetNodes ? HIP_ASK(hip.hipGraphGetNodes(graph, nodes, count)) : VENDOR_NOT_SUPPORTED;
}

/* Node types are numbered from 0, up to HIP 5.2 from 1 (hip_runtime_api.h): create an empty node to find out. */
static int first_type(void) {
    static int known; /* + 1; 0: not known yet */
    int first = OVERLAP_RELAXED(known) - 1, type = NODE_EMPTY;
    hipGraph_t graph = NULL;
    hipGraphNode_t node = NULL;
    if (first >= 0)
        return first;
    if (hip.hipGraphCreate && hip.hipGraphAddEmptyNode && hip.hipGraphDestroy &&
        HIP_ASK(hip.hipGraphCreate(&graph, 0)) == VENDOR_SUCCESS) {
        if (HIP_ASK(hip.hipGraphAddEmptyNode(&node, graph, NULL, 0)) == VENDOR_SUCCESS)
            HIP_ASK(hip.hipGraphNodeGetType(node, &type));
        HIP_ASK(hip.hipGraphDestroy(graph));
    }
    first = type == NODE_EMPTY + 1;
    __atomic_store_n(&known, first + 1, __ATOMIC_RELAXED);
    return first;
}

hipError_t hip_node_type(hipGraphNode_t node, int *type) {
    const hipError_t result =
        hip.hipGraphNodeGetType ? HIP_ASK(hip.hipGraphNodeGetType(node, type)) : VENDOR_NOT_SUPPORTED;
    if (result == VENDOR_SUCCESS)
        *type -= first_type();
    return result;
}

hipError_t hip_node_inside(hipGraphNode_t node, hipGraph_t *graph) {
    return hip.hipGraphChildGraphNodeGetGraph ? HIP_ASK(hip.hipGraphChildGraphNodeGetGraph(node, graph))
                                              : VENDOR_NOT_SUPPORTED;
}

/* Check the type: some versions read any node as a kernel node. */
static bool is_kernel(hipGraphNode_t node) {
    int type = -1;
    return node && hip_node_type(node, &type) == VENDOR_SUCCESS && type == NODE_KERNEL;
}

static bool params_of(hipGraphNode_t node, hipKernelNodeParams *params) {
    type_hipGraphKernelNodeGetParams *get = real_own(HOOK_hipGraphKernelNodeGetParams);
    memset(params, 0, sizeof *params);
    return get && is_kernel(node) && HIP_ASK(get(node, params)) == VENDOR_SUCCESS;
}

const struct handle *hip_node_kernel(hipGraphNode_t node, uint32_t *shown) {
    hipKernelNodeParams params;
    if (!params_of(node, &params))
        return NULL;
    *shown = params.sharedMemBytes;
    return handle_find(params.func);
}

/* Pass the runtime's own arguments back to it: it recognises them by address. */
bool hip_node_resize(hipGraphNode_t node, uint32_t dynamic) {
    type_hipGraphKernelNodeSetParams *set = real_own(HOOK_hipGraphKernelNodeSetParams);
    hipKernelNodeParams params;
    if (!set || !params_of(node, &params))
        return false;
    params.sharedMemBytes = dynamic;
    return HIP_ASK(set(node, &params)) == VENDOR_SUCCESS;
}

/* ---- The parameters of a node ---- */

struct planned {
    struct node node;
    hipKernelNodeParams ours; /* with our size */
};

/* Flags of an existing node. A node captured from a cooperative launch does not show that (its kernel is marked), nor
 * does one on which another attribute was set later: a failed query counts as cooperative. */
static uint32_t flags_of_node(hipGraphNode_t node) {
    vendor_attribute_value value;
    uint32_t shown;
    if (!armed_and_ready(VENDOR_HIP))
        return 0;
    const struct handle *handle = hip_node_kernel(node, &shown);
    if (handle && handle_is_marked(handle, HANDLE_COOPERATES))
        return OVERLAP_LAUNCH_COOPERATIVE;
    memset(&value, 0, sizeof value);
    const bool doubted =
        hip.hipGraphKernelNodeGetAttribute && is_kernel(node) &&
        HIP_ASK(hip.hipGraphKernelNodeGetAttribute(node, LAUNCH_ATTRIBUTE_COOPERATIVE, &value)) != VENDOR_SUCCESS;
    return doubted || value.cooperative ? OVERLAP_LAUNCH_COOPERATIVE : 0;
}

/* Decide for a node. flags: of the node that gets the parameters. False: no decision is made here. */
static bool plan(struct planned *planned, uintptr_t site, const hipKernelNodeParams *params, uint32_t flags) {
    if (!params || !armed_and_ready(VENDOR_HIP))
        return false;
    planned->ours = *params;
    planned->node.request = (struct request){
        .hook = HOOK_hipGraphAddKernelNode,
        .site = site,
        .flags = flags,
        .function = (void *)(uintptr_t)params->func,
        .config = {.gridDimX = params->gridDim.x,
                   .gridDimY = params->gridDim.y,
                   .gridDimZ = params->gridDim.z,
                   .blockDimX = params->blockDim.x,
                   .blockDimY = params->blockDim.y,
                   .blockDimZ = params->blockDim.z,
                   .sharedMemBytes = params->sharedMemBytes},
    };
    if (!node_plan(&planned->node, false, NO_DEVICE))
        return false;
    planned->ours.sharedMemBytes = planned->node.dynamic;
    return true;
}

/* Copy the program's generic parameters and insert ours. Other node types get the program's own struct. */
static bool plan_any(struct planned *planned, uintptr_t site, const hipGraphNodeParams *params, uint32_t flags,
                     hipGraphNodeParams *ours) {
    if (!params || params->type != NODE_KERNEL || !plan(planned, site, &params->kernel, flags))
        return false;
    *ours = *params;
    ours->kernel = planned->ours;
    return true;
}

static hipError_t other(const hipGraphNodeParams *params, hipError_t result) {
    if (result == VENDOR_SUCCESS && params)
        node_is_other(VENDOR_HIP, params->type, params->event);
    return result;
}

/* ---- Nodes ---- */

hipError_t hip_graph_add_kernel_body(ENTRY, hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                                     size_t count, const hipKernelNodeParams *params) {
    REAL_OR_RETURN(hipGraphAddKernelNode);
    struct planned planned;
    hipError_t result;
    if (!plan(&planned, site, params, 0))
        return real(node, graph, dependencies, count, params);
    NODE_MAKE(planned.node, result, HIP_TRY(real(node, graph, dependencies, count, &planned.ours)),
              real(node, graph, dependencies, count, params));
    node_count(&planned.node, false);
    return result;
}

hipError_t hip_graph_add_body(ENTRY, hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                              size_t count, hipGraphNodeParams *params) {
    REAL_OR_RETURN(hipGraphAddNode);
    struct planned planned;
    hipGraphNodeParams ours;
    hipError_t result;
    if (!plan_any(&planned, site, params, 0, &ours))
        return other(params, real(node, graph, dependencies, count, params));
    NODE_MAKE(planned.node, result, HIP_TRY(real(node, graph, dependencies, count, &ours)),
              real(node, graph, dependencies, count, params));
    node_count(&planned.node, false);
    return result;
}

hipError_t hip_graph_set_kernel_body(ENTRY, hipGraphNode_t node, const hipKernelNodeParams *params) {
    REAL_OR_RETURN(hipGraphKernelNodeSetParams);
    struct planned planned;
    hipError_t result;
    if (!plan(&planned, site, params, flags_of_node(node)))
        return real(node, params);
    NODE_MAKE(planned.node, result, HIP_TRY(real(node, &planned.ours)), real(node, params));
    return result;
}

hipError_t hip_graph_set_body(ENTRY, hipGraphNode_t node, hipGraphNodeParams *params) {
    REAL_OR_RETURN(hipGraphNodeSetParams);
    struct planned planned;
    hipGraphNodeParams ours;
    hipError_t result;
    if (!plan_any(&planned, site, params, flags_of_node(node), &ours))
        return other(params, real(node, params));
    NODE_MAKE(planned.node, result, HIP_TRY(real(node, &ours)), real(node, params));
    return result;
}

hipError_t hip_graph_exec_set_kernel_body(ENTRY, hipGraphExec_t exec, hipGraphNode_t node,
                                          const hipKernelNodeParams *params) {
    REAL_OR_RETURN(hipGraphExecKernelNodeSetParams);
    struct planned planned;
    hipError_t result;
    if (!plan(&planned, site, params, flags_of_node(node)))
        return real(exec, node, params);
    NODE_MAKE(planned.node, result, HIP_TRY(real(exec, node, &planned.ours)), real(exec, node, params));
    return result;
}

hipError_t hip_graph_exec_set_body(ENTRY, hipGraphExec_t exec, hipGraphNode_t node, hipGraphNodeParams *params) {
    REAL_OR_RETURN(hipGraphExecNodeSetParams);
    struct planned planned;
    hipGraphNodeParams ours;
    hipError_t result;
    if (!plan_any(&planned, site, params, flags_of_node(node), &ours))
        return other(params, real(exec, node, params));
    NODE_MAKE(planned.node, result, HIP_TRY(real(exec, node, &ours)), real(exec, node, params));
    return result;
}

hipError_t hip_graph_get_kernel_body(ENTRY, hipGraphNode_t node, hipKernelNodeParams *params) {
    REAL_OR_RETURN(hipGraphKernelNodeGetParams);
    const hipError_t result = real(node, params);
    uint32_t asked = 0;
    if (result == VENDOR_SUCCESS && params && armed_and_ready(VENDOR_HIP) &&
        node_asked(handle_find(params->func), params->sharedMemBytes, &asked))
        params->sharedMemBytes = asked;
    return result;
}

hipError_t hip_graph_set_attribute_body(ENTRY, hipGraphNode_t node, int attribute,
                                        const vendor_attribute_value *value) {
    REAL_OR_RETURN(hipGraphKernelNodeSetAttribute);
    if (attribute == LAUNCH_ATTRIBUTE_COOPERATIVE && armed_and_ready(VENDOR_HIP))
        node_set_back(VENDOR_HIP, node);
    return real(node, attribute, value);
}

hipError_t hip_graph_copy_attributes_body(ENTRY, hipGraphNode_t from, hipGraphNode_t to) {
    REAL_OR_RETURN(hipGraphKernelNodeCopyAttributes);
    if (flags_of_node(from))
        node_set_back(VENDOR_HIP, to);
    return real(from, to);
}

/* ---- Instantiation ---- */

/* Repeat a refused instantiation even if no size was ours: the last failing call, which sets the last error, must be
 * the program's. */
#define INSTANTIATE(...)                                                                                               \
    if (!armed_and_ready(VENDOR_HIP))                                                                                  \
        return real(__VA_ARGS__);                                                                                      \
    hipError_t result = HIP_TRY(real(__VA_ARGS__));                                                                    \
    if (hip_is_refusal(result)) {                                                                                      \
        node_try_again(VENDOR_HIP, graph, result);                                                                     \
        result = real(__VA_ARGS__);                                                                                    \
    }                                                                                                                  \
    return node_instantiated(VENDOR_HIP, exec, graph, 0, result)

hipError_t hip_graph_instantiate_body(ENTRY, hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *error, char *log,
                                      size_t size) {
    REAL_OR_RETURN(hipGraphInstantiate);
    INSTANTIATE(exec, graph, error, log, size);
}

hipError_t hip_graph_instantiate_flags_body(ENTRY, hipGraphExec_t *exec, hipGraph_t graph, uint64_t flags) {
    REAL_OR_RETURN(hipGraphInstantiateWithFlags);
    INSTANTIATE(exec, graph, flags);
}

hipError_t hip_graph_instantiate_params_body(ENTRY, hipGraphExec_t *exec, hipGraph_t graph, void *params) {
    REAL_OR_RETURN(hipGraphInstantiateWithParams);
    INSTANTIATE(exec, graph, params);
}
