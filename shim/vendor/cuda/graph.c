/* NVIDIA's part of kernel nodes in graphs that the program builds explicitly (common/node.h). */
#include <stdlib.h>
#include <string.h>

#include "../../core/core.h"
#include "../common/capture.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/node.h"
#include "../common/request.h"
#include "../common/size.h"
#include "../common/this_thread.h"
#include "cuda.h"

/* A node that already has our size may become cooperative or a cluster later. */
static bool forbids_shaping(int attribute) {
    return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
           attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

/* The driver reports the function of every node, and also the CUkernel of a node that came from one, whichever the
 * program passed. The program may have obtained only one of them. */
const void *graph_kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, bool second) {
    return second && params->kern && !(params->func && handle_find(params->func)) ? params->kern : params->func;
}

/* ---- The parameters of a node ---- */

/* Flags of a node to be added: with a programmatic edge it may begin before its dependencies end. */
static uint32_t flags_of_edges(const CUgraphEdgeData *edges, size_t count) {
    for (size_t i = 0; edges && i < count; i++)
        if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
            return OVERLAP_LAUNCH_PROGRAMMATIC;
    return 0;
}

/* The same for an existing node. Too many dependencies to inspect count as programmatic. */
static uint32_t flags_of_dependencies(CUgraphNode node) {
    enum { MOST = 32 };
    CUgraphNode from[MOST];
    CUgraphEdgeData edges[MOST];
    size_t count = MOST;
    if (!driver.cuGraphNodeGetDependencies_v2) /* before CUDA 12.3 no node began early */
        return 0;
    if (driver.cuGraphNodeGetDependencies_v2(node, from, edges, &count) != CUDA_SUCCESS || count >= MOST)
        return OVERLAP_LAUNCH_PROGRAMMATIC;
    return flags_of_edges(edges, count);
}

/* True if a node prefers another carve-out than the largest. (Older drivers lack the attribute, and tools that watch
 * for errors would report our query.) */
static bool prefers_cache(CUgraphNode node) {
    CUlaunchAttributeValue value;
    int version = 0;
    memset(&value, 0, sizeof value);
    return driver.cuDriverGetVersion && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= 12050 &&
           driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &value) ==
               CUDA_SUCCESS &&
           value.carveout < CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
}

/* Flags of an existing node. */
static uint32_t flags_of_node(CUgraphNode node) {
    CUlaunchAttributeValue value;
    uint32_t flags = 0;
    memset(&value, 0, sizeof value);
    if (!node || !armed_and_ready(VENDOR_CUDA) || !driver.cuGraphKernelNodeGetAttribute)
        return 0;
    if (driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS &&
        value.cooperative)
        flags |= OVERLAP_LAUNCH_COOPERATIVE;
    if (prefers_cache(node))
        flags |= OVERLAP_LAUNCH_SMALL_CARVEOUT;
    const struct device *device = device_current(VENDOR_CUDA);
    static const int clusters[] = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION};
    /* Older GPUs have no preferred clusters, and tools that watch for errors would report our query. */
    const size_t kinds = device && device->gpu.major >= 10 ? 2 : 1;
    for (size_t i = 0; i < kinds; i++) {
        memset(&value, 0, sizeof value);
        if (driver.cuGraphKernelNodeGetAttribute(node, clusters[i], &value) == CUDA_SUCCESS &&
            (value.cluster.x > 1 || value.cluster.y > 1 || value.cluster.z > 1))
            flags |= OVERLAP_LAUNCH_CLUSTER;
    }
    return flags | flags_of_dependencies(node);
}

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

CUresult graph_add_kernel_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode *made,
                               CUgraph graph, const CUgraphNode *dependencies, size_t count,
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

