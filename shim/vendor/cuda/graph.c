/* Nodes of graphs that the program builds itself: kernels get the same answers as launches do.
 *
 * A node that the driver refuses with our size is made again as asked, at once. Only sizes are changed of which size.c
 * can tell what was asked for, so a program reads back what it has set.
 */
#include <stdlib.h>
#include <string.h>

#include "../common/windows.h"
#include "cuda.h"

/* A node whose size was given to the driver may become cooperative or a cluster afterwards. */
static bool forbids_shaping(int attribute) {
    return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
}

/* A driver shows the function of every node, and of one that came from a CUkernel also that, however it was given; the
 * program may have asked for one of them only. */
const void *graph_kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, bool second) {
    return second && params->kern && !(params->func && handle_find(params->func)) ? params->kern : params->func;
}

/* ---- What a node shall get ---- */

struct node {
    struct request request;
    uint64_t word, place;
    uint32_t reason;
    bool changed;
    CUDA_KERNEL_NODE_PARAMS params; /* with our size */
};

/* Flags of a node to come: one that may begin before those that it depends on have ended. */
static uint32_t flags_of_edges(const CUgraphEdgeData *edges, size_t count) {
    for (size_t i = 0; edges && i < count; i++)
        if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
            return OVERLAP_LAUNCH_PROGRAMMATIC;
    return 0;
}

/* The same for one that is there. So many dependencies that it is not worth looking at them count as one of that kind. */
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

/* Flags of a node that is there. */
static uint32_t flags_of_node(CUgraphNode node) {
    CUlaunchAttributeValue value;
    uint32_t flags = 0;
    memset(&value, 0, sizeof value);
    if (!node || !armed_and_ready(VENDOR_CUDA) || !driver.cuGraphKernelNodeGetAttribute)
        return 0;
    if (driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS &&
        value.cooperative)
        flags |= OVERLAP_LAUNCH_COOPERATIVE;
    const struct device *device = device_current(VENDOR_CUDA);
    static const int clusters[] = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION};
    /* Older GPUs have no preferred clusters, and tools that watch for errors would show one of ours. */
    const size_t kinds = device && device->gpu.major >= 10 ? 2 : 1;
    for (size_t i = 0; i < kinds; i++) {
        memset(&value, 0, sizeof value);
        if (driver.cuGraphKernelNodeGetAttribute(node, clusters[i], &value) == CUDA_SUCCESS &&
            (value.cluster.x > 1 || value.cluster.y > 1 || value.cluster.z > 1))
            flags |= OVERLAP_LAUNCH_CLUSTER;
    }
    return flags | flags_of_dependencies(node);
}

