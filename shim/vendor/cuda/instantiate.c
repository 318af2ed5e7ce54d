/* Instantiation: a graph honours the priorities of its nodes only if it is instantiated with a flag (seen on an H200, too:
 * without it a raised node waits as if it were not), and one that does not instantiate is tried again without our sizes
 * (driver 580 refuses a size when it is given to a node, not here; others may differ).
 */
#include <string.h>

#include "../common/node.h"
#include "cuda.h"

uint32_t graph_may_be_raised;

CUresult cuda_graph_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    return driver.cuGraphGetNodes ? driver.cuGraphGetNodes(graph, nodes, count) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuda_node_type(CUgraphNode node, int *type) {
    return driver.cuGraphNodeGetType ? driver.cuGraphNodeGetType(node, type) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuda_node_inside(CUgraphNode node, CUgraph *graph) {
    return driver.cuGraphChildGraphNodeGetGraph ? driver.cuGraphChildGraphNodeGetGraph(node, graph)
                                                : CUDA_ERROR_NOT_SUPPORTED;
}

/* A node of a kernel that we raise, at a priority of its own. */
static uint32_t is_raised(enum vendor vendor, CUgraphNode node, int type) {
    (void)vendor;
    type_cuGraphKernelNodeGetParams *get = real_own(HOOK_cuGraphKernelNodeGetParams_v2);
    CUDA_KERNEL_NODE_PARAMS params;
    CUlaunchAttributeValue value;
    memset(&params, 0, sizeof params);
    memset(&value, 0, sizeof value);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL || !get || !driver.cuGraphKernelNodeGetAttribute ||
        get(node, &params) != CUDA_SUCCESS ||
        driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) != CUDA_SUCCESS)
        return 0;
    struct handle *handle = value.priority < 0 ? handle_find(graph_kernel_of(&params, true)) : NULL;
    return handle && handle_is_marked(handle, HANDLE_RAISED);
}

/* The flag without which the priorities of nodes count for nothing, 0 if there is none to honour. */
static uint64_t flag_for(CUgraph graph) {
    if (!__atomic_load_n(&graph_may_be_raised, __ATOMIC_RELAXED) || !armed_and_ready(VENDOR_CUDA))
        return 0;
    return node_each(VENDOR_CUDA, graph, is_raised) ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0;
}

CUresult graph_instantiate_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec *exec, CUgraph graph,
                                CUgraphNode *error, char *log, size_t size) {
    REAL_OR_RETURN(cuGraphInstantiate);
    type_cuGraphInstantiateWithFlags *with_flags = real_own(HOOK_cuGraphInstantiateWithFlags);
    const uint64_t flag = flag_for(graph);
    /* This form takes no flags; where the other one fails, this one says why. */
    if (flag && with_flags && with_flags(exec, graph, flag) == CUDA_SUCCESS)
        return node_instantiated(VENDOR_CUDA, exec, graph, CUDA_SUCCESS);
    CUresult result = real(exec, graph, error, log, size);
    return node_instantiated(VENDOR_CUDA, exec, graph,
                             node_try_again(VENDOR_CUDA, graph, result) ? real(exec, graph, error, log, size) : result);
}

CUresult graph_instantiate_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec *exec,
                                      CUgraph graph, uint64_t flags) {
    REAL_OR_RETURN(cuGraphInstantiateWithFlags);
    const uint64_t flag = flag_for(graph);
    CUresult result = real(exec, graph, flags | flag);
    if ((flag & ~flags) && cuda_is_refusal(result))
        result = real(exec, graph, flags);
    return node_instantiated(VENDOR_CUDA, exec, graph,
                             node_try_again(VENDOR_CUDA, graph, result) ? real(exec, graph, flags) : result);
}

CUresult graph_instantiate_params_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec *exec,
                                       CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphInstantiateWithParams);
    const uint64_t flags = params ? params->flags : 0, flag = params ? flag_for(graph) : 0;
    if (!params)
        return real(exec, graph, params);
    params->flags = flags | flag; /* in place, because the driver answers there, too */
    CUresult result = real(exec, graph, params);
    params->flags = flags;
    if ((flag & ~flags) && cuda_is_refusal(result))
        result = real(exec, graph, params);
    return node_instantiated(VENDOR_CUDA, exec, graph,
                             node_try_again(VENDOR_CUDA, graph, result) ? real(exec, graph, params) : result);
}
