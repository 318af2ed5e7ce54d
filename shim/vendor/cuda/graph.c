/* NVIDIA's part of kernel nodes in graphs that the program builds explicitly (common/node.h). */
#include <stdlib.h>
#include <string.h>

#include "../../core/core.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/node.h"
#include "../common/request.h"
#include "../common/this_thread.h"
#include "cuda.h"

/* The driver reports the function of every node, and also the CUkernel of a node that came from one, whichever the
 * program passed. The program may have obtained only one of them. */
const void *graph_kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, bool second) {
    return second && params->kern && !(params->func && handle_find(params->func)) ? params->kern : params->func;
}

/* ---- The parameters of a node ---- */

/* True for another context than the current one. */
static bool is_elsewhere(CUcontext of) {
    CUcontext current = NULL;
    return of && driver.cuCtxGetCurrent && driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && of != current;
}

static int device_of(CUcontext context) {
    CUdevice device = NO_DEVICE;
    CUcontext popped;
    if (!driver.cuCtxPushCurrent_v2 || !driver.cuCtxPopCurrent_v2 || !driver.cuCtxGetDevice ||
        driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
        return NO_DEVICE;
    if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        device = NO_DEVICE;
    driver.cuCtxPopCurrent_v2(&popped);
    return device;
}

/* Decide for a node. ours: the parameters with our size. second: params have kern and ctx; flags: of the node that
 * gets them. False: no decision is made here. */
static bool plan(struct node *node, uintptr_t site, const CUDA_KERNEL_NODE_PARAMS *params, bool second, uint32_t flags,
                 CUDA_KERNEL_NODE_PARAMS *ours) {
    if (!params || !armed_and_ready(VENDOR_CUDA))
        return false;
    memset(ours, 0, sizeof *ours);
    memcpy(ours, params, second ? sizeof *params : offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
    node->request = (struct request){
        .hook = HOOK_cuLaunchKernel,
        .site = outer_site(site),
        .flags = flags,
        .function = (CUfunction)(uintptr_t)graph_kernel_of(params, second),
        .config = {.gridDimX = params->gridDimX,
                   .gridDimY = params->gridDimY,
                   .gridDimZ = params->gridDimZ,
                   .blockDimX = params->blockDimX,
                   .blockDimY = params->blockDimY,
                   .blockDimZ = params->blockDimZ,
                   .sharedMemBytes = params->sharedMemBytes},
    };
    const bool elsewhere = second && is_elsewhere(params->ctx);
    if (!node_plan(node, elsewhere, elsewhere ? device_of(params->ctx) : NO_DEVICE))
        return false;
    ours->sharedMemBytes = node->dynamic;
    return true;
}

/* ---- Priority of communication ---- */

/* This variable overrides the flag of every instantiation (CUDA Programming Guide 13.0, 5.2.3.5). */
static bool raises(void) {
    const char *used = getenv("CUDA_GRAPHS_USE_NODE_PRIORITY");
    return !used || strcmp(used, "0") != 0;
}

/* Count a node that was added; raise it if it is communication. */
static void added(struct node *node, CUgraphNode made) {
    const int priority = overlap_word_priority(node->word);
    bool raised = false;
    if (node->word & OVERLAP_WORD_RAISE && made) {
        raised = raises() && graph_set_priority(made, priority);
        if (raised) {
            graph_keep_own(made, 0);
            graph_raises(priority);
        } else
            node->reason = OVERLAP_REASON_graph_priority_ignored;
    }
    node_count(node, raised);
}

/* ---- Nodes ---- */

CUresult graph_add_kernel_body(ENTRY, CUgraphNode *made, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                               const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphAddKernelNode);
    struct node node;
    CUDA_KERNEL_NODE_PARAMS ours;
    CUresult result;
    if (!plan(&node, site, params, hook == HOOK_cuGraphAddKernelNode_v2, 0, &ours))
        return real(made, graph, dependencies, count, params);
    NODE_MAKE(node, result, real(made, graph, dependencies, count, &ours),
              real(made, graph, dependencies, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

/* Copy the program's generic parameters and insert ours. Other node types get the program's own struct, because the
 * driver may write to it. */
static bool plan_generic(struct node *node, uintptr_t site, const CUgraphNodeParams *params, uint32_t flags,
                         CUgraphNodeParams *ours) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    if (!params || params->type != CU_GRAPH_NODE_TYPE_KERNEL ||
        !plan(node, site, &params->kernel, true, flags, &kernel))
        return false;
    *ours = *params;
    ours->kernel = kernel;
    return true;
}

static CUresult other_node(const CUgraphNodeParams *params, CUresult result) {
    if (result == CUDA_SUCCESS && params)
        node_is_other(VENDOR_CUDA, params->type, params->event);
    return result;
}

CUresult graph_add_body(ENTRY, CUgraphNode *made, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                        CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphAddNode);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, 0, &ours))
        return other_node(params, real(made, graph, dependencies, count, params));
    NODE_MAKE(node, result, real(made, graph, dependencies, count, &ours),
              real(made, graph, dependencies, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

CUresult graph_add_v2_body(ENTRY, CUgraphNode *made, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphAddNode_v2);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, graph_flags_of_edges(edges, count), &ours))
        return other_node(params, real(made, graph, dependencies, edges, count, params));
    NODE_MAKE(node, result, real(made, graph, dependencies, edges, count, &ours),
              real(made, graph, dependencies, edges, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

CUresult graph_set_kernel_body(ENTRY, CUgraphNode changed, const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphKernelNodeSetParams);
    struct node node;
    CUDA_KERNEL_NODE_PARAMS ours;
    CUresult result;
    int own;
    const bool raised = graph_is_raised(changed, &own);
    if (!plan(&node, site, params, hook == HOOK_cuGraphKernelNodeSetParams_v2, graph_flags_of_node(changed), &ours))
        return real(changed, params);
    NODE_MAKE(node, result, real(changed, &ours), real(changed, params));
    if (result == CUDA_SUCCESS && raised)
        graph_lower_others(changed, own);
    return result;
}

CUresult graph_set_body(ENTRY, CUgraphNode changed, CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphNodeSetParams);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    int own;
    const bool raised = graph_is_raised(changed, &own);
    if (!plan_generic(&node, site, params, graph_flags_of_node(changed), &ours))
        return other_node(params, real(changed, params));
    NODE_MAKE(node, result, real(changed, &ours), real(changed, params));
    if (result == CUDA_SUCCESS && raised)
        graph_lower_others(changed, own);
    return result;
}

CUresult graph_exec_set_kernel_body(ENTRY, CUgraphExec exec, CUgraphNode changed,
                                    const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphExecKernelNodeSetParams);
    struct node node;
    CUDA_KERNEL_NODE_PARAMS ours;
    CUresult result;
    if (!plan(&node, site, params, hook == HOOK_cuGraphExecKernelNodeSetParams_v2, graph_flags_of_node(changed), &ours))
        return real(exec, changed, params);
    NODE_MAKE(node, result, real(exec, changed, &ours), real(exec, changed, params));
    return result;
}

