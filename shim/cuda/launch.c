/* Launches on NVIDIA: from the call to a request, and from the request back to the call, with the decided size. */
#include "launch.h"

/* A cluster of one block counts as none. */
uint32_t launch_flags_of(const CUlaunchConfig *config) {
    uint32_t flags = 0;
    for (uint32_t i = 0; config->attrs && i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute->value.cooperative)
            flags |= OVERLAP_LAUNCH_COOPERATIVE;
        else if ((attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
                  attribute->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) &&
                 (attribute->value.cluster.x > 1 || attribute->value.cluster.y > 1 || attribute->value.cluster.z > 1))
            flags |= OVERLAP_LAUNCH_CLUSTER;
        else if ((attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                  attribute->value.programmatic) ||
                 attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            flags |= OVERLAP_LAUNCH_PROGRAMMATIC;
        else if (attribute->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) /* the last one counts */
            flags = attribute->value.carveout == CU_SHAREDMEM_CARVEOUT_MAX_SHARED
                        ? flags & ~(uint32_t)OVERLAP_LAUNCH_SMALL_CARVEOUT
                        : flags | OVERLAP_LAUNCH_SMALL_CARVEOUT;
    }
    return flags;
}

CUresult launch_first(ENTRY, uint32_t flags, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                      void **parameters, void **extra) {
    struct request request = {.route = route,
                              .hook = hook,
                              .site = site,
                              .flags = flags,
                              .function = function,
                              .parameters = parameters,
                              .extra = extra,
                              .config = {.gridDimX = grid_x,
                                         .gridDimY = grid_y,
                                         .gridDimZ = grid_z,
                                         .blockDimX = block_x,
                                         .blockDimY = block_y,
                                         .blockDimZ = block_z,
                                         .sharedMemBytes = shared,
                                         .hStream = stream}};
    return launch_slow(&request);
}

CUresult launch_first_ex(ENTRY, uint32_t flags, const CUlaunchConfig *config, CUfunction function, void **parameters,
                         void **extra) {
    struct request request = {.route = route,
                              .hook = hook,
                              .site = site,
                              .flags = flags,
                              .function = function,
                              .parameters = parameters,
                              .extra = extra,
                              .config = *config};
    return launch_slow(&request);
}

CUresult launch_cooperative_body(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                                 void **parameters) {
    return launch_first(route, hook, outer_site(site), OVERLAP_LAUNCH_COOPERATIVE, function, grid_x, grid_y, grid_z,
                        block_x, block_y, block_z, shared, stream, parameters, NULL);
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
        CUlaunchConfig config = *c;
        config.sharedMemBytes = dynamic;
        return ((type_cuLaunchKernelEx *)real)(&config, request->function, request->parameters, request->extra);
    }
    }
}

bool cuda_is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
           result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ||
           result == CUDA_ERROR_INVALID_CLUSTER_SIZE; /* returned for a cluster that fits nowhere */
}
