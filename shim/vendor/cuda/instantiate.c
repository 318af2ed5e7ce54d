/* Instantiation: a graph honours the priorities of its nodes only if it is instantiated with a flag (seen on an H200, too:
 * without it a raised node waits as if it were not), and one that does not instantiate is tried again without our sizes
 * (driver 580 refuses a size when it is given to a node, not here; others may differ).
 */
#include <string.h>

#include "../common/windows.h"
#include "cuda.h"

uint32_t graph_may_be_raised;

enum { DEEPEST = 8, NODES = 32 }; /* what fits on a small stack */

/* Does something with every node of a graph and of those inside it; all bits that any call returned. */
static uint32_t each_node(CUgraph graph, uint32_t (*act)(CUgraphNode node, int type), int depth) {
    CUgraphNode few[NODES], *nodes = few;
    size_t count = 0;
    uint32_t any = 0;
    if (!driver.cuGraphGetNodes || !driver.cuGraphNodeGetType || depth > DEEPEST ||
        driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS)
        return 0;
    if (count > NODES && !(nodes = overlap_map(count * sizeof *nodes)))
        return 0;
    const size_t mapped = count;
    if (driver.cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS)
        count = 0;
    for (size_t i = 0; i < count && i < mapped; i++) {
        int type = -1;
        CUgraph inner = NULL;
        if (driver.cuGraphNodeGetType(nodes[i], &type) != CUDA_SUCCESS)
            continue;
        any |= act(nodes[i], type);
        if (type == CU_GRAPH_NODE_TYPE_GRAPH && driver.cuGraphChildGraphNodeGetGraph &&
            driver.cuGraphChildGraphNodeGetGraph(nodes[i], &inner) == CUDA_SUCCESS)
            any |= each_node(inner, act, depth + 1);
    }
    if (nodes != few)
        overlap_unmap(nodes, mapped * sizeof *nodes);
    return any;
}

static uint32_t holds(CUgraphNode node, int type) {
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return graph_is_communication(node) ? EXEC_COMMUNICATES : 0;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return EXEC_WAITS;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return EXEC_UNKNOWN;
    default:
        return 0;
    }
}

uint32_t cuda_graph_holds(CUgraph graph) {
    return each_node(graph, holds, 0);
}

/* A node of a kernel that we raise, at a priority of its own. */
static uint32_t is_raised(CUgraphNode node, int type) {
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
    return each_node(graph, is_raised, 0) ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0;
}

static uint32_t set_back(CUgraphNode node, int type) {
    return type == CU_GRAPH_NODE_TYPE_KERNEL && graph_set_back(node);
}

/* A graph did not instantiate: is there something to try again without our sizes? */
static bool try_again(CUgraph graph, CUresult result) {
    if (!cuda_is_refusal(result) || !armed_and_ready(VENDOR_CUDA) || !each_node(graph, set_back, 0))
        return false;
    launch_count(OVERLAP_COUNTER_REFUSED);
    return true;
}

static CUresult made(CUgraphExec *exec, CUgraph graph, CUresult result) {
    if (result == CUDA_SUCCESS && exec)
        exec_made(VENDOR_CUDA, *exec, graph);
    return result;
}

CUresult graph_instantiate_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec *exec, CUgraph graph,
                                CUgraphNode *error, char *log, size_t size) {
    REAL_OR_RETURN(cuGraphInstantiate);
    type_cuGraphInstantiateWithFlags *with_flags = real_own(HOOK_cuGraphInstantiateWithFlags);
    const uint64_t flag = flag_for(graph);
    /* This form takes no flags; where the other one fails, this one says why. */
    if (flag && with_flags && with_flags(exec, graph, flag) == CUDA_SUCCESS)
        return made(exec, graph, CUDA_SUCCESS);
    CUresult result = real(exec, graph, error, log, size);
    return made(exec, graph, try_again(graph, result) ? real(exec, graph, error, log, size) : result);
}

CUresult graph_instantiate_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec *exec,
                                      CUgraph graph, uint64_t flags) {
    REAL_OR_RETURN(cuGraphInstantiateWithFlags);
    const uint64_t flag = flag_for(graph);
    CUresult result = real(exec, graph, flags | flag);
    if ((flag & ~flags) && cuda_is_refusal(result))
        result = real(exec, graph, flags);
    return made(exec, graph, try_again(graph, result) ? real(exec, graph, flags) : result);
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
    return made(exec, graph, try_again(graph, result) ? real(exec, graph, params) : result);
}
