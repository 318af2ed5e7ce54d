/* The hot path of a launch: one look into the decision cache, one counter, one jump. It is inlined into every thunk, so that way
 * and hook are constants there. Whatever is not a direct hit goes to launch_slow().
 *
 * The size is always max(asked, target): a launch may pass two hooks.
 */
#pragma once

#include "cuda.h"

/* Flags of the call take the top bits of the handle in the cache; a user's address never does. */
#define FLAG_SHIFT 61
#define DEVICE_SHIFT 57

static inline uint64_t direct_word(CUfunction function, uint32_t flags, uint64_t threads, uint64_t blocks, uint32_t shared,
                                   uintptr_t site) {
    uint64_t handle = (uint64_t)(uintptr_t)function | (uint64_t)flags << FLAG_SHIFT;
    const struct overlap_cache_line *line = &launch_cache.lines[overlap_cache_hash(handle)];
    if (__atomic_load_n(&line->handle, __ATOMIC_RELAXED) != handle || !overlap_cacheable(threads, shared))
        return 0;
    uint64_t key = overlap_cache_key(threads, shared, site);
    uint64_t word = overlap_answer_word(&line->answers[0], key, blocks);
    return word ? word : overlap_answer_word(&line->answers[1], key, blocks);
}

static inline void count_direct(struct overlap_shard *shard, enum overlap_way way, uint64_t word) {
    uint64_t *counter = &shard->launches[way][word >> OVERLAP_WORD_REASON_SHIFT & 63];
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

DRIVER_BODY launch_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, uint32_t grid_x, uint32_t grid_y,
                        uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                        void **parameters, void **extra) {
    type_cuLaunchKernel *real = __atomic_load_n(&real_functions[way][hook], __ATOMIC_RELAXED);
    uint64_t word = direct_word(function, 0, (uint64_t)block_x * block_y * block_z, (uint64_t)grid_x * grid_y * grid_z, shared, site);
    struct overlap_shard *shard = thread_shard;
    if (__builtin_expect((word & OVERLAP_WORD_DIRECT) && shard && real, 1)) {
        count_direct(shard, way, word);
        return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, (uint32_t)(word & OVERLAP_WORD_SIZE_MASK),
                    stream, parameters, extra);
    }
    const struct request request = {way, hook, site, 0, function, parameters, extra,
                                    {.gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z, .blockDimX = block_x,
                                     .blockDimY = block_y, .blockDimZ = block_z, .sharedMemBytes = shared, .hStream = stream}};
    return launch_slow(&request);
}

DRIVER_BODY launch_cooperative_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, uint32_t grid_x,
                                    uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                    uint32_t shared, CUstream stream, void **parameters) {
    const struct request request = {way, hook, site, OVERLAP_LAUNCH_COOPERATIVE, function, parameters, NULL,
                                    {.gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z, .blockDimX = block_x,
                                     .blockDimY = block_y, .blockDimZ = block_z, .sharedMemBytes = shared, .hStream = stream}};
    return launch_slow(&request);
}

/* What the attributes of a launch mean for shaping. A cluster of one block is none. */
static inline uint32_t flags_of(const CUlaunchConfig *config) {
    uint32_t flags = 0;
    for (uint32_t i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute->value.cooperative)
            flags |= OVERLAP_LAUNCH_COOPERATIVE;
        else if ((attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
                  attribute->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) &&
                 (attribute->value.cluster.x > 1 || attribute->value.cluster.y > 1 || attribute->value.cluster.z > 1))
            flags |= OVERLAP_LAUNCH_CLUSTER;
        else if ((attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && attribute->value.programmatic) ||
                 attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            flags |= OVERLAP_LAUNCH_PROGRAMMATIC;
    }
    return flags;
}

DRIVER_BODY launch_ex_body(enum overlap_way way, enum hook hook, uintptr_t site, const CUlaunchConfig *config, CUfunction function,
                           void **parameters, void **extra) {
    type_cuLaunchKernelEx *real = __atomic_load_n(&real_functions[way][hook], __ATOMIC_RELAXED);
    struct overlap_shard *shard = thread_shard;
    if (__builtin_expect(!config, 0)) /* the driver's to refuse */
        return (real = REAL(way, hook, cuLaunchKernelEx)) ? real(config, function, parameters, extra) : CUDA_ERROR_NOT_INITIALIZED;
    uint32_t flags = flags_of(config);
    uint64_t word = direct_word(function, flags, (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ,
                                (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ, config->sharedMemBytes, site);
    if (__builtin_expect((word & OVERLAP_WORD_DIRECT) && shard && real, 1)) {
        count_direct(shard, way, word);
        if (!(word & OVERLAP_WORD_CHANGED))
            return real(config, function, parameters, extra);
        CUlaunchConfig changed = *config;
        changed.sharedMemBytes = (uint32_t)(word & OVERLAP_WORD_SIZE_MASK);
        return real(&changed, function, parameters, extra);
    }
    const struct request request = {way, hook, site, flags, function, parameters, extra, *config};
    return launch_slow(&request);
}
