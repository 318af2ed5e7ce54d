/* Make launches on NVIDIA: as asked, or with another size. */
#include "launch.h"

CUresult launch_cooperative_body(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                                 void **parameters) {
    return launch_made(route, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                       parameters, NULL, OVERLAP_LAUNCH_COOPERATIVE);
}

CUresult cuda_launch_with(struct request *request, uint32_t dynamic) {
    const CUlaunchConfig *c = &request->config;
    void *real = real_function(request->route, request->hook, request->site);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    switch (request->hook) {
    case HOOK_cuLaunchKernel:
    case HOOK_cuLaunchKernel_ptsz:
        return ((type_cuLaunchKernel *)real)(request->function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                                             c->blockDimY, c->blockDimZ, dynamic, c->hStream, request->parameters,
                                             request->extra);
    case HOOK_cuLaunchCooperativeKernel:
    case HOOK_cuLaunchCooperativeKernel_ptsz:
        return ((type_cuLaunchCooperativeKernel *)real)(request->function, c->gridDimX, c->gridDimY, c->gridDimZ,
                                                        c->blockDimX, c->blockDimY, c->blockDimZ, dynamic, c->hStream,
                                                        request->parameters);
    default: {
        /* Patch our own copy in place: copying it again right after it was written stalls the processor. */
        const uint32_t asked = c->sharedMemBytes;
        request->config.sharedMemBytes = dynamic;
        CUresult result = ((type_cuLaunchKernelEx *)real)(c, request->function, request->parameters, request->extra);
        request->config.sharedMemBytes = asked;
        return result;
    }
    }
}

bool cuda_is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
           result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ||
           result == CUDA_ERROR_INVALID_CLUSTER_SIZE; /* returned for a cluster that fits nowhere */
}
