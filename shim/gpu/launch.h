/* A launch. One that the thread has made before is a lookup in the thread's own table, two counters and a call
 * (launch_cached()); everything else goes to launch_slow().
 *
 * The size is always max(asked, target), because a launch may pass two hooks. */
#pragma once

#include "../core/core.h"
#include "../text.h"
#include "handle.h"
#include "request.h"
#include "streams.h"
#include "thread.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* The key of a call with 1 to 1024 threads and less than 256 KiB requested; further ones are decided each time. Its page
 * identifies the calling library, because two libraries never share a page; 36 bits hold the page number of every user
 * address of x86-64, and of aarch64 with 48-bit addresses. 1024 threads carry into the page number, which yields the key
 * of 0 threads on the next page: no launch has that one. */
static inline bool has_launch_key(uint64_t threads, uint32_t asked) {
    return threads - 1 < 1024 && asked <= OVERLAP_LARGEST_SIZE;
}
static inline uint64_t launch_key(uint64_t threads, uint32_t asked, uintptr_t site) {
    return ((uint64_t)(site >> 12) << 28) + (threads << 18) + asked;
}

/* The flags of a call are in the top bits of its function's address, which are 0 in every address of a program. They have
 * 64 bits because gcc 12 would otherwise store 32 of them on the stack and load 64, which stalls the processor for 6 ns. */
static inline uint64_t function_key(const void *function, uint64_t flags) {
    return (uint64_t)(uintptr_t)function | flags << 56;
}

/* Where a thread keeps its answer about a launch: in this entry, or in the one next to it. */
static inline struct cached_launch *cached_at(struct launcher *launcher, uint64_t function, uint64_t stream,
                                              uint64_t key) {
    const uint64_t hash = (function + (stream << 7 | stream >> 57) + (key << 28 | key >> 36)) * OVERLAP_FACTOR;
    return &launcher->cached[hash >> (64 - launcher->bits)];
}
static inline struct cached_launch *cached_neighbour(struct launcher *launcher, const struct cached_launch *known) {
    return &launcher->cached[(known - launcher->cached) ^ 1];
}

static inline bool is_answer(const struct cached_launch *known, uint64_t function, uint64_t stream, uint64_t key,
                             uint64_t blocks) {
    return ((known->function ^ function) | (known->key ^ key) | (known->stream ^ stream) |
            (known->epoch ^ OVERLAP_LOAD(launch_epoch))) == 0 &&
           blocks - known->least <= known->range && known->serial == OVERLAP_LOAD(known->record->serial);
}

static inline void add_work(struct launcher *launcher, struct stream *stream, uint64_t more) {
    struct work *work = &launcher->works[stream->slot];
    if (__builtin_expect(work->stream != stream, 0)) /* another stream has the slot by now */
        work = work_slot(launcher, stream);
    __atomic_store_n(&work->sum, work->sum + more, __ATOMIC_RELAXED);
}

/* The same for a thread that may have no table, and a record that may be of another stream by now. */
void add_work_slow(struct stream *stream, uint64_t more);

/* Counts a launch that communicates, or is on a raised stream, for that, too. */
void count_special(bool communicates, bool raised, struct stream *stream);

/* Looks the launch up, counts it and its work, and replaces *shared by the size to launch with. False: take the slow
 * path. A launch of more than 1024 threads may hit another launch's entry; that is harmless, because the driver refuses
 * it whatever its size. */
static inline __attribute__((always_inline)) bool launch_cached(const void *function, uint64_t flags, uint32_t threads,
                                                                uint64_t blocks, uint32_t *shared, vendor_stream stream,
                                                                enum default_stream null_stream, uintptr_t site) {
    struct launcher *const launcher = this_thread.launcher;
    if (__builtin_expect(!launcher || *shared > OVERLAP_LARGEST_SIZE, 0))
        return false;
    const uint64_t handle = function_key(function, flags), of = stream_key(stream, null_stream);
    const uint64_t key = launch_key(threads, *shared, site);
    const struct cached_launch *known = cached_at(launcher, handle, of, key);
    if (__builtin_expect(!is_answer(known, handle, of, key, blocks), 0)) {
        known = cached_neighbour(launcher, known);
        if (!is_answer(known, handle, of, key, blocks))
            return false;
    }
    const struct cached_launch answer = *known;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (answer.size != *shared && !is_answer(known, handle, of, key, blocks))
        return false; /* a signal handler that launches has replaced it: no kernel gets the size of another */
    if (__builtin_expect(answer.communicates | answer.raised, 0))
        count_special(answer.communicates, answer.raised, answer.record);
    if (!answer.communicates)
        add_work(launcher, answer.record, blocks * answer.block_work);
    thread_add(&this_thread.shard->launches[answer.row]);
    *shared = answer.size;
    return true;
}

/* Makes the decision about a launch (decide.c). handle: the kernel's, or NULL. False: it holds for this launch only. */
bool decide(const struct request *request, struct handle *handle, struct decision *decision);

/* True in a forked child whose parent used a GPU. */
extern bool is_forked_child;

/* Makes any launch that the thread's table does not hold. */
vendor_result launch_slow(struct request *request);

#pragma GCC visibility pop
