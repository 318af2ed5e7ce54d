/* Start of every launch body. This is the hot path: one lookup in the decision cache, one counter, one jump. Everything
 * but a direct hit goes to the slow body, a separate function so that the hot one needs no stack frame.
 *
 * The size is always max(asked, target), because a launch may pass two hooks.
 */
#pragma once

#include "../../core/core.h"
#include "../../core/window.h"
#include "critical_streams.h"
#include "launch_slow.h"
#include "request.h"
#include "this_thread.h"
#include "windows.h"

#define DRIVER_BODY static inline __attribute__((always_inline)) vendor_result

/* Return the word of a direct hit, or 0. A launch of more than 1024 threads may hit another launch's line; that is
 * harmless, because the driver refuses it whatever its size. A size that exceeds the key's bits must not hit,
 * because it would be replaced. */
static inline __attribute__((always_inline)) uint64_t direct_word(const void *function, uint32_t flags,
                                                                  uint32_t threads, uint64_t blocks, uint32_t shared,
                                                                  uintptr_t site) {
    uint64_t handle = (uint64_t)(uintptr_t)function | (uint64_t)flags << FLAG_SHIFT;
    const uint64_t key = overlap_cache_key(threads, shared, site);
    return __builtin_expect(shared > OVERLAP_WORD_SIZE_MASK, 0)
               ? 0
               : overlap_cache_find(&launch_cache, handle, key, blocks);
}

static inline __attribute__((always_inline)) void count_direct(struct overlap_shard *shard, enum overlap_route route,
                                                               uint64_t word) {
    /* No atomic operation: only this thread writes here, and a reader in another process may miss the latest
     * launches. */
    overlap_add_own(&shard->routes[route], 1);
    overlap_add_own(&shard->launches[overlap_word_row(word)], 1);
}

/* Return the word of a launch that depends on its stream or window, resolved for this launch except for its reason,
 * which no caller reads. 0: take the slow path. */
static inline __attribute__((always_inline)) uint64_t word_here(uint64_t word, vendor_stream stream,
                                                                enum default_stream null_stream) {
    if (word & OVERLAP_WORD_STREAMED && critical_may_be(stream))
        return 0;
    if (word & OVERLAP_WORD_BESIDE)
        return word;
    if (!(word & OVERLAP_WORD_WINDOWED) || word & (OVERLAP_WORD_TRACED | OVERLAP_WORD_CLUSTER) ||
        !window_is_cached(stream, null_stream))
        return 0;
    if (this_thread.position == OVERLAP_POSITION_INSIDE) {
        if (!(word & OVERLAP_WORD_PROVEN))
            return 0;
        window_take_one();
        return word;
    }
    /* Load once: a signal handler may clear it. */
    uint64_t *const outside = OVERLAP_RELAXED(this_thread.outside[0]);
    if (!outside)
        return 0;
    /* Not atomic: if another thread launches on this stream at the same time, one of the two may not be counted. */
    overlap_add_own(outside, 1);
    return (word & ~OVERLAP_WORD_CHANGED) + ((uint64_t)this_thread.step << OVERLAP_WORD_ROW_SHIFT);
}