CUresult graph_add_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode *made, CUgraph graph,
                        const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params) {
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

CUresult graph_add_v2_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode *made, CUgraph graph,
                           const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
                           CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphAddNode_v2);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, flags_of_edges(edges, count), &ours))
        return other_node(params, real(made, graph, dependencies, edges, count, params));
    NODE_MAKE(node, result, real(made, graph, dependencies, edges, count, &ours),
              real(made, graph, dependencies, edges, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

CUresult graph_set_kernel_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode changed,
                               const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphKernelNodeSetParams);
    struct node node;
    CUDA_KERNEL_NODE_PARAMS ours;
    CUresult result;
    int own;
    const bool raised = graph_is_raised(changed, &own);
    if (!plan(&node, site, params, hook == HOOK_cuGraphKernelNodeSetParams_v2, flags_of_node(changed), &ours))
        return real(changed, params);
    NODE_MAKE(node, result, real(changed, &ours), real(changed, params));
    if (result == CUDA_SUCCESS && raised)
        graph_lower_others(changed, own);
    return result;
}

CUresult graph_set_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode changed,
                        CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphNodeSetParams);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    int own;
    const bool raised = graph_is_raised(changed, &own);
    if (!plan_generic(&node, site, params, flags_of_node(changed), &ours))
        return other_node(params, real(changed, params));
    NODE_MAKE(node, result, real(changed, &ours), real(changed, params));
    if (result == CUDA_SUCCESS && raised)
        graph_lower_others(changed, own);
    return result;
}

CUresult graph_exec_set_kernel_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphExec exec,
                                    CUgraphNode changed, const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphExecKernelNodeSetParams);
    struct node node;
    CUDA_KERNEL_NODE_PARAMS ours;
    CUresult result;
    if (!plan(&node, site, params, hook == HOOK_cuGraphExecKernelNodeSetParams_v2, flags_of_node(changed), &ours))
        return real(exec, changed, params);
    NODE_MAKE(node, result, real(exec, changed, &ours), real(exec, changed, params));
    return result;
}

