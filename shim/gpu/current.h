/* The current context of the calling thread, and its device. The driver is asked once; the hooks of calls that make another one
 * current say so (current_is_unknown()). */
#pragma once

#include "hook.h"
#include "thread.h"

#pragma GCC visibility push(hidden)

#define NO_DEVICE (-1)

/* Incremented when a context ends: threads that had it current must ask again. */
extern uint32_t contexts_changed;
uint64_t query_context(enum vendor vendor);
/* The current context, or 0. Asks the driver once after each call that may have changed it. */
static inline uint64_t current_context(enum vendor vendor) {
    const uint64_t known = this_thread.context[vendor];
    return __builtin_expect(known && this_thread.contexts_at == OVERLAP_RELAXED(contexts_changed), 1)
               ? known
               : query_context(vendor);
}
/* Its device, or NO_DEVICE. */
int query_ordinal(enum vendor vendor);
static inline int current_ordinal(enum vendor vendor) {
    return current_context(vendor) && this_thread.device[vendor] ? this_thread.device[vendor] - 1
                                                                 : query_ordinal(vendor);
}
/* Contexts that the program has made. Those of a device that it has not made are the primary one, and green ones, which are parts
 * of it: they end together. */
void context_made(uint64_t context);
void context_unmade(uint64_t context);
bool context_is_made(uint64_t context);
/* A call may have changed the current context of this thread. */
static inline void current_is_unknown(enum vendor vendor) {
    this_thread.context[vendor] = 0;
    this_thread.device[vendor] = 0;
}

#pragma GCC visibility pop
