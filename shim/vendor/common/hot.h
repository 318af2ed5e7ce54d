/* Start of every launch body: a launch that this thread has made before is one lookup in its own table, two counters
 * and a call. Everything else goes to the slow body, a separate function so that this one needs few registers.
 *
 * The size is always max(asked, target), because a launch may pass two hooks.
 */
#pragma once

#include "../../core/core.h"
#include "launch_slow.h"
#include "request.h"
#include "streams.h"
#include "this_thread.h"

#define DRIVER_BODY static inline __attribute__((always_inline)) vendor_result

/* Where a thread keeps its answer about a launch: this entry, or the one beside it. */
static inline __attribute__((always_inline)) struct known *known_at(struct launcher *launcher, uint64_t function,
                                                                    uint64_t stream, uint64_t key) {
    const uint64_t hash = (function + (stream << 7 | stream >> 57) + (key << 28 | key >> 36)) * OVERLAP_FACTOR;
    return &launcher->known[hash >> (64 - KNOWN_BITS)];
}
static inline __attribute__((always_inline)) struct known *known_beside(struct launcher *launcher,
                                                                        const struct known *known) {
    return &launcher->known[(known - launcher->known) ^ 1];
}

/* Is the entry the answer about this launch? */
static inline __attribute__((always_inline)) bool is_answer(const struct known *known, uint64_t function,
                                                            uint64_t stream, uint64_t key, uint64_t blocks) {
    /* One test of all: branches cost more than what they spare. */
    return ((OVERLAP_RELAXED(known->function) ^ function) | (OVERLAP_RELAXED(known->key) ^ key) |
            (OVERLAP_RELAXED(known->stream) ^ stream) |
            (OVERLAP_RELAXED(known->epoch) ^ __atomic_load_n(&launch_epoch, __ATOMIC_ACQUIRE))) == 0 &&
           blocks - OVERLAP_RELAXED(known->least) <= OVERLAP_RELAXED(known->range);
}

/* Looks the launch up, and counts it and its work. 0: take the slow path. A launch of more than 1024 threads may hit
 * another launch's entry; that is harmless, because the driver refuses it whatever its size. */
static inline __attribute__((always_inline)) uint64_t launch_known(const void *function, uint32_t flags,
                                                                   uint32_t threads, uint64_t blocks, uint32_t shared,
                                                                   vendor_stream stream,
                                                                   enum default_stream null_stream,
                                                                   enum overlap_route route, uintptr_t site) {
    struct launcher *const launcher = this_thread.launcher;
    if (__builtin_expect(!launcher || shared > OVERLAP_WORD_SIZE_MASK, 0))
        return 0;
    const uint64_t handle = (uint64_t)(uintptr_t)function | (uint64_t)flags << FLAG_SHIFT;
    const uint64_t of = stream_key(stream, null_stream), key = overlap_cache_key(threads, shared, site);
    const struct known *known = known_at(launcher, handle, of, key);
    if (__builtin_expect(!is_answer(known, handle, of, key, blocks), 0)) {
        known = known_beside(launcher, known);
        if (!is_answer(known, handle, of, key, blocks))
            return 0;
    }
    const uint64_t word = OVERLAP_RELAXED(known->word);
    struct stream *const record = OVERLAP_RELAXED(known->record);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* A signal handler that launches may have replaced the entry since: another kernel must not get this one's size. */
    if (__builtin_expect(OVERLAP_RELAXED(known->serial) != OVERLAP_RELAXED(record->serial) ||
                             (word & OVERLAP_WORD_CHANGED && !is_answer(known, handle, of, key, blocks)),
                         0))
        return 0;
    if (__builtin_expect((word & (OVERLAP_WORD_COMMUNICATION | OVERLAP_WORD_RAISED)) != 0, 0))
        launch_count_special(word, record);
    if (!(word & OVERLAP_WORD_COMMUNICATION)) {
        struct work *const work = &launcher->works[stream_slot(record)];
        if (__builtin_expect(work->stream != record, 0)) /* another stream has the slot by now */
            work_slot(launcher, record);
        __atomic_store_n(&work->threads, work->threads + blocks * threads, __ATOMIC_RELAXED);
    }
    struct overlap_shard *const shard = this_thread.shard;
    /* No atomic operation: only this thread writes here, and a reader in another process may miss the latest
     * launches. */
    overlap_add_own(&shard->routes[route], 1);
    overlap_add_own(&shard->launches[overlap_word_row(word)], 1);
    return word;
}
