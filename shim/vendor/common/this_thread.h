/* State of the calling thread; defined in launch_slow.c. */
#pragma once

#include "../../core/window.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* The assembler uses the offsets, which hot_x86_64.h checks. */
struct this_thread {
    struct overlap_shard *shard; /* counters; NULL: this thread has no shard yet */
    uintptr_t outer;             /* return address of the call of NVIDIA's runtime in progress, or 0 */
    /* The cached answer about overlap windows, valid for this stream while *window_version is unchanged. */
    uint64_t version; /* of that answer; 0: none */
    vendor_stream stream;
    uint32_t null_stream; /* enum default_stream */
    enum overlap_window_position position;
    int64_t left;     /* launches that may still use the answer; below 0 if a signal handler used the last one */
    uint32_t step;    /* outside a window: the reason, as overlap_row_step() encodes it */
    uint32_t unknown; /* outside because the stream waits for something untracked */
    /* Counters of launches outside windows: those that would be shaped, and grids of one wave; or NULL. */
    uint64_t *outside[2];
    uint64_t newest, serial;
    struct overlap_stream *of;
    uintptr_t from;     /* AMD: caller of the entry point whose call the runtime forwards to another hook, or 0 */
    uint32_t inside;    /* AMD: our own launch calls in progress, which may reach another hook */
    uint64_t found;     /* AMD: the decision word that the hot path passes to the slow path, or 0 */
    uintptr_t deciding; /* stack address while a first decision is being made, or 0 */
    uint64_t asked;     /* number of queries about windows */
    /* As `shard`, also while `shard` is NULL so that the hot path calls the slow path for every launch. */
    struct overlap_shard *own;
};
extern const uint64_t *window_version;
extern __thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));

/* The caller and the route of the outermost hook: a call of NVIDIA's runtime reaches the driver's hooks, too. */
static inline uintptr_t outer_site(uintptr_t site) {
    return this_thread.outer ? this_thread.outer : site;
}
static inline enum overlap_route outer_route(enum overlap_route route) {
    return this_thread.outer ? OVERLAP_ROUTE_runtime : route;
}

#pragma GCC visibility pop