CUresult graph_exec_set_body(ENTRY, CUgraphExec exec, CUgraphNode changed, CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphExecNodeSetParams);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (params && params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return graph_set_child(&(struct child_call){(void *)(uintptr_t)real, exec, changed, params, params->graph});
    if (!plan_generic(&node, site, params, graph_flags_of_node(changed), &ours))
        return other_node(params, real(exec, changed, params));
    NODE_MAKE(node, result, real(exec, changed, &ours), real(exec, changed, params));
    return result;
}

/* ---- Reading back, and restoring nodes ---- */

/* The program is shown a CUkernel's function, which it has not asked for but may now use. */
static void learn_shown(const CUDA_KERNEL_NODE_PARAMS *shown) {
    struct handle *from = shown->kern && shown->func && !handle_find(shown->func) ? handle_find(shown->kern) : NULL;
    CUcontext context = NULL;
    if (from && driver.cuCtxGetCurrent && driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context == shown->ctx)
        handle_learn(shown->func, HANDLE_FUNCTION, (void *)(uintptr_t)from->owner, handle_name(from), shown->kern);
}

CUresult graph_get_kernel_body(ENTRY, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphKernelNodeGetParams);
    /* The older form does not show the CUkernel, which may be the only handle we track. */
    type_cuGraphKernelNodeGetParams *full = real_own(HOOK_cuGraphKernelNodeGetParams_v2);
    CUDA_KERNEL_NODE_PARAMS shown;
    bool told = armed_and_ready(VENDOR_CUDA) && full && params && full(node, &shown) == CUDA_SUCCESS;
    CUresult result = real(node, params);
    uint32_t asked = 0;
    if (result == CUDA_SUCCESS && told)
        learn_shown(&shown);
    if (result == CUDA_SUCCESS && params && armed_and_ready(VENDOR_CUDA) &&
        node_asked(handle_find(graph_kernel_of(told ? &shown : params, told)), params->sharedMemBytes, &asked))
        params->sharedMemBytes = asked;
    return result;
}

/* Read a node's parameters, by the newer form of the call if the driver has it. *second: true for that. */
static bool read_node(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params, bool *second) {
    *second = real_own(HOOK_cuGraphKernelNodeGetParams_v2) && real_own(HOOK_cuGraphKernelNodeSetParams_v2);
    type_cuGraphKernelNodeGetParams *const get =
        real_own(*second ? HOOK_cuGraphKernelNodeGetParams_v2 : HOOK_cuGraphKernelNodeGetParams);
    memset(params, 0, sizeof *params);
    return get && get(node, params) == CUDA_SUCCESS;
}

const struct handle *cuda_node_kernel(CUgraphNode node, uint32_t *shown) {
    CUDA_KERNEL_NODE_PARAMS params;
    bool second;
    if (!read_node(node, &params, &second))
        return NULL;
    *shown = params.sharedMemBytes;
    return handle_find(graph_kernel_of(&params, second));
}

struct handle *graph_node_threads(CUgraphNode node, uint64_t *threads) {
    CUDA_KERNEL_NODE_PARAMS params;
    bool second;
    if (!read_node(node, &params, &second))
        return NULL;
    *threads = (uint64_t)params.gridDimX * params.gridDimY * params.gridDimZ * params.blockDimX * params.blockDimY *
               params.blockDimZ;
    return handle_find(graph_kernel_of(&params, second));
}

bool cuda_node_resize(CUgraphNode node, uint32_t dynamic) {
    CUDA_KERNEL_NODE_PARAMS params;
    bool second;
    if (!read_node(node, &params, &second))
        return false;
    type_cuGraphKernelNodeSetParams *set =
        real_own(second ? HOOK_cuGraphKernelNodeSetParams_v2 : HOOK_cuGraphKernelNodeSetParams);
    params.sharedMemBytes = dynamic;
    return set && set(node, &params) == CUDA_SUCCESS;
}
