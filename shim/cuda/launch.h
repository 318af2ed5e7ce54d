/* From the arguments of a launch to the driver's function: bodies of the launch calls. A launch that the thread has made
 * before calls the driver at once; any other becomes a request for launch_slow(). */
#pragma once

#include "../core/core.h"
#include "../gpu/launch.h"
#include "cuda.h"

#define LAUNCH_BODY static inline __attribute__((always_inline)) CUresult

/* hook_default() where the hook is known at compile time. */
static inline enum default_stream null_stream_of(enum hook hook) {
    return hook == HOOK_cuLaunchKernel_ptsz || hook == HOOK_cuLaunchKernelEx_ptsz ? STREAM_OF_THREAD
                                                                                  : STREAM_OF_CONTEXT;
}

/* launch.c: make a launch that the thread's table does not hold. */
CUresult launch_first(ENTRY, uint32_t flags, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                      void **parameters, void **extra);
CUresult launch_first_ex(ENTRY, uint32_t flags, const CUlaunchConfig *config, CUfunction function, void **parameters,
                         void **extra);

/* The launch flags that the attributes mean. */
uint32_t launch_flags_of(const CUlaunchConfig *config);

LAUNCH_BODY launch_body(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                        uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream, void **parameters,
                        void **extra) {
    type_cuLaunchKernel *const real = (type_cuLaunchKernel *)real_cached(hook, route);
    uint32_t size = shared;
    site = outer_site(site);
    if (__builtin_expect(real &&
                             launch_cached(function, 0, block_x * block_y * block_z, (uint64_t)grid_x * grid_y * grid_z,
                                           &size, stream, null_stream_of(hook), site),
                         1))
        return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, size, stream, parameters, extra);
    if (real && overlap_is_off())
        return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
    return launch_first(route, hook, site, 0, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                        stream, parameters, extra);
}

LAUNCH_BODY launch_ex_body(ENTRY, const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    type_cuLaunchKernelEx *const real = (type_cuLaunchKernelEx *)real_function(route, hook, site);
    if (__builtin_expect(!config || !real, 0)) /* left for the driver to refuse */
        return real ? real(config, function, parameters, extra) : CUDA_ERROR_NOT_INITIALIZED;
    const uint64_t flags = config->numAttrs ? launch_flags_of(config) : 0;
    uint32_t size = config->sharedMemBytes;
    site = outer_site(site);
    if (__builtin_expect(!launch_cached(function, flags, config->blockDimX * config->blockDimY * config->blockDimZ,
                                        (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ, &size,
                                        config->hStream, null_stream_of(hook), site),
                         0))
        return launch_first_ex(route, hook, site, (uint32_t)flags, config, function, parameters, extra);
    if (size == config->sharedMemBytes)
        return real(config, function, parameters, extra);
    CUlaunchConfig changed = *config;
    changed.sharedMemBytes = size;
    return real(&changed, function, parameters, extra);
}