CUresult graph_exec_set_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphExec exec,
                             CUgraphNode changed, CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphExecNodeSetParams);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (params && params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return graph_set_child(&(struct child_call){(void *)(uintptr_t)real, exec, changed, params, params->graph});
    if (!plan_generic(&node, site, params, flags_of_node(changed), &ours))
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

CUresult graph_get_kernel_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode node,
                               CUDA_KERNEL_NODE_PARAMS *params) {
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

/* Use the newer form of the calls if the driver has it. *second: true for that. */
static type_cuGraphKernelNodeGetParams *get_params(bool *second) {
    *second = real_own(HOOK_cuGraphKernelNodeGetParams_v2) && real_own(HOOK_cuGraphKernelNodeSetParams_v2);
    return real_own(*second ? HOOK_cuGraphKernelNodeGetParams_v2 : HOOK_cuGraphKernelNodeGetParams);
}

const struct handle *cuda_node_kernel(CUgraphNode node, uint32_t *shown) {
    CUDA_KERNEL_NODE_PARAMS params;
    bool second;
    type_cuGraphKernelNodeGetParams *get = get_params(&second);
    memset(&params, 0, sizeof params);
    if (!get || get(node, &params) != CUDA_SUCCESS)
        return NULL;
    *shown = params.sharedMemBytes;
    return handle_find(graph_kernel_of(&params, second));
}

struct handle *graph_node_threads(CUgraphNode node, uint64_t *threads) {
    CUDA_KERNEL_NODE_PARAMS params;
    bool second;
    type_cuGraphKernelNodeGetParams *get = get_params(&second);
    memset(&params, 0, sizeof params);
    if (!get || get(node, &params) != CUDA_SUCCESS)
        return NULL;
    *threads = (uint64_t)params.gridDimX * params.gridDimY * params.gridDimZ * params.blockDimX * params.blockDimY *
               params.blockDimZ;
    return handle_find(graph_kernel_of(&params, second));
}

bool cuda_node_resize(CUgraphNode node, uint32_t dynamic) {
    CUDA_KERNEL_NODE_PARAMS params;
    bool second;
    type_cuGraphKernelNodeGetParams *get = get_params(&second);
    type_cuGraphKernelNodeSetParams *set =
        real_own(second ? HOOK_cuGraphKernelNodeSetParams_v2 : HOOK_cuGraphKernelNodeSetParams);
    memset(&params, 0, sizeof params);
    if (!get || !set || get(node, &params) != CUDA_SUCCESS)
        return false;
    params.sharedMemBytes = dynamic;
    return set(node, &params) == CUDA_SUCCESS;
}

/* True if the node asks for more bytes than the program now allows its kernel. Driver 580 then refuses every
 * attribute; but with the limit that we raised it would accept. */
static bool is_beyond(CUgraphNode node) {
    uint32_t shown = 0, asked = 0;
    const struct device *device = armed_and_ready(VENDOR_CUDA) ? device_current(VENDOR_CUDA) : NULL;
    const struct handle *handle = device ? cuda_node_kernel(node, &shown) : NULL;
    if (!handle)
        return false;
    if (!size_asked(handle, shown, &asked)) {
        if (size_is_ours(handle, shown)) /* from several asked sizes, one of which may be within the limit */
            return false;
        asked = shown;
    }
    return limit_own((const void *)(uintptr_t)handle->value, device->ordinal) < asked;
}

/* Repeat a call in which the driver refused our size because the limit is the program's again (legacy.c): with the
 * asked size, or, if that is unknown, with a limit that allows ours. */
#define TRY_NODE_AGAIN(node, result, call)                                                                             \
    do {                                                                                                               \
        int before_;                                                                                                   \
        if (node_try_node_again(VENDOR_CUDA, node, result))                                                            \
            result = (call);                                                                                           \
        struct handle *lent_ = cuda_is_refusal(result) ? lend_limit(node, &before_) : NULL;                            \
        if (lent_) {                                                                                                   \
            result = (call);                                                                                           \
            limit_take_back(lent_, before_);                                                                           \
        }                                                                                                              \
    } while (0)

static struct handle *lend_limit(CUgraphNode node, int *before) {
    uint32_t shown = 0;
    const struct handle *shows = armed_and_ready(VENDOR_CUDA) ? cuda_node_kernel(node, &shown) : NULL;
    struct handle *handle =
        shows && size_is_ours(shows, shown) ? handle_find((const void *)(uintptr_t)shows->value) : NULL;
    return handle && limit_lend(handle, shown, before) ? handle : NULL;
}

CUresult graph_set_attribute_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode node,
                                  int attribute, const CUlaunchAttributeValue *value) {
    REAL_OR_RETURN(cuGraphKernelNodeSetAttribute);
    if (forbids_shaping(attribute) && armed_and_ready(VENDOR_CUDA))
        node_set_back(VENDOR_CUDA, node);
    if (is_beyond(node))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = real(node, attribute, value);
    TRY_NODE_AGAIN(node, result, real(node, attribute, value));
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && value)
        graph_keep_own(node, value->priority);
    return result;
}

CUresult graph_copy_attributes_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraphNode to,
                                    CUgraphNode from) {
    REAL_OR_RETURN(cuGraphKernelNodeCopyAttributes);
    struct node_priority found;
    if (!armed_and_ready(VENDOR_CUDA))
        return real(to, from);
    if (flags_of_node(from))
        node_set_back(VENDOR_CUDA, to);
    if (is_beyond(to))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = real(to, from);
    TRY_NODE_AGAIN(to, result, real(to, from));
    if (result == CUDA_SUCCESS && graph_priority_of(from, &found)) {
        graph_keep_own(to, found.own);
        if (found.raised)
            graph_lower_others(to, found.own);
    }
    return result;
}

CUresult graph_add_dependencies_body(enum overlap_route route, enum hook hook, uintptr_t site, CUgraph graph,
                                     const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
                                     size_t count) {
    REAL_OR_RETURN(cuGraphAddDependencies_v2);
    capture_dependencies_added();
    CUresult result = real(graph, from, to, edges, count);
    for (size_t i = 0; result == CUDA_SUCCESS && to && armed_and_ready(VENDOR_CUDA) && i < count; i++)
        if (edges && flags_of_edges(&edges[i], 1))
            node_set_back(VENDOR_CUDA, to[i]);
    return result;
}
