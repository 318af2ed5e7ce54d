/* Graph instantiation. A graph honours node priorities only if it is instantiated with a flag (also seen on an H200:
 * without it a raised node waits as if not raised). If instantiation fails, it is tried again without our sizes (driver
 * 580 refuses a size when it is set in a node, not here; other drivers may differ).
 */
#include <stdlib.h>
#include <string.h>

#include "../../core/core.h"
#include "../common/comm_streams.h"
#include "../common/graph_exec.h"
#include "../common/node.h"
#include "cuda.h"

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

/* ---- Node priorities ---- */

#define OTHERS (UINT32_C(1) << 31)  /* computation at a priority other than 0 */
#define RAISED EXEC_RAISED_FROM_ANY /* some communication is raised */

static uint32_t look(enum vendor vendor, CUgraphNode node, int type, void *of) {
    struct node_priority found;
    (void)vendor, (void)of;
    if (type != CU_GRAPH_NODE_TYPE_KERNEL)
        return 0;
    if (!graph_priority_of(node, &found))
        return OTHERS;
    if (found.raised)
        return EXEC_RAISED_TO(found.now) |
               (found.sure ? EXEC_RAISED_FROM(found.own) : EXEC_RAISED_FROM_ANY | EXEC_OTHERS_AT(found.now));
    return EXEC_OTHERS_AT(found.now) | (found.own == 0 ? 0 : OTHERS);
}

/* The flags of ours that the executable graph will have: raised nodes, and the flag without which node priorities
 * have no effect. With that flag computation runs at its nodes' priorities instead of the launching stream's. So it
 * is added only if these are equal: every node and every stream has priority 0. CUDA_GRAPHS_USE_NODE_PRIORITY
 * overrides the flag of every instantiation (CUDA Programming Guide 13.0, 5.2.3.5). */
static uint32_t ours_of(CUgraph graph, uint64_t flags) {
    const char *used = getenv("CUDA_GRAPHS_USE_NODE_PRIORITY");
    if (!armed_and_ready(VENDOR_CUDA) || (used && strcmp(used, "0") == 0))
        return 0;
    const bool programs = flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY || (used && strcmp(used, "1") == 0);
    const bool some_prioritised = OVERLAP_RELAXED(stream_some_prioritised);
    if (!programs && !some_prioritised && OVERLAP_RELAXED(exec_may_communicate) &&
        !(node_each(VENDOR_CUDA, graph, look, NULL) & OTHERS))
        graph_raise_feeders(graph);
    const bool may_be_raised = OVERLAP_RELAXED(graph_may_be_raised);
    const uint32_t found = programs || may_be_raised ? node_each(VENDOR_CUDA, graph, look, NULL) : 0;
    const uint32_t ours = found & ~OTHERS;
    if (programs || !(found & RAISED))
        return programs ? ours | EXEC_PROGRAMS : 0;
    return found & OTHERS || some_prioritised ? 0 : ours | EXEC_FLAGGED;
}

static uint64_t flag_of(uint32_t ours) {
    return ours & EXEC_FLAGGED ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0;
}

CUresult graph_exec_flags_body(ENTRY, CUgraphExec exec, uint64_t *flags) {
    REAL_OR_RETURN(cuGraphExecGetFlags);
    const CUresult result = real(exec, flags);
    if (result == CUDA_SUCCESS && flags)
        *flags &= ~flag_of(exec_flags(exec));
    return result;
}

/* ---- Instantiation ---- */

CUresult graph_instantiate_body(ENTRY, CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log, size_t size) {
    REAL_OR_RETURN(cuGraphInstantiate);
    type_cuGraphInstantiateWithFlags *with_flags = real_own(HOOK_cuGraphInstantiateWithFlags);
    uint32_t ours = ours_of(graph, 0);
    /* This form takes no flags. If the other form fails, this one reports why. */
    if (ours & EXEC_FLAGGED && with_flags && with_flags(exec, graph, flag_of(ours)) == CUDA_SUCCESS)
        return node_instantiated(VENDOR_CUDA, exec, graph, ours, CUDA_SUCCESS);
    ours = ours & EXEC_FLAGGED ? 0 : ours;
    CUresult result = real(exec, graph, error, log, size);
    return node_instantiated(VENDOR_CUDA, exec, graph, ours,
                             node_try_again(VENDOR_CUDA, graph, result) ? real(exec, graph, error, log, size) : result);
}

CUresult graph_instantiate_flags_body(ENTRY, CUgraphExec *exec, CUgraph graph, uint64_t flags) {
    REAL_OR_RETURN(cuGraphInstantiateWithFlags);
    uint32_t ours = ours_of(graph, flags);
    CUresult result = real(exec, graph, flags | flag_of(ours));
    if (ours & EXEC_FLAGGED && cuda_is_refusal(result)) {
        ours = 0;
        result = real(exec, graph, flags);
    }
    return node_instantiated(VENDOR_CUDA, exec, graph, ours,
                             node_try_again(VENDOR_CUDA, graph, result) ? real(exec, graph, flags) : result);
}

CUresult graph_instantiate_params_body(ENTRY, CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    REAL_OR_RETURN(cuGraphInstantiateWithParams);
    const uint64_t flags = params ? params->flags : 0;
    uint32_t ours = params ? ours_of(graph, flags) : 0;
    if (!params)
        return real(exec, graph, params);
    params->flags = flags | flag_of(ours); /* in place: the driver also writes its results there */
    CUresult result = real(exec, graph, params);
    params->flags = flags;
    if (ours & EXEC_FLAGGED && cuda_is_refusal(result)) {
        ours = 0;
        result = real(exec, graph, params);
    }
    return node_instantiated(VENDOR_CUDA, exec, graph, ours,
                             node_try_again(VENDOR_CUDA, graph, result) ? real(exec, graph, params) : result);
}
