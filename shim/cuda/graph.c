/* Graphs of NVIDIA as they are instantiated: what their kernels add up to (../gpu/graphs.h). They are read, never changed. */
#include "../core/core.h"
#include "../core/judge.h"
#include "../sys/sys.h"
#include "../gpu/device.h"
#include "../gpu/graphs.h"
#include "../gpu/handle.h"
#include "../gpu/streams.h"
#include "cuda.h"

enum { NODES = 1 << 16, DEPTH = 8 }; /* more are not read: the graph counts as unknown */

/* Is it communication, by its name or by the library that was captured? Raising it is another question than raising
 * computation. A function that the program has not obtained itself is asked for its name. */
static bool communicates(const struct device *device, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel) {
    struct handle *const handle = handle_find(kernel->func ? kernel->func : kernel->kern);
    struct overlap_matches matches = {.communicates = false};
    const char *name = NULL;
    if (handle && handle_is_marked(handle, HANDLE_COMMUNICATES))
        return true;
    if (handle) {
        handle_match(handle, device->policy, &matches);
    } else if (kernel->func && driver.cuFuncGetName && driver.cuFuncGetName(&name, kernel->func) == CUDA_SUCCESS &&
               name) {
        const struct overlap_view view = overlap_table_view(overlap_armed()->table);
        overlap_match_kernel(&view, device->policy, name, &matches);
    }
    return matches.communicates;
}

/* 0: not known. */
static uint32_t registers_of(const struct device *device, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel) {
    type_cuFuncGetAttribute *get = (type_cuFuncGetAttribute *)real_export(HOOK_cuFuncGetAttribute);
    const struct handle *const handle = handle_find(kernel->func ? kernel->func : kernel->kern);
    int registers = 0;
    const CUresult result = handle && !handle_is(handle, HANDLE_UNKNOWN)
                                ? handle_get(handle, CU_FUNC_ATTRIBUTE_NUM_REGS, device->ordinal, &registers)
                            : kernel->func && get ? get(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel->func)
                                                  : CUDA_ERROR_NOT_SUPPORTED;
    return result == CUDA_SUCCESS && registers > 0 ? (uint32_t)registers : 0;
}

static bool add_graph(const struct device *device, CUgraph graph, int depth, uint64_t *work);

static bool add_node(const struct device *device, CUgraphNode node, int depth, uint64_t *work) {
    CUDA_KERNEL_NODE_PARAMS_v2 kernel = {0};
    CUgraph child = NULL;
    int type;
    if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type >= CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return false; /* conditional, or of a kind that is newer */
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        return driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
               add_graph(device, child, depth + 1, work);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL)
        return true;
    if (driver.cuGraphKernelNodeGetParams_v2(node, &kernel) != CUDA_SUCCESS || communicates(device, &kernel))
        return false;
    *work += (uint64_t)kernel.gridDimX * kernel.gridDimY * kernel.gridDimZ *
             overlap_block_work(kernel.blockDimX * kernel.blockDimY * kernel.blockDimZ, registers_of(device, &kernel));
    return true;
}

/* Adds up the work of a graph's kernels. False: they are not known. */
static bool add_graph(const struct device *device, CUgraph graph, int depth, uint64_t *work) {
    size_t count = 0;
    if (depth == DEPTH || driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count > NODES)
        return false;
    if (!count)
        return true;
    const size_t bytes = count * sizeof(CUgraphNode);
    CUgraphNode *const nodes = overlap_map(bytes);
    bool known = nodes && driver.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS;
    for (size_t i = 0; known && i < count; i++)
        known = add_node(device, nodes[i], depth, work);
    if (nodes)
        overlap_unmap(nodes, bytes);
    return known;
}

static CUresult instantiated(const CUgraphExec *exec, CUgraph graph, uint64_t flags, CUresult result) {
    if (result != CUDA_SUCCESS || !exec || !streams_tracked() || !driver_ready(VENDOR_CUDA))
        return result;
    const struct device *const device = current_device(VENDOR_CUDA);
    uint64_t work = 0;
    const int mode = cuda_relax(); /* another stream may be capturing */
    const bool known = device && driver.cuGraphGetNodes && driver.cuGraphNodeGetType &&
                       driver.cuGraphKernelNodeGetParams_v2 && driver.cuGraphChildGraphNodeGetGraph &&
                       !(flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) && add_graph(device, graph, 0, &work);
    cuda_restore(mode);
    graph_learn(*exec, known, work);
    return result;
}

CUresult graph_instantiate_v2_body(ENTRY, CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log,
                                   size_t bytes) {
    REAL_OR_RETURN(cuGraphInstantiate_v2);
    return instantiated(exec, graph, 0, real(exec, graph, error, log, bytes));
}

CUresult graph_instantiate_flags_body(ENTRY, CUgraphExec *exec, CUgraph graph, uint64_t flags) {
    REAL_OR_RETURN(cuGraphInstantiateWithFlags);
    return instantiated(exec, graph, flags, real(exec, graph, flags));
}

CUresult graph_instantiate_params_body(ENTRY, CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *given) {
    REAL_OR_RETURN(cuGraphInstantiateWithParams);
    const uint64_t flags = given ? given->flags : 0;
    return instantiated(exec, graph, flags, real(exec, graph, given));
}

/* Before the driver's call: another thread may get the handle again before it returns. */
CUresult graph_destroy_body(ENTRY, CUgraphExec exec) {
    REAL_OR_RETURN(cuGraphExecDestroy);
    if (streams_tracked())
        graph_forget(exec);
    return real(exec);
}
