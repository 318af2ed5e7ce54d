/* The hot path of HIP's launch calls, in plain C. Whatever is not a direct hit goes to the slow body. */
#pragma once

#include "../common/hot.h"
#include "hip.h"

static inline uint32_t hip_groups(uint32_t items, uint32_t group) {
    return group ? items / group + (items % group != 0) : 0;
}

hipError_t hip_host_body_slow(enum overlap_way way, enum hook hook, uintptr_t site, const void *function,
                              uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy, uint32_t block_z, void **arguments,
                              size_t shared, hipStream_t stream) __attribute__((visibility("hidden"), cold));
hipError_t hip_module_body_slow(enum overlap_way way, enum hook hook, uintptr_t site, hipFunction_t function,
                                uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                                uint32_t block_z, uint32_t shared, hipStream_t stream, void **parameters, void **extra)
    __attribute__((visibility("hidden"), cold));
hipError_t hip_ext_body_slow(enum overlap_way way, enum hook hook, uintptr_t site, const void *function,
                             uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy, uint32_t block_z, void **arguments,
                             size_t shared, hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags)
    __attribute__((visibility("hidden"), cold));
hipError_t hip_items_body_slow(enum overlap_way way, enum hook hook, uintptr_t site, hipFunction_t function,
                               uint32_t items_x, uint32_t items_y, uint32_t items_z, uint32_t block_x, uint32_t block_y,
                               uint32_t block_z, size_t shared, hipStream_t stream, void **parameters, void **extra,
                               hipEvent_t start, hipEvent_t stop, uint32_t flags)
    __attribute__((visibility("hidden"), cold));

/* A word that says what to do here and now, or 0: the slow body's. *real: what is behind the hook. Where the runtime has a
 * table, the calls that come by it are decided, and all others are passed on by the slow body. */
static inline __attribute__((always_inline)) uint64_t hip_word(enum overlap_way way, enum hook hook, uintptr_t site,
                                                               const void *function, uint32_t threads, uint64_t blocks,
                                                               size_t shared, hipStream_t stream, void **real) {
    const bool by_table = way == OVERLAP_WAY_dispatch_table;
    struct overlap_shard *shard = this_thread.shard;
    void *const table = __atomic_load_n(&real_functions[hook][REAL_TABLE], __ATOMIC_RELAXED);
    *real = by_table ? table : __atomic_load_n(&real_functions[hook][way], __ATOMIC_RELAXED);
    if (__builtin_expect(!shard || !*real || (!by_table && table) || shared > OVERLAP_WORD_SIZE_MASK, 0))
        return 0;
    if (by_table && this_thread.from)
        site = this_thread.from;
    uint64_t word = direct_word(function, 0, threads, blocks, (uint32_t)shared, site);
    if (__builtin_expect(!(word & OVERLAP_WORD_DIRECT), 0))
        word = word_here(word, stream, hook == HOOK_hipLaunchKernel_spt ? STREAM_OF_HIP_THREAD : STREAM_OF_HIP_DEVICE);
    if (__builtin_expect(!word, 0))
        return 0;
    if (by_table)
        this_thread.from = 0;
    count_direct(shard, way, word);
    return word;
}

static inline size_t hip_size(uint64_t word, size_t asked) {
    return word & OVERLAP_WORD_CHANGED ? (size_t)(word & OVERLAP_WORD_SIZE_MASK) : asked;
}