/* Decides. second: params have kern and ctx; flags: of the node that gets them. False: nobody decides. */
static bool plan(struct node *node, uintptr_t site, const CUDA_KERNEL_NODE_PARAMS *params, bool second,
                 uint32_t flags) {
    if (!params || !armed_and_ready(VENDOR_CUDA))
        return false;
    memset(&node->params, 0, sizeof node->params);
    memcpy(&node->params, params, second ? sizeof *params : offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
    node->request = (struct request){
        .way = OVERLAP_WAY_symbol,
        .counted = OVERLAP_WAY_graph_node,
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
    const struct handle *handle = handle_find(node->request.function);
    const struct device *device = device_current(VENDOR_CUDA);
    CUcontext context = NULL;
    uint32_t asked = 0;
    node->changed = false;
    node->place = 0;
    /* Of another device or context than the current one: nothing is known here about its limits. */
    const bool elsewhere = (second && params->ctx && driver.cuCtxGetCurrent &&
                            driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && params->ctx != context) ||
                           (handle && handle->kind == HANDLE_FUNCTION && device && handle->device != device->ordinal);
    if (elsewhere) {
        node->word = OVERLAP_WORD_VALID;
        node->reason = OVERLAP_REASON_unknown_footprint;
        return true;
    }
    node->word = launch_word(&node->request, &node->place);
    if (!node->word)
        return false;
    node->reason = (uint32_t)(node->word >> OVERLAP_WORD_REASON_SHIFT & 63);
    const uint32_t size = (uint32_t)(node->word & OVERLAP_WORD_SIZE_MASK);
    node->changed = node->word & OVERLAP_WORD_CHANGED;
    if (node->changed && node->word & OVERLAP_WORD_WINDOWED) { /* added by hand: what it runs beside is not known */
        node->changed = false;
        node->reason = OVERLAP_REASON_not_overlapping;
    }
    if (!node->changed || !handle)
        return true;
    if (node->reason == OVERLAP_REASON_cannot_launch) { /* beyond the program's own limit: for the driver to refuse */
        node->params.sharedMemBytes = size;
        return true;
    }
    /* A size that could not be told again is not given. */
    const bool ready =
        (node->word & OVERLAP_WORD_CLUSTER) == 0 && size_asked(handle, size, &asked) &&
        asked == params->sharedMemBytes &&
        (node->word & OVERLAP_WORD_RAISED_LIMIT || launch_prepare(&node->request, &node->word, node->place));
    if (!ready) {
        node->changed = false;
        node->reason = node->word & OVERLAP_WORD_CLUSTER ? OVERLAP_REASON_cluster : OVERLAP_REASON_unknown_footprint;
        return true;
    }
    node->params.sharedMemBytes = size;
    return true;
}

/* Has the driver refused our size? Then the node is to be made as asked. */
static bool refused(struct node *node, CUresult result) {
    if (!node->changed || !cuda_is_refusal(result) || node->reason == OVERLAP_REASON_cannot_launch)
        return false;
    node->changed = false;
    node->reason = OVERLAP_REASON_cannot_launch;
    return true;
}

/* It was made again as asked, and the driver has taken it: so it was our doing. */
static void taken_as_asked(struct node *node) {
    node->reason = OVERLAP_REASON_refused;
    launch_leave_alone(&node->request, node->place, true);
}

/* ---- Communication's priority ---- */

/* The variable overrides the flag of every instantiation (CUDA Programming Guide 13.0, 5.2.3.5). */
static bool raises(void) {
    const char *used = getenv("CUDA_GRAPHS_USE_NODE_PRIORITY");
    return !used || strcmp(used, "0") != 0;
}

/* A node that was added is counted; communication gets its priority. */
static void added(struct node *node, CUgraphNode made) {
    type_cuGraphKernelNodeSetAttribute *set = real_own(HOOK_cuGraphKernelNodeSetAttribute);
    bool raised = false;
    if (node->word & OVERLAP_WORD_RAISE && set && made) {
        CUlaunchAttributeValue value;
        memset(&value, 0, sizeof value);
        value.priority = (int16_t)(node->word >> OVERLAP_WORD_PRIORITY_SHIFT);
        raised = raises() && set(made, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS;
        if (raised)
            __atomic_store_n(&graph_may_be_raised, 1, __ATOMIC_RELAXED);
        else
            node->reason = OVERLAP_REASON_graph_priority_ignored;
    }
    if (node->word & OVERLAP_WORD_COMMUNICATION) {
        launch_count(OVERLAP_COUNTER_COMMUNICATION);
        __atomic_store_n(&exec_may_communicate, 1, __ATOMIC_RELAXED);
    }
    if (raised)
        launch_count(OVERLAP_COUNTER_RAISED);
    launch_count_reason(OVERLAP_WAY_graph_node, node->reason);
    if (node->word & OVERLAP_WORD_TRACED)
        launch_trace(&node->request, node->reason,
                     node->changed ? node->params.sharedMemBytes : node->request.config.sharedMemBytes, raised,
                     node->word, &(struct overlap_found){0});
}

/* ---- Nodes ---- */

/* Calls real with our parameters, with the program's where nothing is changed or the driver refuses. PARAMS: the name of
 * the parameter in call. */
#define MAKE_NODE(node, result, ours, asked)                                                                           \
    do {                                                                                                               \
        result = (node).changed ? (ours) : (asked);                                                                    \
        if (refused(&(node), result) && !cuda_is_refusal(result = (asked)))                                            \
            taken_as_asked(&(node));                                                                                   \
    } while (0)

CUresult graph_add_kernel_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *made, CUgraph graph,
                               const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphAddKernelNode);
    struct node node;
    CUresult result;
    if (!plan(&node, site, params, hook == HOOK_cuGraphAddKernelNode_v2, 0))
        return real(made, graph, dependencies, count, params);
    MAKE_NODE(node, result, real(made, graph, dependencies, count, &node.params),
              real(made, graph, dependencies, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

/* The program's generic parameters with ours in them; for other kinds of nodes they are passed on as they are, because
 * the driver may write to them. */
static bool plan_generic(struct node *node, uintptr_t site, const CUgraphNodeParams *params, uint32_t flags,
                         CUgraphNodeParams *ours) {
    if (!params || params->type != CU_GRAPH_NODE_TYPE_KERNEL || !plan(node, site, &params->kernel, true, flags))
        return false;
    *ours = *params;
    ours->kernel = node->params;
    return true;
}

/* Nodes that record or wait matter to overlap windows. */
static CUresult other_node(const CUgraphNodeParams *params, CUresult result) {
    if (result != CUDA_SUCCESS || !params)
        return result;
    if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        capture_node_records(params->event);
    else if (params->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT || params->type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT ||
             params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        capture_node_waits();
    return result;
}

CUresult graph_add_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *made, CUgraph graph,
                        const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphAddNode);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, 0, &ours))
        return other_node(params, real(made, graph, dependencies, count, params));
    MAKE_NODE(node, result, real(made, graph, dependencies, count, &ours),
              real(made, graph, dependencies, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

CUresult graph_add_v2_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode *made, CUgraph graph,
                           const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
                           CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphAddNode_v2);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, flags_of_edges(edges, count), &ours))
        return other_node(params, real(made, graph, dependencies, edges, count, params));
    MAKE_NODE(node, result, real(made, graph, dependencies, edges, count, &ours),
              real(made, graph, dependencies, edges, count, params));
    added(&node, result == CUDA_SUCCESS && made ? *made : NULL);
    return result;
}

