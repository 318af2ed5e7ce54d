/* Nodes of graphs, whose parameters HIP lays out in its own way. */
#include <string.h>

#include "hip.h"

/* A kernel is named by the host's address for it, or by its hipFunction_t. */
static hipError_t kernel_params(const hipKernelNodeParams *what, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
    hipFunction_t function;
    if (what == NULL || what->func == NULL)
        return hipErrorInvalidValue;
    hipError_t result = hip_function(what->func, hip_device_of(NULL), &function);
    if (result == hipErrorInvalidDeviceFunction) {
        function = what->func;
        result = hipSuccess;
    }
    *out = (CUDA_KERNEL_NODE_PARAMS_v1){
        .func = function,
        .gridDimX = what->gridDim.x,
        .gridDimY = what->gridDim.y,
        .gridDimZ = what->gridDim.z,
        .blockDimX = what->blockDim.x,
        .blockDimY = what->blockDim.y,
        .blockDimZ = what->blockDim.z,
        .sharedMemBytes = what->sharedMemBytes,
        .kernelParams = what->kernelParams,
        .extra = what->extra,
    };
    return result;
}

hipError_t hip_hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *before, size_t count,
                                     const hipKernelNodeParams *what) {
    CUDA_KERNEL_NODE_PARAMS_v1 params;
    const hipError_t result = kernel_params(what, &params);
    return result != hipSuccess ? result : cuGraphAddKernelNode(node, graph, before, count, &params);
}

hipError_t hip_hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams *what) {
    CUDA_KERNEL_NODE_PARAMS_v1 params;
    const hipError_t result = kernel_params(what, &params);
    return result != hipSuccess ? result : cuGraphKernelNodeSetParams(node, &params);
}

hipError_t hip_hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               const hipKernelNodeParams *what) {
    CUDA_KERNEL_NODE_PARAMS_v1 params;
    const hipError_t result = kernel_params(what, &params);
    return result != hipSuccess ? result : cuGraphExecKernelNodeSetParams(exec, node, &params);
}

hipError_t hip_hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams *what) {
    CUDA_KERNEL_NODE_PARAMS_v1 params;
    hipError_t result = hip_ready();
    if (what == NULL)
        return hipErrorInvalidValue;
    if (result == hipSuccess)
        result = cuGraphKernelNodeGetParams(node, &params);
    if (result != hipSuccess)
        return result;
    void *const host = hip_host_of(params.func);
    *what = (hipKernelNodeParams){
        .blockDim = {params.blockDimX, params.blockDimY, params.blockDimZ},
        .extra = params.extra,
        .func = host != NULL ? host : params.func,
        .gridDim = {params.gridDimX, params.gridDimY, params.gridDimZ},
        .kernelParams = params.kernelParams,
        .sharedMemBytes = params.sharedMemBytes,
    };
    return hipSuccess;
}

static CUDA_MEMSET_NODE_PARAMS_v2 memset_params(const hipMemsetParams *what) {
    return (CUDA_MEMSET_NODE_PARAMS_v2){.dst = (CUdeviceptr)what->dst,
                                        .pitch = what->pitch,
                                        .value = what->value,
                                        .elementSize = what->elementSize,
                                        .width = what->width,
                                        .height = what->height};
}

static hipError_t add(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *before, size_t count,
                      CUgraphNodeParams *params) {
    const hipError_t result = hip_ready();
    return result != hipSuccess ? result : cuGraphAddNode(node, graph, before, count, params);
}

hipError_t hip_hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *before, size_t count,
                                     const hipMemsetParams *what) {
    if (what == NULL)
        return hipErrorInvalidValue;
    CUgraphNodeParams params = {.type = NODE_MEMSET, .of.memset = memset_params(what)};
    return add(node, graph, before, count, &params);
}

hipError_t hip_hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *before,
                                       size_t count, void *to, const void *from, size_t bytes, int kind) {
    enum { HOST = 1, DEVICE = 2 };
    hipError_t result = hip_ready();
    if (result != hipSuccess)
        return result;
    if (kind < 0 || kind > 4)
        return hipErrorInvalidMemcpyDirection;
    sim_lock();
    const int to_type = sim_memory_has((CUdeviceptr)to, 1) ? DEVICE : HOST;
    const int from_type = sim_memory_has((CUdeviceptr)from, 1) ? DEVICE : HOST;
    sim_unlock();
    CUgraphNodeParams params = {.type = NODE_MEMCPY};
    params.of.memcpy.copyParams = (CUDA_MEMCPY3D){
        .srcMemoryType = from_type,
        .srcHost = from,
        .srcDevice = (CUdeviceptr)from,
        .dstMemoryType = to_type,
        .dstHost = to,
        .dstDevice = (CUdeviceptr)to,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
    return cuGraphAddNode(node, graph, before, count, &params);
}

/* The kinds of nodes that the engine knows, but for copies, whose parameters name arrays. */
static hipError_t any_params(const hipGraphNodeParams *what, CUgraphNodeParams *out) {
    hipError_t result = hip_ready();
    if (what == NULL || result != hipSuccess)
        return what == NULL ? hipErrorInvalidValue : result;
    *out = (CUgraphNodeParams){.type = what->type};
    CUDA_KERNEL_NODE_PARAMS_v1 kernel;
    switch (what->type) {
    case NODE_KERNEL:
        result = kernel_params(&what->of.kernel, &kernel);
        if (result == hipSuccess)
            *out = sim_kernel_node_params_v1(&kernel);
        return result;
    case NODE_MEMSET:
        out->of.memset = memset_params(&what->of.memset);
        return hipSuccess;
    case NODE_HOST:
        out->of.host = what->of.host;
        return hipSuccess;
    case NODE_CHILD:
        out->of.graph = what->of.graph;
        return hipSuccess;
    case NODE_EMPTY:
        return hipSuccess;
    case NODE_WAIT:
    case NODE_RECORD:
        out->of.event = what->of.event;
        return hipSuccess;
    default:
        return hipErrorNotSupported;
    }
}

hipError_t hip_hipGraphAddNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *before, size_t count,
                               hipGraphNodeParams *what) {
    CUgraphNodeParams params;
    const hipError_t result = any_params(what, &params);
    return result != hipSuccess ? result : cuGraphAddNode(node, graph, before, count, &params);
}

hipError_t hip_hipGraphNodeSetParams(hipGraphNode_t node, hipGraphNodeParams *what) {
    CUgraphNodeParams params;
    const hipError_t result = any_params(what, &params);
    return result != hipSuccess ? result : cuGraphNodeSetParams(node, &params);
}

hipError_t hip_hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node, hipGraphNodeParams *what) {
    CUgraphNodeParams params;
    const hipError_t result = any_params(what, &params);
    return result != hipSuccess ? result : cuGraphExecNodeSetParams(exec, node, &params);
}

hipError_t hip_hipGraphInstantiateWithParams(hipGraphExec_t *exec, hipGraph_t graph, hipGraphInstantiateParams *what) {
    hipError_t result = hip_ready();
    if (what == NULL || result != hipSuccess)
        return what == NULL ? hipErrorInvalidValue : result;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = what->flags, .hUploadStream = what->uploadStream};
    result = cuGraphInstantiateWithParams(exec, graph, &params);
    what->errNode_out = params.hErrNode_out;
    what->result_out = params.result_out;
    return result;
}
