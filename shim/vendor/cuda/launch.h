/* Bodies of the launch calls. What the thread's table does not hold goes to the slow body, a separate function so that
 * the hot one needs no stack frame. */
#pragma once

#include "../../core/core.h"
#include "../common/hot.h"
#include "../common/launch_slow.h"
#include "../common/request.h"
#include "../common/this_thread.h"
#include "cuda.h"

/* hook_default() if the hook is known at compile time. */
static inline enum default_stream null_stream_of(enum hook hook) {
    return hook == HOOK_cuLaunchKernel_ptsz || hook == HOOK_cuLaunchKernelEx_ptsz ? STREAM_OF_THREAD
                                                                                  : STREAM_OF_CONTEXT;
}

/* Set every field one by one: a designated initialiser would zero the whole struct first. */
DRIVER_BODY launch_made(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                        uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream, void **parameters,
                        void **extra, uint32_t flags) {
    struct request request;
    request.route = route;
    request.counted = outer_route(route);
    request.hook = hook;
    request.site = outer_site(site);
    request.flags = flags;
    request.function = function;
    request.parameters = parameters;
    request.extra = extra;
    request.config.gridDimX = grid_x;
    request.config.gridDimY = grid_y;
    request.config.gridDimZ = grid_z;
    request.config.blockDimX = block_x;
    request.config.blockDimY = block_y;
    request.config.blockDimZ = block_z;
    request.config.sharedMemBytes = shared;
    request.config.pad = 0;
    request.config.hStream = stream;
    request.config.attrs = NULL;
    request.config.numAttrs = 0;
    request.config.pad2 = 0;
    request.more = NULL;
    return launch_slow(&request);
}

/* cuLaunchKernel, slow path. */
DRIVER_BODY launch_body_miss(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                             uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                             void **parameters, void **extra) {
    return launch_made(route, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                       parameters, extra, 0);
}

/* Translate launch attributes into launch flags. A cluster of one block counts as none. */
static inline uint32_t flags_of(const CUlaunchConfig *config) {
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

DRIVER_BODY launch_ex_body(ENTRY, const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    type_cuLaunchKernelEx *real = REAL(cuLaunchKernelEx);
    if (__builtin_expect(!config || !real, 0)) /* left for the driver to refuse */
        return real ? real(config, function, parameters, extra) : CUDA_ERROR_NOT_INITIALIZED;
    const uint32_t flags = config->numAttrs ? flags_of(config) : 0;
    const uint64_t word =
        launch_known(function, flags, config->blockDimX * config->blockDimY * config->blockDimZ,
                     (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ, config->sharedMemBytes,
                     config->hStream, null_stream_of(hook), outer_route(route), outer_site(site));
    if (__builtin_expect(!word, 0)) {
        struct request request = {route,    outer_route(route), hook,  outer_site(site), flags,
                                  function, parameters,         extra, *config,          NULL};
        return launch_slow(&request);
    }
    if (!(word & OVERLAP_WORD_CHANGED))
        return real(config, function, parameters, extra);
    CUlaunchConfig changed = *config;
    changed.sharedMemBytes = (uint32_t)(word & OVERLAP_WORD_SIZE_MASK);
    return real(&changed, function, parameters, extra);
}
