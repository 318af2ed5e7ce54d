/* Bodies of the launch calls. Here is the hot path: one look into the decision cache, one counter, one jump; whatever
 * is not a direct hit goes to the slow body, which is a function of its own so that the hot one needs no stack frame.
 *
 * The size is always max(asked, target): a launch may pass two hooks.
 */
#pragma once

#include "cuda.h"
#include "windows.h"

/* The word of a direct hit, or 0. Threads beyond 1024 may hit another launch's line, which does no harm: the driver
 * refuses such a launch whatever its size. A size beyond the key's bits must not, for it is replaced. */
static inline __attribute__((always_inline)) uint64_t direct_word(CUfunction function, uint32_t flags, uint32_t threads,
                                                                  uint64_t blocks, uint32_t shared, uintptr_t site) {
    uint64_t handle = (uint64_t)(uintptr_t)function | (uint64_t)flags << FLAG_SHIFT;
    const struct overlap_cache_line *line = &launch_cache.lines[overlap_cache_hash(handle)];
    uint64_t key = overlap_cache_key(threads, shared, site);
    if (__builtin_expect(__atomic_load_n(&line->handle, __ATOMIC_RELAXED) != handle || shared > OVERLAP_WORD_SIZE_MASK,
                         0))
        return 0;
    uint64_t word = overlap_answer_word(&line->answers[0], key, blocks);
    return word ? word : overlap_answer_word(&line->answers[1], key, blocks);
}

static inline __attribute__((always_inline)) void count_direct(struct overlap_shard *shard, enum overlap_way way,
                                                               uint64_t word) {
    /* Only this thread writes here, and readers in other processes take what they find: no atomic operation needed. */
    overlap_add_own(&shard->launches[way][word >> OVERLAP_WORD_REASON_SHIFT & 63], 1);
}

/* The word of a launch that depends on where it is, made for here; 0: not to be had so quickly. */
static inline __attribute__((always_inline)) uint64_t word_here(uint64_t word, CUstream stream, enum hook hook) {
    const uint32_t per_thread = hook == HOOK_cuLaunchKernel_ptsz || hook == HOOK_cuLaunchKernelEx_ptsz;
    if (!(word & OVERLAP_WORD_WINDOWED) || word & (OVERLAP_WORD_TRACED | OVERLAP_WORD_CLUSTER) ||
        !window_told(stream, per_thread))
        return 0;
    if (this_thread.where == OVERLAP_WHERE_INSIDE) {
        if (!(word & OVERLAP_WORD_PROVEN))
            return 0;
        this_thread.left--;
        return word;
    }
    if (!this_thread.outside[0])
        return 0;
    /* Another thread may launch on the stream, too: then one of the two may not be counted. */
    __atomic_store_n(this_thread.outside[0], __atomic_load_n(this_thread.outside[0], __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    return (word & ~(OVERLAP_WORD_CHANGED | (uint64_t)63 << OVERLAP_WORD_REASON_SHIFT)) |
           (uint64_t)this_thread.reason << OVERLAP_WORD_REASON_SHIFT;
}

/* Every field is set by hand: a designated initialiser would zero the whole record first. */
DRIVER_BODY launch_found(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, uint32_t grid_x,
                         uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                         uint32_t shared, CUstream stream, void **parameters, void **extra, uint32_t flags,
                         uint64_t word) {
    struct request request;
    request.way = way;
    request.counted = outer_way(way);
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
    return launch_not_direct(&request, word);
}

/* cuLaunchKernel, when the hot path is not enough. */
DRIVER_BODY launch_body_slow(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, uint32_t grid_x,
                             uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                             uint32_t shared, CUstream stream, void **parameters, void **extra) {
    return launch_found(way, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                        parameters, extra, 0,
                        direct_word(function, 0, block_x * block_y * block_z, (uint64_t)grid_x * grid_y * grid_z,
                                    shared, outer_site(site)));
}

/* What the attributes of a launch mean for shaping. A cluster of one block is none. */
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
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            order_event_of_launch(attribute->value.event);
    }
    return flags;
}

/* cuLaunchKernelEx with a word that is known (0: none), for a configuration and a driver that are there. */
DRIVER_BODY launch_ex_found(enum overlap_way way, enum hook hook, uintptr_t site, const CUlaunchConfig *config,
                            CUfunction function, void **parameters, void **extra, uint32_t flags, uint64_t word) {
    type_cuLaunchKernelEx *real = real_functions[hook][way];
    struct overlap_shard *shard = this_thread.shard;
    if (__builtin_expect((word & OVERLAP_WORD_DIRECT) && shard, 1)) {
        count_direct(shard, outer_way(way), word);
        if (__builtin_expect(!(word & OVERLAP_WORD_CHANGED), 1))
            return real(config, function, parameters, extra);
        CUlaunchConfig changed = *config;
        changed.sharedMemBytes = (uint32_t)(word & OVERLAP_WORD_SIZE_MASK);
        return real(&changed, function, parameters, extra);
    }
    const uint64_t here = shard ? word_here(word, config->hStream, hook) : 0;
    if (here) {
        count_direct(shard, outer_way(way), here);
        if (!(here & OVERLAP_WORD_CHANGED))
            return real(config, function, parameters, extra);
        CUlaunchConfig changed = *config;
        changed.sharedMemBytes = (uint32_t)(here & OVERLAP_WORD_SIZE_MASK);
        return real(&changed, function, parameters, extra);
    }
    struct request request = {way, outer_way(way), hook, outer_site(site), flags, function, parameters, extra, *config};
    return launch_not_direct(&request, word);
}

/* The whole path in C: attributes may have to be looked at, and a changed configuration needs a frame. On x86-64 the
 * assembler takes the launches that need neither. */
DRIVER_BODY launch_ex_body(enum overlap_way way, enum hook hook, uintptr_t site, const CUlaunchConfig *config,
                           CUfunction function, void **parameters, void **extra) {
    type_cuLaunchKernelEx *real = REAL(cuLaunchKernelEx);
    if (__builtin_expect(!config || !real, 0)) /* the driver's to refuse */
        return real ? real(config, function, parameters, extra) : CUDA_ERROR_NOT_INITIALIZED;
    uint32_t flags = flags_of(config);
    uint64_t word = direct_word(function, flags, config->blockDimX * config->blockDimY * config->blockDimZ,
                                (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
                                config->sharedMemBytes, outer_site(site));
    return launch_ex_found(way, hook, site, config, function, parameters, extra, flags, word);
}
