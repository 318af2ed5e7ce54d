/* Kernel nodes: the program names a function by its address, the driver by its handle. */
#include "runtime.h"

/* The kernel goes in as such, as from the real runtime: func is empty and kern is set. */
static cudaError_t to_driver(const struct cudaKernelNodeParams *from, CUDA_KERNEL_NODE_PARAMS *to) {
    CUkernel kernel = NULL;
    if (from == NULL)
        return cudaErrorInvalidValue;
    cudaError_t result = rt_ready();
    if (result == cudaSuccess)
        result = rt_kernel(from->func, &kernel);
    *to = (CUDA_KERNEL_NODE_PARAMS){
        .gridDimX = from->gridDim.x,
        .gridDimY = from->gridDim.y,
        .gridDimZ = from->gridDim.z,
        .blockDimX = from->blockDim.x,
        .blockDimY = from->blockDim.y,
        .blockDimZ = from->blockDim.z,
        .sharedMemBytes = from->sharedMemBytes,
        .kernelParams = from->kernelParams,
        .extra = from->extra,
        .kern = kernel,
    };
    return result;
}

cudaError_t rt_cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                      size_t count, const struct cudaKernelNodeParams *parameters) {
    CUDA_KERNEL_NODE_PARAMS made;
    const cudaError_t result = to_driver(parameters, &made);
    return result != cudaSuccess ? result : rt_calls[0].cuGraphAddKernelNode(node, graph, dependencies, count, &made);
}

cudaError_t rt_cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters) {
    CUDA_KERNEL_NODE_PARAMS made;
    const cudaError_t result = to_driver(parameters, &made);
    return result != cudaSuccess ? result : rt_calls[0].cuGraphKernelNodeSetParams(node, &made);
}

cudaError_t rt_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                const struct cudaKernelNodeParams *parameters) {
    CUDA_KERNEL_NODE_PARAMS made;
    const cudaError_t result = to_driver(parameters, &made);
    return result != cudaSuccess ? result : rt_calls[0].cuGraphExecKernelNodeSetParams(exec, node, &made);
}

cudaError_t rt_cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *parameters) {
    CUDA_KERNEL_NODE_PARAMS found = {0};
    if (parameters == NULL)
        return cudaErrorInvalidValue;
    cudaError_t result = rt_ready();
    if (result == cudaSuccess)
        result = rt_calls[0].cuGraphKernelNodeGetParams(node, &found);
    if (result != cudaSuccess)
        return result;
    const void *const function = found.kern != NULL ? rt_host_function(found.kern) : found.func;
    *parameters = (struct cudaKernelNodeParams){
        .func = (void *)(uintptr_t)function,
        .gridDim = {found.gridDimX, found.gridDimY, found.gridDimZ},
        .blockDim = {found.blockDimX, found.blockDimY, found.blockDimZ},
        .sharedMemBytes = found.sharedMemBytes,
        .kernelParams = found.kernelParams,
        .extra = found.extra,
    };
    return cudaSuccess;
}
