/* State of the calling thread; defined in launch_slow.c. */
#pragma once

#include "../../core/core.h"
#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

struct launcher;

struct this_thread {
    struct overlap_shard *shard; /* counters; NULL: none yet, or every launch is to take the slow path */
    struct launcher *launcher;   /* what this thread has launched before; NULL if `shard` is */
    uint64_t context[VENDORS];   /* the current context, while contexts_changed is `contexts_at`; 0: not known */
    uint32_t contexts_at;
    /* The call of NVIDIA's runtime in progress: its return address, or 0, and its frame. */
    uintptr_t outer, outer_frame;
    uintptr_t inside; /* AMD: frame of the hook whose call the runtime serves, or 0 */
    /* Stack addresses while a first decision is being made, and while an entry of `launcher` is written; or 0. */
    uintptr_t deciding, filling;
    /* As `shard`, also while `shard` is NULL so that the hot path calls the slow path for every launch. */
    struct overlap_shard *own;
};
extern __thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));

/* The stack grows down: a call that began in a frame above ours is still in progress. A siglongjmp out of it leaves its
 * mark behind, which the frames tell apart. */
static inline __attribute__((always_inline)) bool outer_is_set(void) {
    return __builtin_expect(this_thread.outer != 0, 0) &&
           (uintptr_t)__builtin_frame_address(0) < this_thread.outer_frame;
}

/* The caller and the route of the outermost hook: a call of NVIDIA's runtime reaches the driver's hooks, too. */
static inline __attribute__((always_inline)) uintptr_t outer_site(uintptr_t site) {
    return outer_is_set() ? this_thread.outer : site;
}
static inline __attribute__((always_inline)) enum overlap_route outer_route(enum overlap_route route) {
    return outer_is_set() ? OVERLAP_ROUTE_runtime : route;
}

#pragma GCC visibility pop