CUresult graph_set_kernel_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode changed,
                               const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphKernelNodeSetParams);
    struct node node;
    CUresult result;
    if (!plan(&node, site, params, hook == HOOK_cuGraphKernelNodeSetParams_v2, flags_of_node(changed)))
        return real(changed, params);
    MAKE_NODE(node, result, real(changed, &node.params), real(changed, params));
    return result;
}

CUresult graph_set_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode changed,
                        CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphNodeSetParams);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, flags_of_node(changed), &ours))
        return other_node(params, real(changed, params));
    MAKE_NODE(node, result, real(changed, &ours), real(changed, params));
    return result;
}

CUresult graph_exec_set_kernel_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec exec,
                                    CUgraphNode changed, const CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphExecKernelNodeSetParams);
    struct node node;
    CUresult result;
    if (!plan(&node, site, params, hook == HOOK_cuGraphExecKernelNodeSetParams_v2, flags_of_node(changed)))
        return real(exec, changed, params);
    MAKE_NODE(node, result, real(exec, changed, &node.params), real(exec, changed, params));
    return result;
}

CUresult graph_exec_set_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec exec,
                             CUgraphNode changed, CUgraphNodeParams *params) {
    REAL_OR_RETURN(cuGraphExecNodeSetParams);
    struct node node;
    CUgraphNodeParams ours;
    CUresult result;
    if (!plan_generic(&node, site, params, flags_of_node(changed), &ours))
        return other_node(params, real(exec, changed, params));
    MAKE_NODE(node, result, real(exec, changed, &ours), real(exec, changed, params));
    return result;
}

/* ---- What the program reads back, and nodes that are set back ---- */

/* What the program asked for, where the driver's parameters show our size. */
static bool asked_for(const CUDA_KERNEL_NODE_PARAMS *params, bool second, uint32_t *asked) {
    const struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(graph_kernel_of(params, second)) : NULL;
    return handle && size_asked(handle, params->sharedMemBytes, asked) && *asked != params->sharedMemBytes;
}

