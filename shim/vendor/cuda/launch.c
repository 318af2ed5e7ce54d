/* Make launches on NVIDIA: as asked, or with another size. Launches by the calls before CUDA 4.0, and on several devices
 * at once, are counted and passed on. */
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

static void count(enum overlap_route route, uint32_t launches, uint32_t reason) {
    for (uint32_t i = 0; overlap_armed() && i < launches; i++)
        launch_count_reason(route, reason);
}

CUresult launch_legacy_body(ENTRY, CUfunction function) {
    REAL_OR_RETURN(cuLaunch);
    count(route, 1, OVERLAP_REASON_unknown_footprint);
    return real(function);
}

CUresult launch_grid_body(ENTRY, CUfunction function, int width, int height) {
    REAL_OR_RETURN(cuLaunchGrid);
    count(route, 1, OVERLAP_REASON_unknown_footprint);
    return real(function, width, height);
}

CUresult launch_grid_async_body(ENTRY, CUfunction function, int width, int height, CUstream stream) {
    REAL_OR_RETURN(cuLaunchGridAsync);
    count(route, 1, OVERLAP_REASON_unknown_footprint);
    return real(function, width, height, stream);
}

CUresult launch_multi_device_body(ENTRY, CUDA_LAUNCH_PARAMS *launches, uint32_t number, uint32_t flags) {
    REAL_OR_RETURN(cuLaunchCooperativeKernelMultiDevice);
    count(route, launches && number <= OVERLAP_DEVICES ? number : 0, OVERLAP_REASON_cooperative);
    return real(launches, number, flags);
}

bool cuda_is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
           result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ||
           result == CUDA_ERROR_INVALID_CLUSTER_SIZE; /* returned for a cluster that fits nowhere */
}
