/* Launches that are not a direct hit in the decision cache, and how launches are counted. */
#pragma once

#include "../../core/core.h"
#include "request.h"
#include "this_thread.h"

#pragma GCC visibility push(hidden)

struct stream;

extern struct overlap_cache launch_cache;

/* Incremented whenever an answer that threads have cached may be stale: invalidate_decisions() in facts.h. */
extern uint32_t launch_epoch;

/* Returns the decision word of a launch, from the cache or by a new decision. 0: no decision is made in this process.
 * *cache_handle: handle of its cache line; 0: it is not cached. *grid: the grids for which it holds (overlap_cache_grid()). */
uint64_t launch_word(const struct request *request, uint64_t *cache_handle, uint64_t *grid);

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

/* Makes any launch that the thread's table does not hold. */
vendor_result launch_slow(struct request *request);

/* Counts what only some launches count: that they communicate, or are on a raised stream. */
void launch_count_special(uint64_t word, struct stream *stream);

/* The process uses a GPU. Makes all system calls that are needed once for the process or for this thread, because the program may
 * enter a sandbox before its first launch. */
void launch_opened(void);
/* Returns gettid() of the calling thread; cached after the first system call. */
uint32_t thread_id(void);

/* Adds one to a counter of the calling thread. */
void launch_count(enum overlap_counter counter);

#pragma GCC visibility pop
