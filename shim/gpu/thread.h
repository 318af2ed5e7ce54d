/* State of the calling thread, and its counters in the statistics page. */
#pragma once

#include "../core/core.h"
#include "../sys/sys.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

struct launcher;

struct this_thread {
    struct launcher *launcher;   /* what this thread has launched before (work.h); NULL: none, use the slow path */
    struct overlap_shard *shard; /* counters; NULL: none yet */
    uint64_t context[VENDORS];   /* the current context, while contexts_changed is `contexts_at`; 0: not known */
    int32_t device[VENDORS];     /* its device + 1; 0: not known */
    uint32_t contexts_at;
    uint64_t launches_in; /* context of the launch that is being decided, or 0 */
    /* The call of NVIDIA's runtime in progress: its return address, or 0, and its frame. */
    uintptr_t outer, outer_frame;
    uintptr_t inside; /* AMD: frame of the hook whose call the runtime serves, or 0 */
    uint32_t id;      /* gettid(); 0: not asked yet */
    uint32_t others;  /* waits that name no stream (waits.h) */
    bool shares;      /* its shard is that of all threads for which none is left */
    bool opened;      /* thread_opens_gpu() has run */
};
extern __thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));

/* The stack grows down: a call that began in a frame above ours is still in progress. A siglongjmp out of it leaves its
 * mark behind, which the frames tell apart. */
static inline bool outer_is_set(void) {
    return __builtin_expect(this_thread.outer != 0, 0) &&
           (uintptr_t)__builtin_frame_address(0) < this_thread.outer_frame;
}

/* The caller of the outermost hook: a call of NVIDIA's runtime reaches the driver's hooks, too. */
static inline uintptr_t outer_site(uintptr_t site) {
    return outer_is_set() ? this_thread.outer : site;
}

/* Facts of the process that every launch reads. The epoch is incremented whenever an answer that threads have kept may be
 * stale. */
extern uint32_t launch_epoch;
void invalidate_decisions(void);
extern uint32_t captures_open; /* stream captures in progress in this process */

/* Returns gettid() of the calling thread; cached after the first system call. */
uint32_t thread_id(void);

/* The process uses a GPU. Once in each thread: makes the page, and claims the thread's counters and its table of launches. */
void thread_opens_gpu(void);

/* Adds one to a counter of the thread's shard. */
static inline void thread_add(uint64_t *counter) {
    if (__builtin_expect(this_thread.shares, 0))
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    else
        overlap_add_own(counter, 1);
}

/* Adds one to a counter, or to the launches of a row. */
void count(enum overlap_counter counter);
void count_launch(uint32_t row);
/* Counts a wait of the host that has ended, by a thread that has launched or opened the GPU. */
static inline void count_host_wait(void) {
    struct overlap_shard *const shard = this_thread.shard;
    if (shard)
        thread_add(&shard->counters[OVERLAP_COUNTER_HOST_WAITS]);
}

/* In a forked child, where pointers into the parent's page must not be used. */
void thread_forked(void);

#pragma GCC visibility pop