/* The function of a CUkernel, which the program has not asked for but is shown now and may use. */
static void learn_shown(const CUDA_KERNEL_NODE_PARAMS *shown) {
    struct handle *from = shown->kern && shown->func && !handle_find(shown->func) ? handle_find(shown->kern) : NULL;
    CUcontext context = NULL;
    if (from && driver.cuCtxGetCurrent && driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context == shown->ctx)
        handle_learn(shown->func, HANDLE_FUNCTION, (void *)(uintptr_t)from->owner, handle_name(from), shown->kern);
}

CUresult graph_get_kernel_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode node,
                               CUDA_KERNEL_NODE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphKernelNodeGetParams);
    /* The older form does not show the CUkernel, which may be all that we know. */
    type_cuGraphKernelNodeGetParams *full = real_own(HOOK_cuGraphKernelNodeGetParams_v2);
    CUDA_KERNEL_NODE_PARAMS shown;
    bool told = armed_and_ready(VENDOR_CUDA) && full && params && full(node, &shown) == CUDA_SUCCESS;
    CUresult result = real(node, params);
    uint32_t asked = 0;
    if (result == CUDA_SUCCESS && told)
        learn_shown(&shown);
    if (result == CUDA_SUCCESS && params && asked_for(told ? &shown : params, told, &asked))
        params->sharedMemBytes = asked;
    return result;
}

bool graph_set_back(CUgraphNode node) {
    type_cuGraphKernelNodeGetParams *get = real_own(HOOK_cuGraphKernelNodeGetParams_v2);
    type_cuGraphKernelNodeSetParams *set = real_own(HOOK_cuGraphKernelNodeSetParams_v2);
    const bool second = get && set;
    CUDA_KERNEL_NODE_PARAMS params;
    uint32_t asked = 0;
    if (!second) {
        get = real_own(HOOK_cuGraphKernelNodeGetParams);
        set = real_own(HOOK_cuGraphKernelNodeSetParams);
    }
    memset(&params, 0, sizeof params);
    if (!get || !set || get(node, &params) != CUDA_SUCCESS || !asked_for(&params, second, &asked))
        return false;
    params.sharedMemBytes = asked;
    return set(node, &params) == CUDA_SUCCESS;
}

bool graph_is_communication(CUgraphNode node) {
    type_cuGraphKernelNodeGetParams *get = real_own(HOOK_cuGraphKernelNodeGetParams_v2);
    const bool second = get;
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    if (!get)
        get = real_own(HOOK_cuGraphKernelNodeGetParams);
    const struct handle *handle =
        get && get(node, &params) == CUDA_SUCCESS ? handle_find(graph_kernel_of(&params, second)) : NULL;
    return handle && handle_is_marked(handle, HANDLE_COMMUNICATES);
}

CUresult graph_set_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode node, int attribute,
                                  const CUlaunchAttributeValue *value) {
    REAL_OR_RETURN(cuGraphKernelNodeSetAttribute);
    if (forbids_shaping(attribute) && armed_and_ready(VENDOR_CUDA))
        graph_set_back(node);
    return real(node, attribute, value);
}

CUresult graph_copy_attributes_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphNode to,
                                    CUgraphNode from) {
    REAL_OR_RETURN(cuGraphKernelNodeCopyAttributes);
    if (armed_and_ready(VENDOR_CUDA) && flags_of_node(from))
        graph_set_back(to);
    return real(to, from);
}

CUresult graph_add_dependencies_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraph graph,
                                     const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
                                     size_t count) {
    REAL_OR_RETURN(cuGraphAddDependencies_v2);
    capture_dependencies_added();
    CUresult result = real(graph, from, to, edges, count);
    for (size_t i = 0; result == CUDA_SUCCESS && to && armed_and_ready(VENDOR_CUDA) && i < count; i++)
        if (edges && flags_of_edges(&edges[i], 1))
            graph_set_back(to[i]);
    return result;
}
