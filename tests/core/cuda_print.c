/* The same questions to cuda_abi.h or, with -DTHEIRS, to NVIDIA's cuda.h: constants by name, sizes and offsets of
 * structs. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef THEIRS
#include <cuda.h>
#else
#include "cuda/cuda_abi.h"
#endif

#define CONSTANT(name) printf(#name " %d\n", (int)(intptr_t)(name));
#define SIZE(type) printf(#type " %zu\n", sizeof(type));
#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field));

/* What has another name there. */
#ifdef THEIRS
#define NAMED(type, ours, theirs)                                                                                      \
    printf(#type "." #ours " %zu %zu\n", offsetof(type, theirs), sizeof(((type *)0)->theirs));
#else
#define NAMED(type, ours, theirs) printf(#type "." #ours " %zu %zu\n", offsetof(type, ours), sizeof(((type *)0)->ours));
#endif
#define VALUE(ours, theirs) NAMED(CUlaunchAttribute, ours, theirs)

int main(void) {
#ifdef CUDA_NAMES
#include CUDA_NAMES
#endif
    SIZE(CUresult)
    SIZE(CUdevice)
    SIZE(CUcontext)
    SIZE(CUfunction)
    SIZE(CUstream)
    SIZE(CUuuid)
    SIZE(CUlaunchAttribute)
    SIZE(CUlaunchConfig)
    FIELD(CUlaunchAttribute, id)
    FIELD(CUlaunchAttribute, value)
    VALUE(value.cooperative, value.cooperative)
    VALUE(value.priority, value.priority)
    VALUE(value.cluster.x, value.clusterDim.x)
    VALUE(value.cluster.y, value.clusterDim.y)
    VALUE(value.cluster.z, value.clusterDim.z)
    VALUE(value.carveout, value.sharedMemCarveout)
    VALUE(value.programmatic, value.programmaticStreamSerializationAllowed)
    FIELD(CUlaunchConfig, gridDimX)
    FIELD(CUlaunchConfig, gridDimY)
    FIELD(CUlaunchConfig, gridDimZ)
    FIELD(CUlaunchConfig, blockDimX)
    FIELD(CUlaunchConfig, blockDimY)
    FIELD(CUlaunchConfig, blockDimZ)
    FIELD(CUlaunchConfig, sharedMemBytes)
    FIELD(CUlaunchConfig, hStream)
    FIELD(CUlaunchConfig, attrs)
    FIELD(CUlaunchConfig, numAttrs)
    SIZE(CUstreamAttrValue)
    SIZE(CUevent)
    SIZE(CUgraphEdgeData)
    FIELD(CUgraphEdgeData, from_port)
    FIELD(CUgraphEdgeData, type)
    SIZE(CUDA_KERNEL_NODE_PARAMS_v2)
    FIELD(CUDA_KERNEL_NODE_PARAMS_v2, func)
    FIELD(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX)
    FIELD(CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ)
    FIELD(CUDA_KERNEL_NODE_PARAMS_v2, kern)
    SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS)
    FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, flags)
    VALUE(value.event, value.programmaticEvent.event)
    VALUE(value.event, value.launchCompletionEvent.event)
    return 0;
}
