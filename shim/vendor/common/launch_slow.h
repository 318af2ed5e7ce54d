/* Launches that are not a direct hit in the decision cache, and how launches are counted. */
#pragma once

#include "../../core/core.h"
#include "arms.h"
#include "request.h"
#include "this_thread.h"

#pragma GCC visibility push(hidden)

extern struct overlap_cache launch_cache;

/* Returns the decision word of a launch, from the cache or by a new decision. 0: no decision is made in this process.
 * *cache_handle: handle of its cache line; 0: it is not cached. */
uint64_t launch_word(const struct request *request, uint64_t *cache_handle);

/* Raises the limit that a launch of a changed size needs. False: the driver refuses that. */
bool launch_prepare(const struct request *request, uint64_t *word, uint64_t cache_handle);

/* The driver has refused our change, or the limit could not be raised: leaves this kernel alone from now on. */
void launch_leave_alone(const struct request *request, uint64_t cache_handle, bool launched);

/* In a forked child, where pointers into the parent's page must not be used. used: as overlap_page_used() said of the parent. */
void launch_forked(bool used);

/* Counts a launch of which only the route and the row, or the reason, are known. */
void launch_count_row(enum overlap_route route, uint32_t row);
static inline void launch_count_reason(enum overlap_route route, uint32_t reason) {
    launch_count_row(route, reason);
}

/* on: every launch of this thread takes the slow path from now on. Off: no longer. */
void launch_set_slow(bool on);

/* Makes any launch. word: the decision word that the first lookup found, or 0. */
vendor_result launch_slow(struct request *request, uint64_t word);

/* Makes a computation launch as asked, whose stream may be raised. Not traced. */
vendor_result launch_streamed(struct request *request, uint64_t word);

/* Makes a computation launch whose size is changed in overlap windows only, and accepted by the driver before. No stream is
 * raised. */
vendor_result launch_windowed(struct request *request, uint64_t word);
static inline bool launch_is_windowed(uint64_t word) {
    return (word & (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_PROVEN | OVERLAP_WORD_TRACED | OVERLAP_WORD_STREAMED)) ==
           (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_PROVEN);
}

/* Makes a computation launch with a changed size that the driver has not accepted yet. Not traced. */
vendor_result launch_changed(struct request *request, uint64_t word);

/* Returns the row that counts a launch of this word: that of its kernel, for the reason that finally applied. */
uint32_t launch_other_row(uint64_t word, uint32_t reason);
static inline uint32_t launch_row(uint64_t word, uint32_t reason, bool raised) {
    const uint32_t row = overlap_word_row(word);
    if (__builtin_expect(reason != overlap_word_reason(word), 0))
        return launch_other_row(word, reason);
    return row + (raised && row >= OVERLAP_REASONS); /* rows without a kernel have no second row */
}

/* Records the time of a communication launch. */
void launch_sample(struct overlap_shard *shard);
/* The process uses a GPU. Makes all system calls that are needed once for the process or for this thread, because the program may
 * enter a sandbox before its first launch. */
void launch_opened(void);
/* Returns gettid() of the calling thread; cached after the first system call. */
uint32_t thread_id(void);

/* Counts a communication launch that was made. Looks the shard of the thread up only once for all counters. */
void launch_communicated_first(const struct request *request, uint32_t row, bool raised);
static inline void launch_communicated(const struct request *request, uint64_t word, uint32_t reason, bool raised) {
    const uint32_t row = launch_row(word, reason, raised);
    struct overlap_shard *const shard = this_thread.own;
    if (__builtin_expect(shard == NULL, 0)) {
        launch_communicated_first(request, row, raised);
        return;
    }
    overlap_add_own(&shard->counters[OVERLAP_COUNTER_COMMUNICATION], 1);
    if (raised)
        overlap_add_own(&shard->counters[OVERLAP_COUNTER_RAISED], 1);
    overlap_add_own(&shard->routes[request->counted], 1);
    overlap_add_own(&shard->launches[row], 1);
    if (__builtin_expect(overlap_sample_is_due(shard), 0))
        launch_sample(shard);
    arms_communicated(request);
}

/* Add one, or `count`, to a counter of the calling thread; subtract `count` that any thread has added. */
void launch_count(enum overlap_counter counter);
void launch_count_many(enum overlap_counter counter, uint64_t count);
void launch_take_back(enum overlap_counter counter, uint64_t count);

#pragma GCC visibility pop
