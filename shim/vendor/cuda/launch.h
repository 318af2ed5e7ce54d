/* Bodies of the launch calls. Everything but a direct hit goes to the slow body, a separate function so that the hot
 * one needs no stack frame. */
#pragma once

#include "../../core/core.h"
#include "../common/hot.h"
#include "../common/launch_slow.h"
#include "../common/request.h"
#include "../common/sync_calls.h"
#include "../common/this_thread.h"
#include "../common/windows.h"
#include "cuda.h"

/* hook_default() if the hook is known at compile time. */
static inline enum default_stream null_stream_of(enum hook hook) {
    return hook == HOOK_cuLaunchKernel_ptsz || hook == HOOK_cuLaunchKernelEx_ptsz ? STREAM_OF_THREAD
                                                                                  : STREAM_OF_CONTEXT;
}

static inline CUresult launch_not_direct(struct request *request, uint64_t word) {
    uint64_t kind = word & (OVERLAP_WORD_RAISE | OVERLAP_WORD_CHANGED | OVERLAP_WORD_DIRECT | OVERLAP_WORD_TRACED |
                            OVERLAP_WORD_STREAMED | WINDOW_BITS);
    return kind == OVERLAP_WORD_RAISE      ? launch_raised(request, word)
           : kind == OVERLAP_WORD_CHANGED  ? launch_changed(request, word)
           : kind == OVERLAP_WORD_STREAMED ? launch_streamed(request, word)
           : launch_is_windowed(word)      ? launch_windowed(request, word)
                                           : launch_slow(request, word);
}

/* Set every field one by one: a designated initialiser would zero the whole struct first. */
DRIVER_BODY launch_given_word(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                              uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                              void **parameters, void **extra, uint32_t flags, uint64_t word) {
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
    return launch_not_direct(&request, word);
}

/* cuLaunchKernel, slow path. */
DRIVER_BODY launch_body_miss(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                             uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                             void **parameters, void **extra) {
    return launch_given_word(route, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                             stream, parameters, extra, 0,
                             direct_word(function, 0, block_x * block_y * block_z, (uint64_t)grid_x * grid_y * grid_z,
                                         shared, outer_site(site)));
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
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            order_event_unknown(attribute->value.event);
    }
    return flags;
}

/* cuLaunchKernelEx with a known word (0: none). The configuration and the driver's function exist. */
DRIVER_BODY launch_ex_given_word(ENTRY, const CUlaunchConfig *config, CUfunction function, void **parameters,
                                 void **extra, uint32_t flags, uint64_t word) {
    type_cuLaunchKernelEx *real = REAL(cuLaunchKernelEx);
    struct overlap_shard *shard = this_thread.shard;
    const uint64_t here = __builtin_expect(!shard, 0) ? 0
                          : __builtin_expect((word & OVERLAP_WORD_DIRECT) != 0, 1)
                              ? word
                              : word_here(word, config->hStream, null_stream_of(hook));
    if (here) {
        count_direct(shard, outer_route(route), here);
        if (!(here & OVERLAP_WORD_CHANGED))
            return real(config, function, parameters, extra);
        CUlaunchConfig changed = *config;
        changed.sharedMemBytes = (uint32_t)(here & OVERLAP_WORD_SIZE_MASK);
        return real(&changed, function, parameters, extra);
    }
    struct request request = {route,    outer_route(route), hook,  outer_site(site), flags,
                              function, parameters,         extra, *config,          NULL};
    return launch_not_direct(&request, word);
}

/* The whole path in C: it may have to read attributes, and a changed configuration needs a stack frame. On x86-64
 * the assembler handles launches that need neither. */
DRIVER_BODY launch_ex_body(ENTRY, const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    type_cuLaunchKernelEx *real = REAL(cuLaunchKernelEx);
    if (__builtin_expect(!config || !real, 0)) /* left for the driver to refuse */
        return real ? real(config, function, parameters, extra) : CUDA_ERROR_NOT_INITIALIZED;
    uint32_t flags = flags_of(config);
    uint64_t word = direct_word(function, flags, config->blockDimX * config->blockDimY * config->blockDimZ,
                                (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
                                config->sharedMemBytes, outer_site(site));
    return launch_ex_given_word(route, hook, site, config, function, parameters, extra, flags, word);
}
