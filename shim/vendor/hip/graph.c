#include "hip.h"
#define PASS(body, name, parameters, ...)                                                                              \
    hipError_t body(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {                  \
        REAL_OR_RETURN(name);                                                                                          \
        return real(__VA_ARGS__);                                                                                      \
    }
PASS(hip_graph_add_kernel_body, hipGraphAddKernelNode,
     (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t count,
      const hipKernelNodeParams *params),
     node, graph, dependencies, count, params)
PASS(hip_graph_add_body, hipGraphAddNode,
     (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t count,
      hipGraphNodeParams *params),
     node, graph, dependencies, count, params)
PASS(hip_graph_set_kernel_body, hipGraphKernelNodeSetParams, (hipGraphNode_t node, const hipKernelNodeParams *params),
     node, params)
PASS(hip_graph_set_body, hipGraphNodeSetParams, (hipGraphNode_t node, hipGraphNodeParams *params), node, params)
PASS(hip_graph_get_kernel_body, hipGraphKernelNodeGetParams, (hipGraphNode_t node, hipKernelNodeParams *params), node,
     params)
PASS(hip_graph_exec_set_kernel_body, hipGraphExecKernelNodeSetParams,
     (hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *params), exec, node, params)
PASS(hip_graph_exec_set_body, hipGraphExecNodeSetParams,
     (hipGraphExec_t exec, hipGraphNode_t node, hipGraphNodeParams *params), exec, node, params)
PASS(hip_graph_set_attribute_body, hipGraphKernelNodeSetAttribute,
     (hipGraphNode_t node, int attribute, const vendor_attribute_value *value), node, attribute, value)
PASS(hip_graph_copy_attributes_body, hipGraphKernelNodeCopyAttributes, (hipGraphNode_t from, hipGraphNode_t to), from,
     to)
PASS(hip_graph_instantiate_body, hipGraphInstantiate,
     (hipGraphExec_t * exec, hipGraph_t graph, hipGraphNode_t *error, char *log, size_t size), exec, graph, error, log,
     size)
PASS(hip_graph_instantiate_flags_body, hipGraphInstantiateWithFlags,
     (hipGraphExec_t * exec, hipGraph_t graph, uint64_t flags), exec, graph, flags)
PASS(hip_graph_instantiate_params_body, hipGraphInstantiateWithParams,
     (hipGraphExec_t * exec, hipGraph_t graph, void *params), exec, graph, params)
uint32_t hip_graph_holds(hipGraph_t graph) {
    (void)graph;
    return 0;
}
