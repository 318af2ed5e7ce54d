/* What bodies of launch calls begin with. Here is the hot path: one look into the decision cache, one counter, one jump; whatever
 * is not a direct hit goes to the slow body, which is a function of its own so that the hot one needs no stack frame.
 *
 * The size is always max(asked, target): a launch may pass two hooks.
 */
#pragma once

#include "windows.h"

/* The word of a direct hit, or 0. Threads beyond 1024 may hit another launch's line, which does no harm: the driver
 * refuses such a launch whatever its size. A size beyond the key's bits must not, for it is replaced. */
static inline __attribute__((always_inline)) uint64_t direct_word(const void *function, uint32_t flags,
                                                                  uint32_t threads, uint64_t blocks, uint32_t shared,
                                                                  uintptr_t site) {
    uint64_t handle = (uint64_t)(uintptr_t)function | (uint64_t)flags << FLAG_SHIFT;
    const uint64_t key = overlap_cache_key(threads, shared, site);
    return __builtin_expect(shared > OVERLAP_WORD_SIZE_MASK, 0)
               ? 0
               : overlap_cache_find(&launch_cache, handle, key, blocks);
}

static inline __attribute__((always_inline)) void count_direct(struct overlap_shard *shard, enum overlap_way way,
                                                               uint64_t word) {
    /* Only this thread writes here, and readers in other processes take what they find: no atomic operation needed. */
    overlap_add_own(&shard->ways[way], 1);
    overlap_add_own(&shard->launches[overlap_word_row(word)], 1);
}

/* The word of a launch that depends on its stream or on where it is, made for here (but its reason, which nobody asks); 0: not to be
 * had so quickly. */
static inline __attribute__((always_inline)) uint64_t word_here(uint64_t word, vendor_stream stream,
                                                                enum default_stream whose) {
    if (word & OVERLAP_WORD_STREAMED && critical_may_be(stream))
        return 0;
    if (word & OVERLAP_WORD_BESIDE)
        return word;
    if (!(word & OVERLAP_WORD_WINDOWED) || word & (OVERLAP_WORD_TRACED | OVERLAP_WORD_CLUSTER) ||
        !window_told(stream, whose))
        return 0;
    if (this_thread.where == OVERLAP_WHERE_INSIDE) {
        if (!(word & OVERLAP_WORD_PROVEN))
            return 0;
        window_take_one();
        return word;
    }
    uint64_t *const outside =
        __atomic_load_n(&this_thread.outside[0], __ATOMIC_RELAXED); /* once: a handler may take it away */
    if (!outside)
        return 0;
    overlap_add_own(outside,
                    1); /* another thread may launch on the stream, too: then one of the two may not be counted */
    return (word & ~OVERLAP_WORD_CHANGED) + ((uint64_t)this_thread.step << OVERLAP_WORD_ROW_SHIFT);
}
